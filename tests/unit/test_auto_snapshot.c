/*
 * Reports by the clock: when they come, where they go, how many stay, and what is told when they
 * cannot be written.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/report_reader.h"
#include "trigger/trigger.h"
#include "unit/auto_session.h"
#include "unit/unit.h"

Test(auto_snapshot, that_is_slow_delays_the_next_and_does_not_bunch_them) {
    cr_assert(eq(u64, bp_auto_snapshot_next(1000, 1050, 100), 1100));
    cr_assert(eq(u64, bp_auto_snapshot_next(1000, 1100, 100), 1100));
    cr_assert(eq(u64, bp_auto_snapshot_next(1000, 1101, 100), 1201));
    cr_assert(eq(u64, bp_auto_snapshot_next(1000, 9000, 100), 9100));
}

/* Waits until so many were tried, or it is plain that they never will be. */
static bp_trigger_entry wait_for_count(bugpack *session, uint64_t count) {
    bp_trigger_entry entry = {.count = 0};
    for (unsigned i = 0; i < 30000 && entry.count < count; i++) {
        (void)usleep(1000);
        entry = auto_count(session, BP_REPORT_AUTO_SNAPSHOT, NULL);
    }
    cr_assert(ge(u64, entry.count, count));
    return entry;
}

Test(auto_snapshot, that_goes_on_failing_is_told_once_in_five_minutes) {
    const uint64_t told_ns = 1000 * BP_NS_PER_SEC, minutes_ns = 60 * BP_NS_PER_SEC;
    cr_expect(bp_auto_snapshot_may_notify(0, 1));
    cr_expect(not(bp_auto_snapshot_may_notify(told_ns, told_ns)));
    cr_expect(not(bp_auto_snapshot_may_notify(told_ns, told_ns + 5 * minutes_ns - 1)));
    cr_expect(bp_auto_snapshot_may_notify(told_ns, told_ns + 5 * minutes_ns));
}

Test(auto_snapshot, comes_after_a_full_interval_and_not_at_all_in_a_short_session) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack_options options = auto_options(&dir);
    options.auto_snapshot_interval_ms = 3600000;
    bugpack *session = open_session(&options);
    bugpack_close(session);
    cr_assert(zero(sz, temp_dir_count(&dir)));
    temp_dir_remove(&dir);
}

Test(auto_snapshot, rolls_in_a_private_directory_beside_other_files) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack_options options = auto_options(&dir);
    options.auto_snapshot_interval_ms = 5;
    options.auto_snapshot_max_count = 3;
    cr_assert(zero(int, mkdirat(dir.fd, "auto-snapshots", 0700)));
    cr_assert(temp_dir_write(&dir, "auto-snapshots/holiday.zip", "x", 1));
    cr_assert(
        temp_dir_write(&dir, "auto-snapshots/viewer-bugreport-2026-11-01T00-00-00Z.zip", "x", 1));
    cr_assert(temp_dir_write(
        &dir, "auto-snapshots/viewer-pro-auto-snapshot-2026-11-01T00-00-00Z.zip", "x", 1));
    cr_assert(temp_dir_write(&dir, "auto-snapshots/viewer-auto-snapshot-2025-11-01T00-00-00Z.zip",
                             "x", 1));
    bugpack *session = open_session(&options);
    (void)wait_for_count(session, 6);
    bugpack_close(session);
    temp_dir rolling = {.fd = openat(dir.fd, "auto-snapshots", O_RDONLY | O_CLOEXEC)};
    cr_assert(eq(sz, temp_dir_count(&rolling), 6));
    cr_assert(not(temp_dir_has(&rolling, "viewer-auto-snapshot-2025-11-01T00-00-00Z.zip")));
    cr_assert(temp_dir_has(&rolling, "viewer-bugreport-2026-11-01T00-00-00Z.zip"));
    (void)close(rolling.fd);
    cr_assert(eq(sz, temp_dir_count(&dir), 1));
    temp_dir_remove(&dir);
}

Test(auto_snapshot, makes_its_directory_with_mode_0700_and_counts_itself) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack_options options = auto_options(&dir);
    options.auto_snapshot_interval_ms = 5;
    options.auto_snapshot_max_count = 1;
    bugpack *session = open_session(&options);
    (void)wait_for_count(session, 2);
    bugpack_close(session);
    struct stat info;
    cr_assert(zero(int, fstatat(dir.fd, "auto-snapshots", &info, AT_SYMLINK_NOFOLLOW)));
    cr_assert(eq(uint, info.st_mode & 07777, 0700));
    temp_dir rolling = {.fd = openat(dir.fd, "auto-snapshots", O_RDONLY | O_CLOEXEC)};
    (void)snprintf(rolling.path, sizeof rolling.path, "%.200s/auto-snapshots", dir.path);
    char path[512];
    cr_assert(report_find_only(&rolling, path, sizeof path));
    cr_assert(ne(ptr, strstr(path, "/viewer-auto-snapshot-20"), NULL), "%s", path);
    cr_assert(report_entry_contains(path, "metadata.json", "\"report_type\": \"auto-snapshot\""));
    cr_assert(report_entry_contains(path, "manifest.json", "\"report_type\": \"auto-snapshot\""));
    cr_assert(report_entry_contains(path, "manifest.json", "\"written\": true"));
    (void)close(rolling.fd);
    temp_dir_remove(&dir);
}

Test(auto_snapshot, that_cannot_be_written_is_told_once_and_tried_again) {
    temp_dir dir, elsewhere;
    cr_assert(temp_dir_make(&dir));
    cr_assert(temp_dir_make(&elsewhere));
    cr_assert(zero(int, symlinkat(elsewhere.path, dir.fd, "auto-snapshots"))); /* a trap */
    bugpack_options options = auto_options(&dir);
    options.auto_snapshot_interval_ms = 5;
    bugpack *session = open_session(&options);
    bp_trigger_entry entry = wait_for_count(session, 4);
    cr_assert(zero(u64, entry.written_count));
    cr_assert(eq(str, entry.reason, "one could not be written"));
    bugpack_report_result result;
    cr_assert(zero(int, auto_report(session, &result)), "%s", result.error.message);
    cr_assert(report_entry_contains(result.path, "notifications.json", "\"count\": 1,"));
    cr_assert(report_entry_contains(result.path, "notifications.json",
                                    "an auto-snapshot could not be written: "));
    cr_assert(report_entry_contains(result.path, "notifications.json", "it is a symbolic link"));
    cr_assert(report_entry_contains(result.path, "manifest.json", "\"written\": false"));
    bugpack_close(session);
    cr_assert(zero(sz, temp_dir_count(&elsewhere)));
    temp_dir_remove(&dir);
    temp_dir_remove(&elsewhere);
}
