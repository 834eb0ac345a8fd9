/*
 * Entries that give more or other bytes than they declare. What else is no report:
 * fixtures/hostile.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/reader.h"
#include "support/made_zip.h"

static const made_member members[] = {
    {"abcd", "content of the first", false},
    {"efgh", "content of the second, again and again and again", true}};

Test(reader_hostile, refuses_names_that_are_too_short_or_too_long) {
    static const size_t lengths[] = {0, 255, 256};
    char name[257];
    memset(name, 'a', sizeof name);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        bp_archive_reader *reader = NULL;
        made_zip zip;
        name[lengths[i]] = '\0';
        made_zip_build(&zip, &(made_member){name, "x", false}, 1);
        int fd = made_zip_file(zip.bytes.data, zip.bytes.size);
        cr_expect(eq(int, bp_archive_reader_open(fd, "t.zip", &reader, NULL),
                     lengths[i] == 255 ? BUGPACK_OK : BUGPACK_ERR_CORRUPT));
        cr_expect(eq(int, reader != NULL, lengths[i] == 255), "an output was touched");
        bp_archive_reader_free(reader);
        (void)close(fd);
        made_zip_release(&zip);
        name[lengths[i]] = 'a';
    }
}

/* Reads the second entry of a zip that opens; the status of the reading. */
static bugpack_status read_second(made_zip *zip, size_t *ret_bytes, bugpack_error *error) {
    bp_archive_reader *reader = NULL;
    bp_buffer content;
    int fd = made_zip_file(zip->bytes.data, zip->bytes.size);
    cr_assert(bp_archive_reader_open(fd, "t.zip", &reader, error) == BUGPACK_OK, "%s",
              error->message);
    bugpack_status status = made_zip_read(reader, "efgh", 1 << 20, &content, error);
    *ret_bytes = content.size;
    bp_buffer_release(&content);
    bp_archive_reader_free(reader);
    (void)close(fd);
    made_zip_release(zip);
    return status;
}

Test(reader_hostile, never_gives_more_than_an_entry_declares) {
    char large[60001];
    const made_member both[] = {members[0], {"efgh", large, true}};
    static const struct {
        uint32_t declared;
        const char *why;
    } cases[] = {{10, "longer than it declares"},
                 {59999, "longer than it declares"},
                 {60001, "shorter than it declares"},
                 {0, "longer than it declares"}};
    memset(large, 'a', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        made_zip zip;
        size_t given;
        made_zip_build(&zip, both, 2);
        made_zip_put32(&zip, zip.local[1] + 22, cases[i].declared);
        made_zip_put32(&zip, zip.central[1] + 24, cases[i].declared);
        cr_expect(eq(int, read_second(&zip, &given, &error), BUGPACK_ERR_CORRUPT));
        cr_expect(le(sz, given, cases[i].declared));
        cr_expect(strstr(error.message, "is damaged: entry \"efgh\"") != NULL, "%s", error.message);
    }
}
