/*
 * What is added comes out again, whoever reads it, and says the right time in every zone.
 */
#include "support/archive_file.h"
#include "support/zip_reader.h"
#include "unit/unit.h"

#include <time.h>

static const uint64_t second = 1000000000u;

enum { piece_bytes = 256 * 1024, max_bytes = 5 * piece_bytes };

static unsigned char text[max_bytes];
static unsigned char noise[max_bytes]; /* does not compress */
static unsigned char both[max_bytes];  /* noise between texts */

static void fill(void) {
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (unsigned char)"{ \"key\": 17 },\n"[i % 15];
    }
    archive_fill_noise(noise, sizeof noise);
    for (size_t i = 0; i < sizeof noise; i++) {
        both[i] = i / 100000 % 2 == 0 ? text[i] : noise[i];
    }
}

TestSuite(archive, .init = fill);

Test(archive, what_goes_in_comes_out_for_libzip_unzip_and_python) {
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, 1790000001 * second + 999, NULL); /* 2026-09-21T14:13:21Z */
    archive_file_add(&file, "metadata.json", text, 100000);
    archive_file_add(&file, "empty", NULL, 0);
    archive_file_add(&file, "logs/one", "1", 1);
    archive_file_add(&file, "screenshot.png", noise, 200000);
    archive_file_add(&file,
                     "gr\xc3\xb6\xc3\x9f"
                     "e",
                     "abcd", 4);
    archive_file_finish(&file);
    cr_expect(zip_holds(file.path, 5, "metadata.json", text, 100000));
    cr_expect(zip_holds(file.path, 5, "empty", "", 0));
    cr_expect(zip_holds(file.path, 5, "logs/one", "1", 1));
    cr_expect(zip_holds(file.path, 5, "screenshot.png", noise, 200000));
    cr_expect(zip_holds(file.path, 5,
                        "gr\xc3\xb6\xc3\x9f"
                        "e",
                        "abcd", 4));
    cr_expect(zip_passes_unzip(file.path));
    char list[2048] = "";
    cr_assert(zip_list(file.path, list, sizeof list));
    /* In the order of adding; deflated where that is smaller; UTF-8 flagged where it is needed. */
    cr_expect(eq(str, list,
                 "metadata.json|8|0|0o100600|2026-09-21 14:13:20|5554050001813bb16a|100000\n"
                 "empty|0|0|0o100600|2026-09-21 14:13:20|5554050001813bb16a|0\n"
                 "logs/one|0|0|0o100600|2026-09-21 14:13:20|5554050001813bb16a|1\n"
                 "screenshot.png|0|0|0o100600|2026-09-21 14:13:20|5554050001813bb16a|200000\n"
                 "gr\xc3\xb6\xc3\x9f"
                 "e|0|2048|0o100600|2026-09-21 14:13:20|5554050001813bb16a|4\n"));
}

/*
 * Zones that are far away, one of the kind whose gmtime counts leap seconds, and one that skips the
 * hour from 02:00 on 2026-03-29, in which libzip cannot say a time in UTC.
 */
static const char *const zones[] = {"UTC", "<+14>-14", "<-12>12", "right/UTC",
                                    "CET-1CEST,M3.5.0,M10.5.0/3"};

static void expect_line(uint64_t wall_ns, const char *expected) {
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, wall_ns, NULL);
    archive_file_add(&file, "entry", "x", 1);
    archive_file_finish(&file);
    char list[512] = "";
    cr_assert(zip_list(file.path, list, sizeof list));
    cr_expect(eq(str, list, expected));
}

Test(archive, times_are_utc_whatever_the_zone_of_the_process) {
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        (void)setenv("TZ", zones[i], 1);
        tzset();
        expect_line(1774751400 * second, /* 2026-03-29 02:30:00 */
                    zones[i][0] == 'C'
                        ? "entry|0|0|0o100600|2026-03-29 03:30:00|5554050001a88ec869|1\n"
                        : "entry|0|0|0o100600|2026-03-29 02:30:00|5554050001a88ec869|1\n");
        expect_line(1782864001 * second,
                    "entry|0|0|0o100600|2026-07-01 00:00:00|55540500018158446a|1\n");
    }
}

