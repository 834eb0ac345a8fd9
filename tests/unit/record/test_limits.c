/*
 * What reports may cost the disk.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "report/destination.h"
#include "unit/auto_session.h"

TestSuite(limits, .init = auto_setup, .fini = teardown);

Test(limits, over_all_kinds_remove_the_oldest_automatic_report_and_tell_the_log) {
    cr_assert(temp_dir_write(&dir, "viewer-bugreport-2020-01-01T00-00-00Z.zip", "x", 1));
    cr_assert(temp_dir_write(&dir, "viewer-disconnect-main-2021-01-01T00-00-00Z.zip", "x", 1));
    cr_assert(temp_dir_write(&dir, "other-bugreport-2019-01-01T00-00-00Z.zip", "x", 1));
    options.limits.report_dir_max_count = 2;
    open_session();
    take(NULL);
    cr_assert(not(temp_dir_has(&dir, "viewer-disconnect-main-2021-01-01T00-00-00Z.zip")));
    cr_assert(temp_dir_has(&dir, "viewer-bugreport-2020-01-01T00-00-00Z.zip"));
    take(NULL);
    cr_assert(not(temp_dir_has(&dir, "viewer-bugreport-2020-01-01T00-00-00Z.zip")));
    cr_assert(temp_dir_has(&dir, "other-bugreport-2019-01-01T00-00-00Z.zip"));
    cr_assert(eq(sz, temp_dir_count(&dir), 3));
    cr_assert(holds("logs.jsonl", "viewer-disconnect-main-2021-01-01T00-00-00Z.zip"));
}

Test(limits, by_bytes_never_remove_the_new_report) {
    options.limits.report_dir_max_bytes = 1;
    open_session();
    for (unsigned i = 0; i < 3; i++) {
        take(NULL);
        find_only();
        cr_assert(eq(str, taken.path, taken.path));
    }
}

Test(limits, leave_a_directory_that_the_host_chose_the_name_in) {
    char path[300];
    cr_assert(temp_dir_write(&dir, "viewer-crash-2020-01-01T00-00-00Z.zip", "x", 1));
    options.limits.report_dir_max_count = 1;
    open_session();
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    (void)snprintf(path, sizeof path, "%s/viewer-bugreport-2026-01-01T00-00-00Z.zip", dir.path);
    request.output_path = path;
    cr_assert(zero(int, bugpack_report(session, &request, NULL, NULL)));
    cr_assert(eq(sz, temp_dir_count(&dir), 2));
}

Test(limits, refuse_a_report_below_the_floor_and_name_it) {
    options.limits.min_free_bytes = UINT64_MAX - 1;
    open_session();
    cr_assert(eq(int, try_report(NULL), BUGPACK_ERR_IO));
    cr_assert(eq(int, taken.error.system_errno, ENOSPC));
    cr_assert(
        ne(ptr, strstr(taken.error.message, "min_free_bytes keeps 18446744073709551614"), NULL),
        "%s", taken.error.message);
    cr_assert(ne(ptr, strstr(taken.error.message, dir.path), NULL), "%s", taken.error.message);
    cr_assert(eq(int, bugpack_report(session, NULL, NULL, NULL), BUGPACK_ERR_IO));
    bugpack_close(session);
    cr_assert(zero(sz, temp_dir_count(&dir)));
}

#ifdef __linux__
static struct statvfs room;    /* what fstatvfs finds where it has a size, instead of the truth */
static atomic_uint look_count; /* how often it was called */

/* Linked before libc's: the objects under test call it. */
int fstatvfs(int fd, struct statvfs *ret_info) {
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int result = statvfs(path, ret_info);
    *ret_info = result == 0 && room.f_bsize > 0 ? room : *ret_info;
    atomic_fetch_add(&look_count, 1);
    return result;
}

