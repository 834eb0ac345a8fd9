/*
 * Which names are reports of an app, and what goes from a directory that is over its bounds, also
 * when somebody has filled it with traps.
 */
#include "report/retention.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "report/name.h"
#include "support/not_tried.h"
#include "unit/dir.h"

static const uint64_t now_ns = 1795221411 * BP_NS_PER_SEC; /* 2026-11-21T00:36:51Z */

DIR_SUITE(retain);

Test(name_parse, reads_back_what_was_composed) {
    static const struct {
        bp_report_kind kind;
        const char *detail;
    } made[] = {{BP_REPORT_BUGREPORT, NULL},     {BP_REPORT_PEDANTIC, "display:unimpl:draw_rop3"},
                {BP_REPORT_DISCONNECT, "main"},  {BP_REPORT_NOTIFICATION, NULL},
                {BP_REPORT_AUTO_SNAPSHOT, NULL}, {BP_REPORT_CRASH, NULL},
                {BP_REPORT_EXIT, NULL}};
    static const uint64_t times[] = {0, 951782400, 1709251199, 1795221411, 4107542399, 18429724799};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        for (size_t j = 0; j < sizeof times / sizeof times[0]; j++) {
            char name[BP_NAME_STEM_BYTES + 16];
            bp_report_name parsed;
            bp_name_report_stem("my app", made[i].kind, made[i].detail, times[j] * BP_NS_PER_SEC,
                                name);
            (void)snprintf(name + strlen(name), 16, "%s", j % 2 == 0 ? ".zip" : "-17.zip");
            cr_assert(bp_name_parse_report(name, &parsed), "%s", name);
            cr_assert(eq(sz, parsed.app_bytes, strlen("my-app")));
            cr_assert(eq(int, parsed.kind, (int)made[i].kind));
            cr_assert(eq(u64, parsed.wall_secs, times[j]), "%s", name);
            cr_assert(eq(uint, parsed.number, j % 2 == 0 ? 1 : 17));
        }
    }
}

Test(name_parse, refuses_what_is_not_quite_a_report_and_what_may_be_anothers) {
    static const char *const names[] = {
        "",
        ".zip",
        "-2.zip",
        "bugreport-2026-11-21T00-36-51Z.zip",
        "-bugreport-2026-11-21T00-36-51Z.zip",
        ".a-bugreport-2026-11-21T00-36-51Z.zip",
        "a-bugreport-2026-11-21T00-36-51Z",
        "a-bugreport-2026-11-21T00-36-51Z.zip.part",
        "a-bugreport-2026-11-21T00-36-51Z.ZIP",
        "a-bugreport-2026-11-21T00-36-51.zip",
        "a-bugreport-2026-02-29T00-36-51Z.zip",
        "a-bugreport-2026-13-21T00-36-51Z.zip",
        "a-bugreport-2026-00-21T00-36-51Z.zip",
        "a-bugreport-2026-11-00T00-36-51Z.zip",
        "a-bugreport-2026-11-21T24-00-00Z.zip",
        "a-bugreport-2026-11-21T00-36-61Z.zip",
        "a-bugreport-1969-11-21T00-36-51Z.zip",
        "a-bugreport-9999-11-21T00-36-51Z.zip",
        "a-bugreport-2026-11-21T00-36-51Z-1.zip",
        "a-bugreport-2026-11-21T00-36-51Z-02.zip",
        "a-bugreport-2026-11-21T00-36-51Z-10000.zip",
        "a-bugreport-2026-11-21T00-36-51Z-2-2.zip",
        "a-bugreport-detail-2026-11-21T00-36-51Z.zip",
        "a-pedantic-2026-11-21T00-36-51Z.zip",
        "a-pedantic--2026-11-21T00-36-51Z.zip.",
        "a-report-2026-11-21T00-36-51Z.zip",
        "a b-bugreport-2026-11-21T00-36-51Z.zip",
        "a-pedantic-b\n-2026-11-21T00-36-51Z.zip",
        "a-pedantic-b-crash-2026-11-21T00-36-51Z.zip",
        "a-pedantic-b-disconnect-c-2026-11-21T00-36-51Z.zip",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bp_report_name parsed = {.number = 4711};
        cr_assert(not(bp_name_parse_report(names[i], &parsed)), "%s", names[i]);
        cr_assert(eq(uint, parsed.number, 4711));
    }
}

