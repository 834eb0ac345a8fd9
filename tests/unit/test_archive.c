/*
 * What is added comes out again, whoever reads it, and says the right time in every zone.
 */
#include "support/archive_file.h"
#include "support/zip_reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const uint64_t second = 1000000000u;

static char text[100000];
static unsigned char noise[200000]; /* does not compress */

static void fill(void) {
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = "{ \"key\": 17 },\n"[i % 15];
    }
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < sizeof noise; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise[i] = (unsigned char)(state >> 32);
    }
}

TestSuite(archive, .init = fill);

Test(archive, what_goes_in_comes_out_for_libzip_unzip_and_python) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    uint64_t when = 1790000001 * second + 999; /* 2026-09-21T14:13:21Z */
    archive_file_add(&file, "metadata.json", text, sizeof text, when);
    archive_file_add(&file, "empty", NULL, 0, when);
    archive_file_add(&file, "logs/one", "1", 1, when);
    archive_file_add(&file, "screenshot.png", noise, sizeof noise, when);
    archive_file_add(&file,
                     "gr\xc3\xb6\xc3\x9f"
                     "e",
                     "abcd", 4, when);
    archive_file_finish(&file);
    cr_expect(zip_holds(file.path, 5, "metadata.json", text, sizeof text));
    cr_expect(zip_holds(file.path, 5, "empty", "", 0));
    cr_expect(zip_holds(file.path, 5, "logs/one", "1", 1));
    cr_expect(zip_holds(file.path, 5, "screenshot.png", noise, sizeof noise));
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
    archive_file_end(&file);
}

/*
 * Zones that are far away, one that skips the hour from 02:00 on 2026-03-29, and one of the kind
 * whose gmtime counts leap seconds.
 */
static const char *const zones[] = {"UTC", "<+14>-14", "<-12>12", "CET-1CEST,M3.5.0,M10.5.0/3",
                                    "right/UTC"};

Test(archive, times_are_utc_whatever_the_zone_of_the_process) {
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        (void)setenv("TZ", zones[i], 1);
        tzset();
        archive_file file;
        archive_file_start(&file, NULL, NULL);
        archive_file_add(&file, "skipped", "x", 1, 1774751400 * second); /* 2026-03-29 02:30:00 */
        archive_file_add(&file, "summer", "x", 1, 1782864001 * second);
        archive_file_finish(&file);
        char list[512] = "";
        cr_assert(zip_list(file.path, list, sizeof list));
        cr_expect(eq(str, list,
                     "skipped|0|0|0o100600|2026-03-29 02:30:00|5554050001a88ec869|1\n"
                     "summer|0|0|0o100600|2026-07-01 00:00:00|55540500018158446a|1\n"),
                  "%s", zones[i]);
        archive_file_end(&file);
    }
}

Test(archive, the_exact_time_is_in_the_local_header_too) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    archive_file_add(&file, "entry", "x", 1, 1774751401 * second);
    archive_file_finish(&file);
    unsigned char header[30 + 5 + 9];
    cr_assert(eq(sz, temp_dir_read(&file.dir, "t.zip", header, sizeof header), sizeof header));
    cr_expect(eq(int, memcmp(header, "PK\3\4", 4), 0));
    /* 02:30:00 on 2026-03-29 */
    cr_expect(eq(int, memcmp(header + 10, "\xc0\x13\x7d\x5c", 4), 0));
    cr_expect(eq(int, memcmp(header + 35, "UT\5\0\1\xa9\x8e\xc8\x69", 9), 0));
    archive_file_end(&file);
}

Test(archive, unzip_lists_the_same_time_in_utc_and_the_readers_own_in_his_zone) {
    (void)setenv("TZ", "<+14>-14", 1);
    tzset();
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    archive_file_add(&file, "entry", "x", 1, 1774751400 * second);
    archive_file_finish(&file);
    char command[400];
    char output[512] = "";
    (void)snprintf(command, sizeof command, "TZ=UTC unzip -l '%s'", file.path);
    cr_assert(eq(int, command_output(command, output, sizeof output), 0));
    cr_expect(strstr(output, "2026-03-29 02:30") != NULL, "%s", output);
    (void)snprintf(command, sizeof command, "TZ=BRT3 unzip -l '%s'", file.path);
    cr_assert(eq(int, command_output(command, output, sizeof output), 0));
    cr_expect(strstr(output, "2026-03-28 23:30") != NULL, "%s", output);
    archive_file_end(&file);
}

Test(archive, times_outside_what_the_fields_can_say_are_clamped_or_left_out) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    archive_file_add(&file, "1970", "x", 1, 0);
    archive_file_add(&file, "1979", "x", 1, 315532799 * second);
    archive_file_add(&file, "1980", "x", 1, 315532800 * second);
    archive_file_add(&file, "2038", "x", 1, 2147483647 * second);
    archive_file_add(&file, "2038+", "x", 1, 2147483648 * second);
    archive_file_add(&file, "2107", "x", 1, 4354819198 * second);
    archive_file_add(&file, "2108", "x", 1, 4354819200 * second);
    archive_file_add(&file, "last", "x", 1, UINT64_MAX);
    archive_file_finish(&file);
    char list[2048] = "";
    cr_assert(zip_list(file.path, list, sizeof list));
    cr_expect(eq(str, list,
                 "1970|0|0|0o100600|1980-01-01 00:00:00|555405000100000000|1\n"
                 "1979|0|0|0o100600|1980-01-01 00:00:00|5554050001ffa5ce12|1\n"
                 "1980|0|0|0o100600|1980-01-01 00:00:00|555405000100a6ce12|1\n"
                 "2038|0|0|0o100600|2038-01-19 03:14:06|5554050001ffffff7f|1\n"
                 "2038+|0|0|0o100600|2038-01-19 03:14:08||1\n"
                 "2107|0|0|0o100600|2107-12-31 23:59:58||1\n"
                 "2108|0|0|0o100600|2107-12-31 23:59:58||1\n"
                 "last|0|0|0o100600|2107-12-31 23:59:58||1\n"));
    archive_file_end(&file);
}

/* More than 65,535 entries need zip64's end record. */
Test(archive, holds_more_entries_than_a_plain_zip_can_count) {
    enum { entry_count = 65600 };
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    for (unsigned i = 0; i < entry_count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u", i);
        archive_file_add(&file, name, text, i % 7, 1774751400 * second);
    }
    archive_file_finish(&file);
    cr_expect(zip_holds(file.path, entry_count, "65599", text, 65599 % 7));
    cr_expect(zip_passes_unzip(file.path));
    archive_file_end(&file);
}

/* 100,000 equal bytes, as they are and behind the first bytes of a PNG. */
Test(archive, what_is_deflated_already_is_stored_without_trying) {
    static char content[100000];
    for (int is_png = 0; is_png < 2; is_png++) {
        memset(content, 'a', sizeof content);
        if (is_png) {
            memcpy(content, "\x89PNG\r\n\x1a\n", 8);
        }
        archive_file file;
        archive_file_start(&file, NULL, NULL);
        archive_file_add(&file, "entry", content, sizeof content, 1774751401 * second);
        archive_file_finish(&file);
        struct stat status;
        cr_assert(zero(int, stat(file.path, &status)));
        cr_expect(eq(int, status.st_size > (off_t)sizeof content, is_png));
        cr_expect(zip_holds(file.path, 1, "entry", content, sizeof content));
        archive_file_end(&file);
    }
}
