/*
 * A report with a part of it missing, zeroed or flipped: it is refused, or it says what it said.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/reader.h"
#include "support/made_zip.h"

static const made_member members[] = {
    {"metadata.json", "{\"schema\": 1, \"report_id\": \"0123\"}\n", false},
    {"logs/a.log", "one line, and one line, and one line, and one line more\n", true},
    {"manifest.json", "{\"complete\": true}\n", false}};
enum { member_count = sizeof members / sizeof members[0] };

/* Whether every entry is there with its content. False: something was refused. */
static bool says_the_same(const void *bytes, size_t byte_count) {
    bp_archive_reader *reader = NULL;
    int fd = made_zip_file(bytes, byte_count);
    cr_assert(ge(int, fd, 0));
    bool is_read = bp_archive_reader_open(fd, "t.zip", &reader, NULL) == BUGPACK_OK;
    if (is_read) {
        cr_expect(eq(sz, bp_archive_reader_count(reader), member_count));
    }
    for (size_t i = 0; is_read && i < bp_archive_reader_count(reader); i++) {
        bp_archive_member member = bp_archive_reader_member(reader, i);
        bp_buffer content;
        is_read = made_zip_read(reader, member.name, 1 << 20, &content, NULL) == BUGPACK_OK;
        if (is_read) {
            cr_expect(eq(str, (char *)member.name, (char *)members[i].name));
            cr_expect(eq(str, (char *)bp_buffer_text(&content), (char *)members[i].content));
        }
        bp_buffer_release(&content);
    }
    bp_archive_reader_free(reader);
    (void)close(fd);
    return is_read;
}

static void build(made_zip *zip) {
    made_zip_build(zip, members, member_count);
    cr_assert(says_the_same(zip->bytes.data, zip->bytes.size));
}

Test(reader_damage, no_flipped_bit_changes_what_is_read) {
    made_zip zip;
    size_t accepted = 0, total = 0;
    build(&zip);
    for (size_t at = 0; at < zip.bytes.size; at++) {
        for (unsigned bit = 0; bit < 8; bit++, total++) {
            zip.bytes.data[at] = (char)(zip.bytes.data[at] ^ (1 << bit));
            accepted += says_the_same(zip.bytes.data, zip.bytes.size);
            zip.bytes.data[at] = (char)(zip.bytes.data[at] ^ (1 << bit));
        }
    }
    /* Versions and permissions, which nobody reads, are about one byte in ten. */
    cr_expect(lt(sz, accepted, total / 8), "%zu of %zu", accepted, total);
    made_zip_release(&zip);
}

Test(reader_damage, a_truncated_report_is_refused_wherever_it_ends) {
    made_zip zip;
    build(&zip);
    for (size_t kept = 0; kept < zip.bytes.size; kept++) {
        cr_expect(not(says_the_same(zip.bytes.data, kept)), "%zu bytes of it", kept);
    }
    made_zip_release(&zip);
}

/* As after a power cut. With the last 14 to 18 bytes zeroed libzip 1.7.3 sees an empty archive. */
Test(reader_damage, a_report_whose_end_is_zeroed_is_refused) {
    made_zip zip;
    build(&zip);
    size_t zeroed = 1; /* the end of a small zip is zero anyway */
    while (zip.bytes.data[zip.bytes.size - zeroed] == 0) {
        zeroed++;
    }
    cr_assert(lt(sz, zeroed, 14));
    for (; zeroed <= zip.bytes.size; zeroed++) {
        bp_archive_reader *reader = NULL;
        memset(zip.bytes.data + zip.bytes.size - zeroed, 0, zeroed);
        int fd = made_zip_file(zip.bytes.data, zip.bytes.size);
        cr_expect(eq(int, bp_archive_reader_open(fd, "t.zip", &reader, NULL), BUGPACK_ERR_CORRUPT),
                  "the last %zu bytes", zeroed);
        bp_archive_reader_free(reader);
        (void)close(fd);
    }
    made_zip_release(&zip);
}

Test(reader_damage, a_report_with_a_hole_is_refused) {
    made_zip zip;
    build(&zip);
    char *copy = malloc(zip.bytes.size);
    cr_assert(ne(ptr, copy, NULL));
    for (size_t at = 0; at + 16 <= zip.bytes.size; at += 8) {
        memcpy(copy, zip.bytes.data, zip.bytes.size);
        memset(copy + at, 0, 16);
        cr_expect(not(says_the_same(copy, zip.bytes.size)), "at %zu", at);
    }
    free(copy);
    made_zip_release(&zip);
}