Test(limits, count_the_blocks_that_this_user_may_fill_and_keep_some_of_them) {
    const bp_destination here = {.dir_path = dir.path, .dir_fd = dir.fd};
    room = (struct statvfs){
        .f_bsize = 4096, .f_frsize = 512, .f_blocks = 1000, .f_bfree = 100, .f_bavail = 10};
    cr_expect(zero(int, bp_destination_check_room(&here, 5000, 120, NULL)));
    cr_expect(eq(int, bp_destination_check_room(&here, 5000, 121, NULL), BUGPACK_ERR_IO));
    cr_expect(zero(int, bp_destination_check_room(&here, 5120, 0, NULL)));
    cr_expect(eq(int, bp_destination_check_room(&here, 5121, 0, NULL), BUGPACK_ERR_IO));
    room.f_frsize = 0; /* then the other size counts */
    cr_expect(zero(int, bp_destination_check_room(&here, 40960, 0, NULL)));
    cr_expect(eq(int, bp_destination_check_room(&here, 40961, 0, NULL), BUGPACK_ERR_IO));
    room.f_bavail = (fsblkcnt_t)1 << 52; /* 2^64 bytes */
    cr_expect(zero(int, bp_destination_check_room(&here, 40961, 0, NULL)));
    room.f_blocks = room.f_bavail = 0; /* it has no blocks */
    cr_expect(zero(int, bp_destination_check_room(&here, 40961, 0, NULL)));
}
#endif

/* A snapshot that is taken early has to leave more, and so is taken again in its turn. */
Test(limits, copy_the_rings_of_a_gap_in_its_turn_where_there_was_no_room_before) {
    static auto_gate gate;
    room = (struct statvfs){.f_bsize = 4096,
                            .f_frsize = 4096,
                            .f_blocks = 1 << 20,
                            .f_bfree = 25600,
                            .f_bavail = 25600};
    options.pedantic.is_enabled = true;
    options.limits.min_free_bytes = 1;
    options.recorder.log_ring_bytes = 64 << 10;
    options.recorder.traffic_budget_bytes = BUGPACK_OFF;
    open_session();
    auto_add_gate(&gate);
    cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL, NULL)));
    auto_wait_for_worker(&gate);
    unsigned before = atomic_load(&look_count);
    bugpack_gap(session, "a:b");
    while (atomic_load(&look_count) == before) {
        (void)usleep(1000);
    }
    atomic_store(&gate.may_go, true);
    cr_assert(zero(int, bugpack_flush(session, BUGPACK_OFF, NULL)));
    cr_expect(eq(u64, auto_count(BP_REPORT_PEDANTIC, "a:b").written_count, 1));
}

Test(limits, a_directory_that_was_closed_is_opened_again_unless_it_was_replaced) {
    CLEANUP(temp_dir_remove) temp_dir other;
    cr_assert(temp_dir_make(&other));
    bp_destination held = {.dir_path = dir.path, .dir_fd = -1, .mark = bp_fd_mark_of(other.fd)};
    cr_expect(eq(int, (int)bp_destination_hold(&held, NULL), BUGPACK_ERR_IO));
    cr_expect(eq(int, held.dir_fd, -1));
    held.mark = bp_fd_mark_of(dir.fd);
    cr_expect(zero(int, (int)bp_destination_hold(&held, NULL)));
    bp_fd_close_ours(held.dir_fd, held.mark);
}

Test(limits, a_directory_that_bugpack_chose_has_to_be_this_users_alone) {
    const bp_report_dir own = {.path = dir.path, .is_private = true};
    bp_destination_request request = {.app_name = "viewer", .dir = &own};
    for (int i = 0; i < 2; i++) {
        bp_destination destination = BP_DESTINATION_INIT;
        cr_expect(eq(int, (int)bp_destination_open(&request, &destination, NULL),
                     i == 0 ? BUGPACK_OK : BUGPACK_ERR_DENIED));
        bp_destination_release(&destination);
        cr_assert(zero(int, fchmod(dir.fd, 0750)));
    }
}

Test(limits, count_what_the_report_itself_may_take) {
    const bp_destination here = {.dir_path = dir.path, .dir_fd = dir.fd};
    const bp_destination nowhere = {.dir_path = dir.path, .dir_fd = -1};
    cr_assert(zero(int, bp_destination_check_room(&here, 1, 1, &failure)));
    cr_assert(eq(int, bp_destination_check_room(&here, 1, UINT64_MAX, &failure), BUGPACK_ERR_IO));
    cr_assert(zero(int, bp_destination_check_room(&here, 0, UINT64_MAX, NULL)));
    cr_assert(zero(int, bp_destination_check_room(&nowhere, 1, 1, NULL)));
}
