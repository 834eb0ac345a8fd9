/*
 * A recovery at each instant of the making of a session, by somebody who cannot see its process, as
 * in another pid namespace: the source is compiled here once more, and recovers before and after
 * each of its system calls.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "recorder/session_lock.h"

static int open_late(int dir_fd, const char *name, int flags, ...);
static int stop(int result);
#define openat open_late
#define mkdirat(...) (stop(0), stop(mkdirat(__VA_ARGS__)))
#define fchmodat(...) (stop(0), stop(fchmodat(__VA_ARGS__)))
#define fchmod(...) (stop(0), stop(fchmod(__VA_ARGS__)))
#define renameat(...) (stop(0), stop(renameat(__VA_ARGS__)))
#define bp_file_write_all(...) (stop(0), stop(bp_file_write_all(__VA_ARGS__)))
#define bp_session_lock_hold(...) (stop(0), bp_session_lock_hold(__VA_ARGS__))
#define bp_session_dir_new dir_new
#define bp_session_dir_make_file dir_make_file
#define bp_session_dir_unlink dir_unlink
#define bp_session_dir_write_file dir_write_file
#define bp_session_dir_replace_file dir_replace_file
#define bp_session_dir_map_file dir_map_file
#define bp_session_dir_remove dir_remove
#define bp_session_dir_leave dir_leave
#include "recorder/session_dir.c"
#undef openat
#undef mkdirat
#undef renameat

#include "recorder/session_scan.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

enum { nobody = 999999999 }; /* no process has this id */

static temp_dir dir;
static unsigned stop_count, dead_count, running_count;

static bool take(const bp_found_session *found, void *context) {
    (void)context;
    dead_count += found->state == BP_FOUND_DEAD;
    running_count += found->state == BP_FOUND_RUNNING;
    return true; /* a dead one is removed */
}

static void recover(void) {
    const bp_session_scan scan = {.visit = take};
    cr_assert(zero(int, bp_session_scan_run(&scan, &(bp_ring_base){.path = dir.path}, NULL, NULL)));
}

static int stop(int result) {
    int call_errno = errno;
    stop_count++;
    recover();
    errno = call_errno;
    return result;
}

static int open_late(int dir_fd, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    (void)stop(0);
    return stop(openat(dir_fd, path, flags, mode));
}

static void set_up(void) {
    cr_assert(temp_dir_make(&dir));
}

static void tear_down(void) {
    temp_dir_remove(&dir);
}

TestSuite(session_dir, .init = set_up, .fini = tear_down);

static const bp_session_identity identity = {
    .pid = nobody, .app_name = "app", .session_id = "0123456789abcdef0123456789abcdef"};
static const char name[] = "app-999999999-0123456789abcdef0123456789abcdef";

Test(session_dir, is_recovered_at_no_instant_of_its_making) {
    bp_session_dir *made = NULL;
    cr_assert(eq(int, dir_new(&(bp_ring_base){.path = dir.path}, &identity, &made, &failure), 0),
              "%s", failure.message);
    cr_expect(ge(u32, stop_count, 14));
    cr_expect(zero(u32, dead_count));
    cr_expect(eq(str, made->name, (char *)name));
    cr_expect(eq(str, strrchr(made->path, '/') + 1, (char *)name));
    running_count = 0;
    recover();
    cr_expect(eq(u32, running_count, 1));
    dir_leave(made);
    recover();
    cr_expect(eq(u32, dead_count, 1));
    cr_expect(eq(int, faccessat(dir.fd, name, F_OK, 0), -1));
}

/* Sets when the directory was changed last. */
static void make_old(const char *entry, int secs) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - secs}};
    cr_assert(zero(int, utimensat(dir.fd, entry, times, 0)));
}

Test(session_dir, of_a_process_that_was_killed_while_it_made_one_is_removed_after_an_hour) {
    char entry[80];
    (void)snprintf(entry, sizeof entry, "%s" BP_SESSION_NEW, name);
    cr_assert(zero(int, mkdirat(dir.fd, entry, 0700)));
    make_old(entry, 3000);
    recover();
    cr_expect(zero(int, faccessat(dir.fd, entry, F_OK, 0)));
    make_old(entry, 3700);
    recover();
    cr_expect(eq(int, faccessat(dir.fd, entry, F_OK, 0), -1));
    cr_expect(zero(u32, dead_count + running_count));
    (void)snprintf(entry, sizeof entry, "%s" BP_SESSION_NEW BP_SESSION_DONE, name);
    cr_assert(zero(int, mkdirat(dir.fd, entry, 0700)));
    recover();
    cr_expect(eq(int, faccessat(dir.fd, entry, F_OK, 0), -1));
}
