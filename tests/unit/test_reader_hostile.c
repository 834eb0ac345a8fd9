/*
 * Zips that are no reports: what libzip would accept, and what it would choke on.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/directory.h"
#include "archive/reader.h"
#include "support/made_zip.h"

static const made_member members[] = {
    {"abcd", "content of the first", false},
    {"efgh", "content of the second, again and again and again", true}};

static bugpack_status try_bytes(const void *bytes, size_t byte_count, bugpack_error *error) {
    bp_archive_reader *reader = NULL;
    int fd = made_zip_file(bytes, byte_count);
    cr_assert(ge(int, fd, 0));
    bugpack_status status = bp_archive_reader_open(fd, "t.zip", &reader, error);
    if (status != BUGPACK_OK) {
        cr_expect(eq(ptr, reader, NULL), "an output was touched");
    }
    bp_archive_reader_free(reader);
    (void)close(fd);
    return status;
}

/* It is refused, with this sentence behind the file's name; then it is released. */
static void expect_refusal(made_zip *zip, const char *why) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = try_bytes(zip->bytes.data, zip->bytes.size, &error);
    cr_expect(eq(int, status, BUGPACK_ERR_CORRUPT), "not refused: %s", why);
    cr_expect(strstr(error.message, why) != NULL, "<%s> does not say: %s", error.message, why);
    made_zip_release(zip);
}

/* A name of four bytes in both headers of the first entry. */
static void build_named(made_zip *zip, const char *name) {
    made_zip_build(zip, members, 2);
    memcpy(zip->bytes.data + zip->local[0] + 30, name, 4);
    memcpy(zip->bytes.data + zip->central[0] + 46, name, 4);
}

Test(reader_hostile, refuses_names_that_lead_elsewhere) {
    static const struct {
        const char *name, *why;
    } cases[] = {{"../x", "a component that is empty, \".\" or \"..\""},
                 {"/abs", "a component that is empty"},
                 {"a/..", "a component that is empty"},
                 {"./ab", "a component that is empty"},
                 {"a//b", "a component that is empty"},
                 {"abc/", "it is a directory"},
                 {"..\\x", "a backslash"},
                 {"C:ab", "a colon"},
                 {"a\nbc", "a control character"},
                 {"a\x1b[m", "a control character"},
                 {"ab\0c", "a control character"},
                 {"ab\xff\xfe", "not valid UTF-8"},
                 {"EFGH", "two entries are called"},
                 {"efgh", "two entries are called"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made_zip zip;
        build_named(&zip, cases[i].name);
        expect_refusal(&zip, cases[i].why);
    }
}

Test(reader_hostile, refuses_names_that_are_too_short_or_too_long) {
    char name[302];
    made_member one[] = {{"", "x", false}};
    made_zip zip;
    made_zip_build(&zip, one, 1);
    expect_refusal(&zip, "1 to 255 bytes");
    memset(name, 'a', sizeof name);
    name[256] = '\0';
    one[0].name = name;
    made_zip_build(&zip, one, 1);
    expect_refusal(&zip, "1 to 255 bytes");
    bugpack_error error = BUGPACK_ERROR_INIT;
    name[255] = '\0';
    made_zip_build(&zip, one, 1);
    cr_expect(eq(int, try_bytes(zip.bytes.data, zip.bytes.size, &error), BUGPACK_OK));
    made_zip_release(&zip);
}

/* A field of the first entry in both of its headers, or (`local` < 0) in the directory alone. */
typedef struct lie {
    int local, central;
    unsigned bytes;
    uint32_t value;
    const char *why;
} lie;

static void tell(made_zip *zip, size_t at, const lie *what) {
    if (what->bytes == 2) {
        made_zip_put16(zip, at, what->value);
    } else {
        made_zip_put32(zip, at, what->value);
    }
}

Test(reader_hostile, refuses_what_is_no_plain_file) {
    static const lie lies[] = {
        {-1, 38, 4, (uint32_t)(S_IFLNK | 0777) << 16, "it is a symbolic link"},
        {-1, 38, 4, (uint32_t)(S_IFDIR | 0755) << 16, "it is a directory"},
        {-1, 38, 4, (uint32_t)(S_IFIFO | 0600) << 16, "it is no regular file"},
        {-1, 38, 4, 0x10, "it is a directory"},
        {6, 8, 2, 1u << 11 | 1u, "it is encrypted"},
        {6, 8, 2, 1u << 11 | 1u << 3, "its sizes stand behind its bytes"},
        {6, 8, 2, 1u << 11 | 1u << 6, "flagged in a way that is not known"},
        {6, 8, 2, 1u << 13, "flagged in a way that is not known"},
        {8, 10, 2, 1, "neither stored nor deflated"},
        {8, 10, 2, 12, "neither stored nor deflated"},
        {8, 10, 2, 99, "neither stored nor deflated"},
        {-1, 32, 2, 3, "its header is damaged"},
        {-1, 34, 2, 1, "it has a comment, or is in another file"}};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        made_zip zip;
        made_zip_build(&zip, members, 2);
        tell(&zip, zip.central[0] + (size_t)lies[i].central, &lies[i]);
        if (lies[i].local >= 0) {
            tell(&zip, zip.local[0] + (size_t)lies[i].local, &lies[i]);
        }
        /* A comment swallows bytes of the next header, so where it bites depends on the check. */
        expect_refusal(&zip, i == 11 ? "\"t.zip\" is no report" : lies[i].why);
    }
}