Test(archive, the_exact_time_is_in_the_local_header_too) {
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, 1774751401 * second, NULL);
    archive_file_add(&file, "entry", "x", 1);
    archive_file_finish(&file);
    unsigned char header[30 + 5 + 9];
    cr_assert(eq(sz, temp_dir_read(&file.dir, "t.zip", header, sizeof header), sizeof header));
    cr_expect(eq(int, memcmp(header, "PK\3\4", 4), 0));
    /* 02:30:00 on 2026-03-29 */
    cr_expect(eq(int, memcmp(header + 10, "\xc0\x13\x7d\x5c", 4), 0));
    cr_expect(eq(int, memcmp(header + 35, "UT\5\0\1\xa9\x8e\xc8\x69", 9), 0));
}

Test(archive, times_outside_what_the_fields_can_say_are_clamped_or_left_out) {
    expect_line(0, "entry|0|0|0o100600|1980-01-01 00:00:00|555405000100000000|1\n");
    expect_line(315532799 * second,
                "entry|0|0|0o100600|1980-01-01 00:00:00|5554050001ffa5ce12|1\n");
    expect_line(315532800 * second,
                "entry|0|0|0o100600|1980-01-01 00:00:00|555405000100a6ce12|1\n");
    expect_line(2147483647 * second,
                "entry|0|0|0o100600|2038-01-19 03:14:06|5554050001ffffff7f|1\n");
    expect_line(2147483648 * second, "entry|0|0|0o100600|2038-01-19 03:14:08||1\n");
    expect_line(4354819198 * second, "entry|0|0|0o100600|2107-12-31 23:59:58||1\n");
    expect_line(4354819200 * second, "entry|0|0|0o100600|2107-12-31 23:59:58||1\n");
    expect_line(UINT64_MAX, "entry|0|0|0o100600|2107-12-31 23:59:58||1\n");
}

/* Sizes about those of a piece and of a stored block. */
Test(archive, what_goes_in_comes_out_at_every_size) {
    static const size_t sizes[] = {0,      1,      2,           100,    65535,           65536,
                                   131070, 262143, piece_bytes, 262145, 2 * piece_bytes, max_bytes};
    enum { size_count = sizeof sizes / sizeof sizes[0] };
    static const unsigned char *const kinds[] = {text, noise, both};
    for (size_t kind = 0; kind < 3; kind++) {
        CLEANUP(archive_file_end) archive_file file;
        archive_file_start(&file, second, NULL);
        for (size_t i = 0; i < size_count; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "%zu", i);
            archive_file_add(&file, name, kinds[kind], sizes[i]);
        }
        archive_file_finish(&file);
        for (size_t i = 0; i < size_count; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "%zu", i);
            cr_expect(zip_holds(file.path, size_count, name, kinds[kind], sizes[i]), "%zu of %zu",
                      sizes[i], kind);
        }
        cr_expect(zip_passes_unzip(file.path));
    }
}

Test(archive, what_is_written_in_pieces_of_any_size_is_the_same_entry) {
    CLEANUP(archive_file_end) archive_file file;
    uint64_t bytes = 0;
    archive_file_start(&file, second, NULL);
    cr_assert(zero(int, bp_archive_begin(file.archive, "entry", 0, NULL)));
    for (size_t at = 0, step = 1; at < max_bytes; at += step, step = step * 7 % 100003) {
        step = step < max_bytes - at ? step : max_bytes - at;
        cr_assert(zero(int, bp_archive_write(file.archive, both + at, step)));
    }
    cr_assert(zero(int, bp_archive_end(file.archive, &bytes, NULL)));
    cr_expect(eq(u64, bytes, max_bytes));
    archive_file_finish(&file);
    cr_expect(zip_holds(file.path, 1, "entry", both, max_bytes));
}

Test(archive, noise_costs_little_more_than_itself) {
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, second, NULL);
    archive_file_add(&file, "noise", noise, max_bytes);
    archive_file_add(&file, "text", text, max_bytes);
    archive_file_finish(&file);
    off_t size = lseek(file.fd, 0, SEEK_END);
    cr_expect(lt(i64, size, max_bytes + max_bytes / 20));
}