/* A report of `byte_count` bytes, by its name. */
static void make(const char *name, size_t byte_count) {
    static const char bytes[4096];
    cr_assert(temp_dir_write(&dir, name, bytes, byte_count), "%s", name);
}

static void set_time(const char *name, long milliseconds) {
    const struct timespec at = {1700000000 + milliseconds / 1000, milliseconds % 1000 * 1000000};
    const struct timespec times[2] = {at, at};
    cr_assert(zero(int, utimensat(dir.fd, name, times, 0)));
}

static bp_retention_policy policy_of(const char *app, uint32_t max_count, uint64_t max_bytes) {
    return (bp_retention_policy){.app = app,
                                 .kinds = BP_RETENTION_ALL_KINDS,
                                 .first_kinds = BP_RETENTION_AUTOMATIC_KINDS,
                                 .max_count = max_count,
                                 .max_bytes = max_bytes,
                                 .now_wall_ns = now_ns};
}

static bp_retention_outcome prune(const bp_retention_policy *policy) {
    bp_retention_outcome outcome;
    cr_assert(
        zero(int, bp_retention_prune(dir.fd, dir.path, policy, NULL, NULL, &outcome, &failure)),
        "%s", failure.message);
    return outcome;
}

Test(retain, keeps_the_newest_by_count_with_numbers_read_as_numbers) {
    make("a-auto-snapshot-2026-11-20T00-00-00Z.zip", 1);
    make("a-auto-snapshot-2026-11-20T00-00-00Z-2.zip", 1);
    make("a-auto-snapshot-2026-11-20T00-00-00Z-10.zip", 1);
    make("a-auto-snapshot-2026-11-20T00-00-00Z-9.zip", 1);
    make("a-auto-snapshot-2026-11-19T23-59-59Z.zip", 1);
    set_time("a-auto-snapshot-2026-11-20T00-00-00Z.zip", 5);
    set_time("a-auto-snapshot-2026-11-20T00-00-00Z-2.zip", 5);
    set_time("a-auto-snapshot-2026-11-20T00-00-00Z-10.zip", 5);
    set_time("a-auto-snapshot-2026-11-20T00-00-00Z-9.zip", 5);
    bp_retention_policy policy = policy_of("a", 2, 0);
    bp_retention_outcome outcome = prune(&policy);
    cr_assert(eq(u64, outcome.removed_count, 3));
    cr_assert(eq(u64, outcome.count, 2));
    cr_assert(temp_dir_has(&dir, "a-auto-snapshot-2026-11-20T00-00-00Z-10.zip"));
    cr_assert(temp_dir_has(&dir, "a-auto-snapshot-2026-11-20T00-00-00Z-9.zip"));
}

Test(retain, knows_a_name_that_was_taken_again_within_a_second) {
    make("a-crash-2026-11-20T00-00-00Z.zip", 1);
    make("a-crash-2026-11-20T00-00-00Z-2.zip", 1);
    make("a-crash-2026-11-20T00-00-00Z-3.zip", 1);
    set_time("a-crash-2026-11-20T00-00-00Z.zip", 1010); /* the fourth */
    set_time("a-crash-2026-11-20T00-00-00Z-2.zip", 20);
    set_time("a-crash-2026-11-20T00-00-00Z-3.zip", 30);
    bp_retention_policy policy = policy_of("a", 2, 0);
    (void)prune(&policy);
    cr_assert(not(temp_dir_has(&dir, "a-crash-2026-11-20T00-00-00Z-2.zip")));
    cr_assert(eq(sz, temp_dir_count(&dir), 2));
}

Test(retain, keeps_the_newest_by_bytes_and_the_new_one_whatever_it_has) {
    make("a-crash-2026-11-18T00-00-00Z.zip", 1000);
    make("a-crash-2026-11-19T00-00-00Z.zip", 1000);
    make("a-crash-2026-11-20T00-00-00Z.zip", 1000);
    bp_retention_policy policy = policy_of("a", 0, 2000);
    cr_assert(eq(u64, prune(&policy).bytes, 2000));
    cr_assert(not(temp_dir_has(&dir, "a-crash-2026-11-18T00-00-00Z.zip")));
    policy.max_bytes = 10;
    policy.keep = "a-crash-2026-11-19T00-00-00Z.zip";
    cr_assert(eq(u64, prune(&policy).count, 1));
    cr_assert(temp_dir_has(&dir, policy.keep));
}