Test(reader_hostile, refuses_a_name_beyond_ascii_that_is_not_marked) {
    made_member one[] = {{"\xc3\xa9", "x", false}};
    made_zip zip;
    made_zip_build(&zip, one, 1);
    made_zip_put16(&zip, zip.local[0] + 6, 0);
    made_zip_put16(&zip, zip.central[0] + 8, 0);
    expect_refusal(&zip, "its name is not marked as UTF-8");
}

Test(reader_hostile, refuses_two_headers_that_differ) {
    static const lie lies[] = {{6, -1, 2, 0, "its two headers differ"},
                               {8, -1, 2, 8, "its two headers differ"},
                               {10, -1, 4, 1, "its two headers differ"},
                               {14, -1, 4, 1, "its two headers differ"},
                               {18, -1, 4, 1, "its two headers differ"},
                               {22, -1, 4, 1, "its two headers differ"},
                               {0, -1, 4, 1, "its bytes are not where they should be"},
                               {26, -1, 2, 3, "it has two names"},
                               {30, -1, 2, 0x4141, "it has two names"}};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        made_zip zip;
        made_zip_build(&zip, members, 2);
        tell(&zip, zip.local[0] + (size_t)lies[i].local, &lies[i]);
        /* A shorter name moves the bytes; either is a reason. */
        expect_refusal(&zip, lies[i].why);
    }
}

Test(reader_hostile, refuses_entries_that_overlap_or_whose_places_are_swapped) {
    made_zip zip;
    made_zip_build(&zip, members, 2);
    made_zip_put32(&zip, zip.central[1] + 42, (uint32_t)zip.local[0]);
    expect_refusal(&zip, "its bytes are not where they should be");
    made_zip_build(&zip, members, 2);
    made_zip_put32(&zip, zip.central[0] + 42, (uint32_t)zip.local[1]);
    made_zip_put32(&zip, zip.central[1] + 42, (uint32_t)zip.local[0]);
    expect_refusal(&zip, "it has two names");
    made_zip_build(&zip, members, 2);
    made_zip_put32(&zip, zip.central[1] + 42, UINT32_MAX - 1);
    expect_refusal(&zip, "its bytes are not where they should be");
}

/* The bytes of one entry are the whole of another: each is good by itself. */
Test(reader_hostile, refuses_a_quoted_overlap) {
    made_zip inner, outer;
    made_zip_build(&inner, &members[1], 1);
    bp_buffer quoted;
    bp_buffer_init(&quoted, 4096);
    for (size_t i = 0; i < inner.directory; i++) { /* as a text, so that it can be a member */
        (void)bp_buffer_append_char(&quoted, inner.bytes.data[i] != 0 ? inner.bytes.data[i] : ' ');
    }
    const made_member both[] = {{"abcd", bp_buffer_text(&quoted), false}, members[1]};
    made_zip_build(&outer, both, 1);
    size_t content = outer.local[0] + 30 + 4;
    memcpy(outer.bytes.data + content, inner.bytes.data, inner.directory);
    size_t entry_bytes = 46 + 4;
    made_zip_insert(&outer, outer.end, inner.bytes.data + inner.central[0], entry_bytes);
    made_zip_put32(&outer, outer.end + 42, (uint32_t)content);
    outer.end += entry_bytes;
    made_zip_put16(&outer, outer.end + 8, 2);
    made_zip_put16(&outer, outer.end + 10, 2);
    made_zip_put32(&outer, outer.end + 12, (uint32_t)(2 * entry_bytes));
    expect_refusal(&outer, "\"efgh\": its bytes are not where they should be");
    bp_buffer_release(&quoted);
    made_zip_release(&inner);
}

Test(reader_hostile, refuses_bytes_before_between_and_behind) {
    made_zip zip;
    made_zip_build(&zip, members, 2);
    made_zip_insert(&zip, 0, "#!/bin/sh\n", 10);
    expect_refusal(&zip, "its directory is not where its end says");
    made_zip_build(&zip, members, 2);
    made_zip_insert(&zip, zip.directory, "secret", 6);
    made_zip_put32(&zip, zip.end + 6 + 16, (uint32_t)zip.directory + 6);
    expect_refusal(&zip, "between its entries and its directory");
    made_zip_build(&zip, members, 2);
    made_zip_insert(&zip, zip.bytes.size, "x", 1);
    expect_refusal(&zip, "it is no zip");
    made_zip_build(&zip, members, 2);
    made_zip_put16(&zip, zip.end + 20, 4);
    made_zip_insert(&zip, zip.bytes.size, "note", 4);
    expect_refusal(&zip, "it is no zip");
}

