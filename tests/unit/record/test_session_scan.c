/*
 * Which sessions a scan visits, and which it removes, at the instants that no test can wait for:
 * the source is compiled here once more, with a lock and a file system of the test's.
 */
#include <sys/statvfs.h>

static int take_lock_late(int fd);
static int small_file_system(int fd, struct statvfs *info);
#define bp_session_scan_run scan_run
#define bp_session_lock_take take_lock_late
#define fstatvfs small_file_system
#include "recorder/session_scan.c"
#undef bp_session_lock_take
int bp_session_lock_take(int fd);

#include <sys/resource.h>

#include "recorder/snapshot.h"
#include "ring/chunk.h"
#include "ring/frame.h"
#include "ring/ring.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

#define SESSION_ID "0123456789abcdef0123456789abcde"

static temp_dir dir;
static char lost_lock[BP_SESSION_NAME_BYTES + 8]; /* removed before it is taken; "": none is */

static int take_lock_late(int fd) {
    if (lost_lock[0] != '\0') {
        (void)unlinkat(dir.fd, lost_lock, 0);
    }
    return bp_session_lock_take(fd);
}

/* Nothing fits into a quarter of it. */
static int small_file_system(int fd, struct statvfs *info) {
    *info = (struct statvfs){.f_blocks = 4, .f_frsize = 512};
    return 0;
}

static void set_up(void) {
    lost_lock[0] = '\0';
    cr_assert(temp_dir_make(&dir));
}

static void tear_down(void) {
    temp_dir_remove(&dir);
}

TestSuite(session_scan, .init = set_up, .fini = tear_down);

/* A directory as a session leaves it, last alive at `alive_ns`; returns it open. */
static int make_session(const char *name, bool has_lock, uint64_t alive_ns) {
    bp_ring *ring = NULL;
    cr_assert(zero(int, mkdirat(dir.fd, name, 0700)));
    int session_fd = openat(dir.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(session_fd, "log.ring", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(zero(int, bp_ring_new_mapped(fd, 4096, &ring, NULL)));
    bp_ring_note_alive(ring, (bp_instant){alive_ns, alive_ns});
    bp_ring_free(ring);
    bp_file_close(fd);
    if (has_lock) {
        bp_file_close(openat(session_fd, BP_SESSION_LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    }
    return session_fd;
}

static unsigned visit_count, dropped_count;
static bp_found_state visited_state;

static bool keep_each(const bp_found_session *found, void *context) {
    visit_count++;
    visited_state = found->state;
    return false;
}

static void count_dropped(const char *name, uint64_t bytes, void *context) {
    dropped_count++;
}

static void scan(void) {
    const bp_session_scan it = {.visit = keep_each, .dropped = count_dropped};
    visit_count = dropped_count = 0;
    cr_assert(zero(int, scan_run(&it, &(bp_ring_base){.path = dir.path}, NULL, NULL)));
}

Test(session_scan, one_without_a_lock_is_dead_only_if_its_process_is) {
    char living[64];
    (void)snprintf(living, sizeof living, "app-%d-" SESSION_ID "1", (int)getpid());
    bp_file_close(make_session(living, false, 1));
    scan();
    cr_expect(eq(u32, visit_count, 1));
    cr_expect(eq(int, visited_state, BP_FOUND_UNSEEN));
    /* Nobody but root may send a signal to this one. */
    cr_assert(zero(int, renameat(dir.fd, living, dir.fd, "app-1-" SESSION_ID "1")));
    scan();
    cr_expect(eq(int, visited_state, BP_FOUND_UNSEEN));
    (void)snprintf(living, sizeof living, "app-1-" SESSION_ID "1");
    cr_assert(zero(int, renameat(dir.fd, living, dir.fd, "app-999999999-" SESSION_ID "1")));
    scan();
    cr_expect(eq(int, visited_state, BP_FOUND_DEAD));
}

Test(session_scan, one_that_somebody_else_has_just_recovered_is_not_visited) {
    const char name[] = "app-999999999-" SESSION_ID "1";
    bp_file_close(make_session(name, true, 1));
    (void)snprintf(lost_lock, sizeof lost_lock, "%s/" BP_SESSION_LOCK_NAME, name);
    cr_assert(temp_dir_write(&dir, "app-999999998-" SESSION_ID "1", "", 0)); /* no directory */
    cr_assert(zero(int, symlinkat(name, dir.fd, "app-999999997-" SESSION_ID "1")));
    scan();
    cr_expect(zero(u32, visit_count));
}

Test(session_scan, a_lock_says_whether_a_session_or_a_recovery_has_it) {
    int fds[2];
    for (size_t i = 0; i < 2; i++) {
        fds[i] = openat(dir.fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    cr_expect(zero(int, bp_session_lock_take(fds[0])));
    cr_expect(eq(int, bp_session_lock_take(fds[1]), EBUSY), "in the same process too");
    bp_session_lock_drop(fds[0]);
    void *held = bp_session_lock_hold(fds[1]);
    cr_assert(held != NULL);
    bp_file_close(fds[1]);
    fds[0] = openat(dir.fd, "lock", O_RDWR | O_CLOEXEC);
    cr_expect(eq(int, bp_session_lock_take(fds[0]), EAGAIN));
    bp_session_lock_let_go(held);
    cr_expect(zero(int, bp_session_lock_take(fds[0])));
    bp_session_lock_drop(fds[0]);
}

Test(session_scan, of_those_for_which_there_is_no_room_the_newest_stays) {
    static const char *const names[] = {"app-999999999-" SESSION_ID "1",
                                        "app-999999999-" SESSION_ID "2",
                                        "app-999999999-" SESSION_ID "3"};
    static const uint64_t alive_ns[] = {2, 3, 1};
    for (size_t i = 0; i < 3; i++) {
        bp_file_close(make_session(names[i], true, alive_ns[i]));
    }
    scan();
    cr_expect(eq(u32, dropped_count, 2));
    cr_expect(temp_dir_has(&dir, names[1]));
    cr_expect(eq(sz, temp_dir_count(&dir), 1));
}

/* What cannot be read now is tried again, and what is damaged is not. */
Test(session_scan, a_ring_that_cannot_be_read_now_fails_the_recovery) {
    const bp_session_identity identity = {.ring_kinds = 1u << BP_RING_KIND_LOG};
    struct rlimit before, limit;
    bp_snapshot snapshot;
    int session_fd = make_session("session", false, 1);
    cr_assert(zero(int, getrlimit(RLIMIT_NOFILE, &before)));
    limit = before;
    limit.rlim_cur = (rlim_t)session_fd + 1;
    cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &limit)));
    cr_expect(eq(
        int, (int)bp_recover_rings(session_fd, &identity, false, dir.fd, NULL, &snapshot, &failure),
        BUGPACK_ERR_IO));
    cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &before)));
    bp_snapshot_release(&snapshot);
    cr_assert(zero(int, unlinkat(session_fd, "log.ring", 0)));
    cr_expect(zero(int, (int)bp_recover_rings(session_fd, &identity, false, dir.fd, NULL, &snapshot,
                                              &failure)));
    cr_expect(
        eq(int, (int)snapshot.parts[BP_RING_KIND_LOG].error.status, (int)BUGPACK_ERR_CORRUPT));
    bp_snapshot_release(&snapshot);
    bp_file_close(session_fd);
}