Test(retain, takes_what_was_automatic_before_what_a_person_asked_for) {
    make("a-bugreport-2026-11-01T00-00-00Z.zip", 1);
    make("a-notification-2026-11-02T00-00-00Z.zip", 1);
    make("a-pedantic-x-2026-11-20T00-00-00Z.zip", 1);
    make("a-disconnect-main-2026-11-19T00-00-00Z.zip", 1);
    bp_retention_policy policy = policy_of("a", 3, 0);
    (void)prune(&policy);
    cr_assert(not(temp_dir_has(&dir, "a-disconnect-main-2026-11-19T00-00-00Z.zip")));
    policy.max_count = 1;
    (void)prune(&policy);
    cr_assert(not(temp_dir_has(&dir, "a-bugreport-2026-11-01T00-00-00Z.zip")));
    cr_assert(temp_dir_has(&dir, "a-notification-2026-11-02T00-00-00Z.zip"));
    cr_assert(eq(sz, temp_dir_count(&dir), 1));
}

Test(retain, leaves_other_apps_other_kinds_and_foreign_files) {
    static const char *const others[] = {"viewer-pro-auto-snapshot-2026-11-01T00-00-00Z.zip",
                                         "viewe-auto-snapshot-2026-11-01T00-00-00Z.zip",
                                         "viewer-bugreport-2026-11-01T00-00-00Z.zip",
                                         "viewer-auto-snapshot-2026-11-01T00-00-00Z.zip.bak",
                                         "viewer-auto-snapshot-2026-11-01T00-00-00Z-x.zip",
                                         "holiday.zip"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        make(others[i], 10);
    }
    make("viewer-auto-snapshot-2026-11-01T00-00-00Z.zip", 10);
    make("viewer-auto-snapshot-2026-11-02T00-00-00Z.zip", 10);
    bp_retention_policy policy = policy_of("viewer", 1, 1);
    policy.kinds = BP_RETENTION_KIND(BP_REPORT_AUTO_SNAPSHOT);
    cr_assert(eq(u64, prune(&policy).removed_count, 2));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        cr_assert(temp_dir_has(&dir, others[i]), "%s", others[i]);
    }
    policy = policy_of(NULL, 1, 0);
    cr_assert(eq(u64, prune(&policy).count, 1));
    cr_assert(temp_dir_has(&dir, "holiday.zip"));
}

Test(retain, follows_no_link_and_touches_neither_a_fifo_nor_a_directory) {
    CLEANUP(temp_dir_remove) temp_dir elsewhere;
    cr_assert(temp_dir_make(&elsewhere));
    cr_assert(temp_dir_write(&elsewhere, "precious", "x", 1));
    char target[300];
    (void)snprintf(target, sizeof target, "%s/precious", elsewhere.path);
    cr_assert(zero(int, symlinkat(target, dir.fd, "a-crash-2026-11-01T00-00-00Z.zip")));
    cr_assert(zero(int, mkfifoat(dir.fd, "a-crash-2026-11-02T00-00-00Z.zip", 0600)));
    cr_assert(zero(int, mkdirat(dir.fd, "a-crash-2026-11-03T00-00-00Z.zip", 0700)));
    make("a-crash-2026-11-04T00-00-00Z.zip", 10);
    make("a-crash-2026-11-05T00-00-00Z.zip", 10);
    bp_retention_policy policy = policy_of("a", 1, 0);
    bp_retention_outcome outcome = prune(&policy);
    cr_assert(eq(u64, outcome.removed_count, 1));
    cr_assert(eq(u64, outcome.count, 1));
    cr_assert(eq(sz, temp_dir_count(&dir), 4));
    cr_assert(temp_dir_has(&dir, "a-crash-2026-11-05T00-00-00Z.zip"));
    cr_assert(temp_dir_has(&elsewhere, "precious"));
}

Test(retain, leaves_the_reports_of_another_user) {
    if (geteuid() != 0) {
        not_tried("only root can make a file of another user");
    }
    make("a-crash-2026-11-01T00-00-00Z.zip", 10);
    make("a-crash-2026-11-02T00-00-00Z.zip", 10);
    make("a-crash-2026-11-03T00-00-00Z.zip", 10);
    cr_assert(zero(int, fchownat(dir.fd, "a-crash-2026-11-01T00-00-00Z.zip", 12345, 12345, 0)));
    bp_retention_policy policy = policy_of("a", 1, 0);
    cr_assert(eq(u64, prune(&policy).removed_count, 1));
    cr_assert(temp_dir_has(&dir, "a-crash-2026-11-01T00-00-00Z.zip"));
    cr_assert(temp_dir_has(&dir, "a-crash-2026-11-03T00-00-00Z.zip"));
}