Test(reader_hostile, refuses_a_second_name_and_broken_extra_fields) {
    static const struct {
        unsigned char extra[9];
        const char *why;
    } cases[] = {{{0x75, 0x70, 5, 0, 1, 0, 0, 0, 0}, "it has a second name"},
                 {{0x75, 0x63, 5, 0, 1, 0, 0, 0, 0}, "it has a second name"},
                 {{0x55, 0x54, 6, 0, 1, 0, 0, 0, 0}, "its extra fields are damaged"},
                 {{0x55, 0x54, 2, 0, 1, 0, 0, 0, 0}, "its extra fields are damaged"},
                 {{0x01, 0x00, 5, 0, 1, 0, 1, 0, 0}, "it has other sizes"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made_zip zip;
        made_zip_build(&zip, members, 2);
        made_zip_put16(&zip, zip.central[1] + 30, sizeof cases[i].extra);
        made_zip_put32(&zip, zip.end + 12,
                       made_zip_get32(&zip, zip.end + 12) + (uint32_t)sizeof cases[i].extra);
        made_zip_insert(&zip, zip.central[1] + 46 + 4, cases[i].extra, sizeof cases[i].extra);
        expect_refusal(&zip, cases[i].why);
    }
}

Test(reader_hostile, refuses_an_empty_archive_and_counts_that_lie) {
    made_zip zip;
    bugpack_error error = BUGPACK_ERROR_INIT;
    made_zip_build(&zip, members, 0);
    expect_refusal(&zip, "it is empty");
    cr_expect(eq(int, try_bytes("", 0, &error), BUGPACK_ERR_CORRUPT));
    static const struct {
        size_t at; /* in the end */
        unsigned value;
        const char *why;
    } cases[] = {{8, 1, "in several files"},
                 {4, 1, "in several files"},
                 {6, 1, "in several files"},
                 {12, 7, "its directory is not where"},
                 {16, 0, "its directory is not where"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made_zip_build(&zip, members, 2);
        made_zip_put16(&zip, zip.end + cases[i].at, cases[i].value);
        expect_refusal(&zip, cases[i].why);
    }
    for (unsigned count = 1; count < 5; count++) {
        made_zip_build(&zip, members, 2);
        made_zip_put16(&zip, zip.end + 8, count == 2 ? 20000 : count);
        made_zip_put16(&zip, zip.end + 10, count == 2 ? 20000 : count);
        expect_refusal(&zip, count == 2 ? "more entries than a report may have"
                                        : "its directory is damaged");
    }
}

Test(reader_hostile, refuses_a_zip64_end) {
    static const char zip64_end[76] = "PK\6\6";
    made_zip zip;
    made_zip_build(&zip, members, 2);
    made_zip_put16(&zip, zip.end + 8, UINT16_MAX);
    made_zip_put16(&zip, zip.end + 10, UINT16_MAX);
    made_zip_put32(&zip, zip.end + 12, UINT32_MAX);
    made_zip_put32(&zip, zip.end + 16, UINT32_MAX);
    made_zip_insert(&zip, zip.end, zip64_end, sizeof zip64_end);
    expect_refusal(&zip, "its directory is not where");
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

Test(reader_hostile, refuses_a_wrong_checksum_and_broken_data) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    made_zip zip;
    size_t given;
    made_zip_build(&zip, members, 2);
    made_zip_put32(&zip, zip.local[1] + 14, 1);
    made_zip_put32(&zip, zip.central[1] + 16, 1);
    cr_expect(eq(int, read_second(&zip, &given, &error), BUGPACK_ERR_CORRUPT));
    made_zip_build(&zip, members, 2);
    made_zip_put32(&zip, zip.local[1] + 34, UINT32_MAX);
    cr_expect(eq(int, read_second(&zip, &given, &error), BUGPACK_ERR_CORRUPT));
}

/* Two stored blocks of deflate that fill what is read in one step, and a byte behind them. */
/* libzip 1.7.3 takes 2.9 GB of memory before it refuses such a file. */
Test(reader_hostile, refuses_four_gibibytes_of_nothing_without_reading_them) {
    bp_archive_reader *reader = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    int fd = made_zip_file("PK\3\4", 4);
    if (ftruncate(fd, (off_t)4 << 30) != 0) {
        (void)close(fd);
        cr_skip("this file system has no sparse files of 4 GiB");
    }
    cr_expect(eq(int, bp_archive_reader_open(fd, "t.zip", &reader, &error), BUGPACK_ERR_CORRUPT));
    (void)close(fd);
}