/* A ring with one record, whose other chunks claim more than they have. */
static void make_ring(const char *name) {
    const size_t capacity_bytes = (size_t)8 << 20;
    const size_t chunk_count = bp_chunk_divide(capacity_bytes).chunk_count;
    const uint64_t claim = (uint64_t)1 << 32 | 0xffff;
    const struct iovec part = {.iov_base = "record", .iov_len = 6};
    bp_ring *ring;
    int fd = openat(dir.fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cr_assert(ge(int, fd, 0));
    cr_assert(zero(int, (int)bp_ring_new_mapped(fd, capacity_bytes, &ring, NULL)));
    cr_assert(gt(u64, bp_ring_append(ring, 1, &part, 1), 0));
    bp_ring_free(ring);
    for (size_t i = 0; i < chunk_count; i++) {
        off_t at = (off_t)(BP_FRAME_DATA_START + i * sizeof(bp_chunk_head));
        uint64_t state = 0;
        cr_assert(eq(i64, pread(fd, &state, sizeof state, at), sizeof state));
        if (state == 0) {
            cr_assert(eq(i64, pwrite(fd, &claim, sizeof claim, at), sizeof claim));
        }
    }
    bp_file_close(fd);
}

/* The bytes that are read of the last of so many channels. */
static uint64_t read_last(unsigned channel_count) {
    const bp_session_identity identity = {.pid = 1};
    bp_snapshot snapshot;
    for (unsigned i = 2; i < channel_count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "traffic-%u.ring", i);
        cr_assert(zero(int, linkat(dir.fd, "traffic-1.ring", dir.fd, name, 0)));
    }
    cr_assert(zero(
        int, (int)bp_recover_rings(dir.fd, &identity, true, dir.fd, NULL, &snapshot, &failure)));
    cr_assert(eq(sz, snapshot.channel_count, channel_count));
    const bp_traffic_part *last = &snapshot.channels[channel_count - 1].messages;
    uint64_t bytes = last->to - last->from;
    bp_snapshot_release(&snapshot);
    return bytes;
}

/* One file under many names is not copied for ever. */
Test(session_scan, the_rings_of_a_living_session_are_bounded_together) {
    make_ring("traffic-1.ring");
    make_ring("traffic-3.ring");
    cr_expect(gt(u64, read_last(3), 0));
    cr_assert(zero(int, unlinkat(dir.fd, "traffic-2.ring", 0)));
    cr_assert(zero(int, renameat(dir.fd, "traffic-3.ring", dir.fd, "traffic-40.ring")));
    cr_expect(eq(u64, read_last(40), 0));
}