Test(retain, takes_what_is_older_than_the_age_and_nothing_of_the_future) {
    make("a-crash-2026-11-21T00-35-10Z.zip", 10); /* 101 seconds */
    make("a-crash-2026-11-21T00-35-11Z.zip", 10);
    make("a-crash-2027-01-01T00-00-00Z.zip", 10);
    bp_retention_policy policy = policy_of("a", 0, 0);
    policy.max_age_secs = 100;
    cr_expect(eq(u64, prune(&policy).count, 2));
    cr_expect(not(temp_dir_has(&dir, "a-crash-2026-11-21T00-35-10Z.zip")));
}

Test(retain, keeps_what_is_written_after_the_clock_was_set_back) {
    make("a-crash-2026-11-20T00-00-00Z.zip", 10);
    make("a-crash-2027-01-01T00-00-00Z.zip", 10); /* before it was set back */
    make("a-crash-2027-01-02T00-00-00Z.zip", 10);
    make("a-crash-2026-11-21T00-36-51Z.zip", 10); /* now */
    bp_retention_policy policy = policy_of("a", 3, 0);
    (void)prune(&policy);
    cr_assert(not(temp_dir_has(&dir, "a-crash-2027-01-01T00-00-00Z.zip")));
    policy.max_count = 2;
    (void)prune(&policy);
    cr_assert(not(temp_dir_has(&dir, "a-crash-2027-01-02T00-00-00Z.zip")));
    policy.max_count = 1;
    (void)prune(&policy);
    cr_assert(temp_dir_has(&dir, "a-crash-2026-11-21T00-36-51Z.zip"));
}

static void count_removed(const char *name, uint64_t bytes, void *context) {
    uint64_t *sum = context;
    *sum += bytes + (strncmp(name, "a-crash-2026-11-0", 17) == 0 ? 1 : 1000000);
}

Test(retain, tells_of_each_and_of_a_directory_that_cannot_be_read) {
    make("a-crash-2026-11-01T00-00-00Z.zip", 10);
    make("a-crash-2026-11-02T00-00-00Z.zip", 20);
    make("a-crash-2026-11-03T00-00-00Z.zip", 40);
    bp_retention_policy policy = policy_of("a", 1, 0);
    uint64_t sum = 0;
    cr_assert(zero(
        int, (int)bp_retention_prune(dir.fd, dir.path, &policy, count_removed, &sum, NULL, NULL)));
    cr_assert(eq(u64, sum, 32));
    bp_retention_outcome outcome = {.count = 4711};
    cr_assert(eq(int, bp_retention_prune(-1, "/nowhere", &policy, NULL, NULL, &outcome, &failure),
                 BUGPACK_ERR_IO));
    cr_assert(ne(ptr, strstr(failure.message, "/nowhere"), NULL), "%s", failure.message);
    cr_assert(eq(u64, outcome.count, 4711));
}

/* Once the first is gone, puts another file in the place of the next. */
static void replace_next(const char *name, uint64_t bytes, void *context) {
    if (strcmp(name, "a-crash-2026-11-01T00-00-00Z.zip") == 0) {
        make("new", 7);
        (void)renameat(dir.fd, "new", dir.fd, "a-crash-2026-11-02T00-00-00Z.zip");
    }
}

Test(retain, leaves_a_file_that_has_come_in_the_place_of_one_that_it_saw) {
    make("a-crash-2026-11-01T00-00-00Z.zip", 10);
    make("a-crash-2026-11-02T00-00-00Z.zip", 20);
    make("a-crash-2026-11-03T00-00-00Z.zip", 40);
    bp_retention_policy policy = policy_of("a", 1, 0);
    cr_assert(zero(
        int, (int)bp_retention_prune(dir.fd, dir.path, &policy, replace_next, &dir, NULL, NULL)));
    cr_expect(not(temp_dir_has(&dir, "a-crash-2026-11-01T00-00-00Z.zip")));
    cr_expect(temp_dir_has(&dir, "a-crash-2026-11-02T00-00-00Z.zip"));
}

Test(retain, without_bounds_removes_nothing) {
    make("a-crash-2026-11-01T00-00-00Z.zip", 10);
    bp_retention_policy policy = policy_of("a", 0, 0);
    cr_assert(zero(u64, prune(&policy).removed_count));
    cr_assert(eq(sz, temp_dir_count(&dir), 1));
}
