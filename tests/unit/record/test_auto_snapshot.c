/*
 * Reports by the clock: when they come, where they go, how many stay, and what is told when they
 * cannot be written.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "trigger/trigger.h"
#include "unit/auto_session.h"

TestSuite(auto_snapshot, .init = auto_setup, .fini = teardown);

/* Waits until so many were tried, or it is plain that they never will be. */
static bp_trigger_entry wait_for_count(uint64_t count) {
    bp_trigger_entry entry = {.count = 0};
    for (unsigned i = 0; i < 30000 && entry.count < count; i++) {
        (void)usleep(1000);
        entry = auto_count(BP_REPORT_AUTO_SNAPSHOT, NULL);
    }
    cr_assert(ge(u64, entry.count, count));
    return entry;
}

Test(auto_snapshot, comes_after_a_full_interval_and_not_at_all_in_a_short_session) {
    options.auto_snapshot.interval_ms = 3600000;
    open_session();
    bugpack_close(session);
    cr_assert(zero(sz, temp_dir_count(&dir)));
}

Test(auto_snapshot, rolls_in_a_private_directory_beside_other_files) {
    options.auto_snapshot.interval_ms = 5;
    options.auto_snapshot.max_count = 3;
    cr_assert(zero(int, mkdirat(dir.fd, "auto-snapshots", 0700)));
    cr_assert(temp_dir_write(&dir, "auto-snapshots/holiday.zip", "x", 1));
    cr_assert(
        temp_dir_write(&dir, "auto-snapshots/viewer-bugreport-2026-11-01T00-00-00Z.zip", "x", 1));
    cr_assert(temp_dir_write(
        &dir, "auto-snapshots/viewer-pro-auto-snapshot-2026-11-01T00-00-00Z.zip", "x", 1));
    cr_assert(temp_dir_write(&dir, "auto-snapshots/viewer-auto-snapshot-2025-11-01T00-00-00Z.zip",
                             "x", 1));
    open_session();
    (void)wait_for_count(6);
    bugpack_close(session);
    temp_dir rolling = {.fd = openat(dir.fd, "auto-snapshots", O_RDONLY | O_CLOEXEC)};
    cr_assert(eq(sz, temp_dir_count(&rolling), 6));
    cr_assert(not(temp_dir_has(&rolling, "viewer-auto-snapshot-2025-11-01T00-00-00Z.zip")));
    cr_assert(temp_dir_has(&rolling, "viewer-bugreport-2026-11-01T00-00-00Z.zip"));
    (void)close(rolling.fd);
    cr_assert(eq(sz, temp_dir_count(&dir), 1));
}

Test(auto_snapshot, makes_its_directory_with_mode_0700_and_counts_itself) {
    options.auto_snapshot.interval_ms = 5;
    options.auto_snapshot.max_count = 1;
    open_session();
    (void)wait_for_count(2);
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
}

Test(auto_snapshot, that_cannot_be_written_is_told_once_and_tried_again) {
    CLEANUP(temp_dir_remove) temp_dir elsewhere;
    cr_assert(temp_dir_make(&elsewhere));
    cr_assert(zero(int, symlinkat(elsewhere.path, dir.fd, "auto-snapshots"))); /* a trap */
    options.auto_snapshot.interval_ms = 5;
    open_session();
    bp_trigger_entry entry = wait_for_count(4);
    cr_assert(zero(u64, entry.written_count));
    cr_assert(eq(str, entry.reason, "a report could not be written"));
    take(NULL);
    cr_assert(holds("notifications.json", "\"count\": 1,"));
    cr_assert(holds("notifications.json", "an auto-snapshot could not be written: "));
    cr_assert(holds("notifications.json", "it is a symbolic link"));
    cr_assert(holds("manifest.json", "\"written\": false"));
    bugpack_close(session);
    cr_assert(zero(sz, temp_dir_count(&elsewhere)));
}
