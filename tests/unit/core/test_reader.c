/*
 * Reading reports: those that we write, and those that somebody made.
 */
#include <fcntl.h>

#include "archive/reader.h"
#include "base/temp_file.h"
#include "support/archive_file.h"
#include "support/made_zip.h"
#include "unit/unit.h"

static const made_member members[] = {{"metadata.json", "{\"a\": 1}\n", false},
                                      {"logs/x\xc3\xa9.log", "line line line line line\n", true},
                                      {"Meta", "", false}};

static bp_archive_reader *open_made(const made_zip *zip, int *ret_fd) {
    bp_archive_reader *reader = NULL;
    *ret_fd = made_zip_file(zip->bytes.data, zip->bytes.size);
    cr_assert(ge(int, *ret_fd, 0));
    cr_assert(bp_archive_reader_open(*ret_fd, "t.zip", &reader, &failure) == BUGPACK_OK, "%s",
              failure.message);
    return reader;
}

/* The members, opened by the suite. */
static made_zip whole;
static bp_archive_reader *reader_of_whole;
static int whole_fd;

static void open_whole(void) {
    made_zip_build(&whole, members, 3);
    reader_of_whole = open_made(&whole, &whole_fd);
}

static void close_whole(void) {
    bp_archive_reader_free(reader_of_whole);
    (void)close(whole_fd);
    made_zip_release(&whole);
}

TestSuite(reader_of_whole, .init = open_whole, .fini = close_whole);

static void expect_content(bp_archive_reader *reader, const char *name, const void *bytes,
                           size_t byte_count) {
    bp_buffer content;
    cr_expect(made_zip_read(reader, name, UINT64_MAX, &content, &failure) == BUGPACK_OK, "%s: %s",
              name, failure.message);
    cr_assert(eq(sz, content.size, byte_count), "%s", name);
    cr_expect(byte_count == 0 || memcmp(content.data, bytes, byte_count) == 0, "%s", name);
    bp_buffer_release(&content);
}

Test(reader_of_whole, lists_and_reads_entries_stored_and_deflated) {
    cr_assert(eq(sz, bp_archive_reader_count(reader_of_whole), 3));
    for (size_t i = 0; i < 3; i++) {
        bp_archive_member member = bp_archive_reader_member(reader_of_whole, i);
        const char *content = members[i].content;
        cr_expect(eq(str, member.name, members[i].name));
        cr_expect(eq(u64, member.bytes, strlen(content)));
        expect_content(reader_of_whole, members[i].name, content, strlen(content));
    }
    cr_expect(eq(i64, lseek(whole_fd, 0, SEEK_CUR), (int64_t)whole.bytes.size), "it was moved");
}

/* Numbers, which no compression makes so small that they come in one step. */
static char *make_long_text(uint32_t seed) {
    char *text = calloc(1, 20001);
    cr_assert(text != NULL);
    for (size_t i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223;
        text[i] = (char)('0' + (seed >> 24) % 10);
    }
    return text;
}

Test(reader, reads_several_entries_in_turn_by_steps) {
    char *texts[] = {make_long_text(1), make_long_text(2), make_long_text(3)};
    const made_member long_members[] = {
        {"a", texts[0], true}, {"b", texts[1], false}, {"c", texts[2], true}, {"empty", "", false}};
    bp_archive_stream *streams[4];
    bp_buffer got[4];
    bool is_over[4] = {false};
    size_t steps = 0;
    made_zip zip;
    int fd;
    made_zip_build(&zip, long_members, 4);
    made_zip_put32(&zip, zip.local[2] + 14, 7); /* the checksum of c */
    made_zip_put32(&zip, zip.central[2] + 16, 7);
    bp_archive_reader *reader = open_made(&zip, &fd);
    for (size_t i = 0; i < 4; i++) {
        bp_buffer_init(&got[i], SIZE_MAX / 2);
        cr_assert(bp_archive_stream_open(reader, i, &streams[i], &failure) == BUGPACK_OK);
    }
    for (bugpack_status status = BUGPACK_OK; status == BUGPACK_OK || !is_over[1]; steps++) {
        for (size_t i = 0; i < 4; i++) {
            if (i == 2 && status == BUGPACK_OK) {
                status = bp_archive_stream_next(streams[i], bp_buffer_sink, &got[i], &is_over[i],
                                                &failure);
            } else if (i != 2 && !is_over[i]) {
                cr_assert(bp_archive_stream_next(streams[i], bp_buffer_sink, &got[i], &is_over[i],
                                                 NULL) == BUGPACK_OK);
            }
        }
    }
    cr_expect(steps > 4 && is_over[0] && !is_over[2] && is_over[3]);
    cr_expect(strstr(failure.message, "entry \"c\" has a wrong checksum") != NULL, "%s",
              failure.message);
    for (size_t i = 0; i < 4; i++) {
        cr_expect(strcmp(bp_buffer_text(&got[i]), long_members[i].content) == 0, "of %zu", i);
        bp_archive_stream_close(streams[i]);
        bp_buffer_release(&got[i]);
    }
    bp_archive_stream_close(NULL);
    bp_archive_reader_free(reader);
    (void)close(fd);
    made_zip_release(&zip);
    for (size_t i = 0; i < 3; i++) {
        free(texts[i]);
    }
}