Test(archive, entries_are_listed_by_rank_whatever_order_they_are_written_in) {
    static const struct {
        const char *name;
        unsigned rank;
    } entries[] = {{"c", 7}, {"manifest.json", UINT32_MAX}, {"a", 0}, {"d", 7}, {"b", 1}};
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, 1774751400 * second, NULL);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        uint64_t bytes;
        cr_assert(
            zero(int, bp_archive_begin(file.archive, entries[i].name, entries[i].rank, NULL)));
        cr_assert(zero(int, bp_archive_write(file.archive, text, 1000 * i)));
        cr_assert(zero(int, bp_archive_end(file.archive, &bytes, NULL)));
    }
    archive_file_finish(&file);
    char command[400];
    char output[512] = "";
    (void)snprintf(command, sizeof command, "unzip -Z1 '%s'", file.path);
    cr_assert(eq(int, command_output(command, output, sizeof output), 0));
    cr_expect(eq(str, output, "a\nb\nc\nd\nmanifest.json\n"));
    cr_expect(zip_holds(file.path, 5, "d", text, 3000));
    cr_expect(zip_passes_unzip(file.path));
}

/* Doubles each 'a', and holds one byte back until the end. */
struct doubler {
    unsigned end_count;
    char held;
};

static bugpack_status pass_doubled(void *context, const char *entry, const void *bytes,
                                   size_t byte_count, bp_sink *pass_on, void *archive) {
    struct doubler *doubler = context;
    const char *next = bytes;
    cr_assert(eq(str, entry, "entry"));
    if (bytes == NULL) {
        doubler->end_count++;
        return pass_on(archive, &doubler->held, 1);
    }
    for (size_t i = 0; i < byte_count; i++) {
        if (doubler->held != '\0') {
            (void)pass_on(archive, &doubler->held, 1);
        }
        if (next[i] == 'a') {
            (void)pass_on(archive, "a", 1);
        }
        doubler->held = next[i];
    }
    return BUGPACK_OK;
}

static bugpack_status refuse(void *context, const char *entry, const void *bytes, size_t byte_count,
                             bp_sink *pass_on, void *archive) {
    (void)context;
    (void)entry;
    (void)byte_count;
    (void)pass_on;
    (void)archive;
    return bytes == NULL ? BUGPACK_ERR_NO_MEMORY : BUGPACK_OK;
}

Test(archive, a_filter_changes_what_is_counted_and_written) {
    struct doubler doubler = {0, '\0'};
    CLEANUP(archive_file_end) archive_file file;
    uint64_t bytes = 0;
    archive_file_start(&file, second, NULL);
    bp_archive_set_filter(file.archive, pass_doubled, &doubler);
    cr_assert(zero(int, bp_archive_begin(file.archive, "entry", 0, NULL)));
    cr_assert(zero(int, bp_archive_write(file.archive, "ban", 3)));
    cr_assert(zero(int, bp_archive_write(file.archive, "ana", 3)));
    cr_assert(zero(int, bp_archive_end(file.archive, &bytes, NULL)));
    cr_expect(eq(u64, bytes, 9));
    cr_expect(eq(uint, doubler.end_count, 1));
    archive_file_finish(&file);
    cr_expect(zip_holds(file.path, 1, "entry", "baanaanaa", 9));
}

Test(archive, a_filter_that_fails_costs_the_entry) {
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, second, NULL);
    bp_archive_set_filter(file.archive, refuse, NULL);
    cr_expect(eq(int, archive_file_try(&file, "one", "x", 1, &failure), BUGPACK_ERR_NO_MEMORY));
    cr_expect(strstr(failure.message, file.path) != NULL, "%s", failure.message);
    bp_archive_set_filter(file.archive, NULL, NULL);
    archive_file_add(&file, "two", "x", 1);
    archive_file_finish(&file);
    cr_expect(zip_holds(file.path, 1, "two", "x", 1));
}