Test(reader_of_whole, finds_an_entry_by_exactly_its_name) {
    size_t index = 77;
    cr_expect(not(bp_archive_reader_find(reader_of_whole, "Metadata.json", &index)));
    cr_expect(not(bp_archive_reader_find(reader_of_whole, "metadata", &index)));
    cr_expect(eq(sz, index, 77));
    cr_expect(bp_archive_reader_find(reader_of_whole, "Meta", &index));
    cr_expect(eq(sz, index, 2));
}

Test(reader, reads_what_our_own_writer_writes) {
    CLEANUP(archive_file_end) archive_file file;
    bp_archive_reader *reader = NULL;
    size_t large_bytes = (size_t)3 << 20;
    CLEANUP(free_memory) char *large = malloc(large_bytes);
    cr_assert(ne(ptr, large, NULL));
    for (size_t i = 0; i < large_bytes; i++) {
        large[i] = (char)(i * i >> 7);
    }
    archive_file_start(&file, 1795000000000000000u, NULL);
    archive_file_add(&file, "metadata.json", "{}", 2);
    archive_file_add(&file, "large", large, large_bytes);
    archive_file_add(&file, "empty", "", 0);
    archive_file_add(&file, "late \xe2\x86\x92", "x", 1);
    archive_file_finish(&file);
    cr_assert(bp_archive_reader_open(file.fd, file.path, &reader, &failure) == BUGPACK_OK, "%s",
              failure.message);
    cr_expect(eq(sz, bp_archive_reader_count(reader), 4));
    expect_content(reader, "large", large, large_bytes);
    expect_content(reader, "empty", "", 0);
    expect_content(reader, "late \xe2\x86\x92", "x", 1);
    expect_content(reader, "metadata.json", "{}", 2);
    bp_archive_reader_free(reader);
}

Test(reader_of_whole, reads_nothing_of_an_entry_over_the_limit) {
    CLEANUP(bp_buffer_release) bp_buffer content;
    cr_expect(eq(int, made_zip_read(reader_of_whole, "metadata.json", 8, &content, &failure),
                 BUGPACK_ERR_LIMIT));
    cr_expect(eq(sz, content.size, 0));
    cr_expect(eq(str, failure.message,
                 "cannot read \"t.zip\": entry \"metadata.json\" is over the limit of 8 bytes"));
    cr_expect(eq(int, made_zip_read(reader_of_whole, "metadata.json", 9, &content, &failure),
                 BUGPACK_OK));
}

static bugpack_status refuse_bytes(void *context, const void *bytes, size_t byte_count) {
    *(size_t *)context += byte_count;
    return BUGPACK_ERR_CANCELLED;
}

/* A report's directory is in the order of the format, its bytes are in that of writing. */
Test(reader, opens_a_zip_whose_directory_is_in_another_order_than_its_bytes) {
    CLEANUP(archive_file_end) archive_file file;
    bp_archive_reader *reader = NULL;
    archive_file_start(&file, 1795000000000000000u, NULL);
    static const char *const names[] = {"c", "a", "d", "b"};
    for (size_t i = 0; i < 4; i++) {
        uint64_t bytes;
        cr_assert(zero(
            int, bp_archive_begin(file.archive, names[i], (unsigned)(names[i][0] - 'a'), NULL)));
        cr_assert(zero(int, bp_archive_write(file.archive, names[i], 1)));
        cr_assert(zero(int, bp_archive_end(file.archive, &bytes, NULL)));
    }
    archive_file_finish(&file);
    cr_assert(eq(int, bp_archive_reader_open(file.fd, file.path, &reader, NULL), BUGPACK_OK));
    for (size_t i = 0; i < 4; i++) {
        const char expected[] = {(char)('a' + i), '\0'};
        cr_expect(eq(str, bp_archive_reader_member(reader, i).name, expected));
        expect_content(reader, expected, expected, 1);
    }
    bp_archive_reader_free(reader);
}

Test(reader_of_whole, stops_when_the_sink_says_so_and_can_be_used_again) {
    size_t taken = 0;
    cr_expect(eq(int,
                 bp_archive_reader_read(reader_of_whole, 0, 100, refuse_bytes, &taken, &failure),
                 BUGPACK_ERR_CANCELLED));
    cr_expect(eq(sz, taken, 9));
    expect_content(reader_of_whole, members[1].name, members[1].content,
                   strlen(members[1].content));
}

/* --- entries that give more or other bytes than they declare; what else is no report:
 * fixtures/hostile --- */

static const made_member named[] = {
    {"abcd", "content of the first", false},
    {"efgh", "content of the second, again and again and again", true}};

Test(reader, refuses_names_that_are_too_short_or_too_long) {
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

Test(reader, never_gives_more_than_an_entry_declares) {
    char large[60001];
    const made_member both[] = {named[0], {"efgh", large, true}};
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
        made_zip zip;
        size_t given;
        made_zip_build(&zip, both, 2);
        made_zip_put32(&zip, zip.local[1] + 22, cases[i].declared);
        made_zip_put32(&zip, zip.central[1] + 24, cases[i].declared);
        cr_expect(eq(int, read_second(&zip, &given, &failure), BUGPACK_ERR_CORRUPT));
        cr_expect(le(sz, given, cases[i].declared));
        cr_expect(strstr(failure.message, "is damaged: entry \"efgh\"") != NULL, "%s",
                  failure.message);
    }
}
