/*
 * The sweep takes the stale temporary files of this user, and nothing else.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "platform/staged_file.h"
#include "support/no_tmpfile.h"
#include "support/not_tried.h"
#include "unit/dir.h"

#define STALE_NAME ".bugpack-0123456789abcdef0123456789abcdef.tmp"

DIR_SUITE(staged_sweep);

/* Sets how long ago `name` was written; of a link, the link itself. */
static void age(const char *name, time_t secs) {
    struct timespec then = {.tv_sec = time(NULL) - secs};
    struct timespec times[2] = {then, then};
    cr_assert(eq(int, utimensat(dir.fd, name, times, AT_SYMLINK_NOFOLLOW), 0));
}

static void make_aged(const char *name, time_t secs) {
    cr_assert(temp_dir_write(&dir, name, "x", 1));
    age(name, secs);
}

Test(staged_sweep, removes_a_stale_file_of_a_dead_writer) {
    make_aged(STALE_NAME, 120);
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 1));
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 0));
}

Test(staged_sweep, leaves_a_young_file_and_one_from_the_future) {
    make_aged(STALE_NAME, 30);
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 0));
    age(STALE_NAME, -3600);
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 0));
    cr_expect(temp_dir_has(&dir, STALE_NAME));
    age(STALE_NAME, 61);
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 1));
}

Test(staged_sweep, leaves_a_file_whose_writer_lives) {
    bp_staged_file *file = NULL;
    has_no_tmpfile = true;
    cr_assert(eq(int, bp_staged_file_new(dir.fd, dir.path, &file, NULL), 0));
    struct timespec then = {.tv_sec = time(NULL) - 1000};
    struct timespec times[2] = {then, then};
    cr_assert(eq(int, futimens(bp_staged_file_fd(file), times), 0));
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 0));
    cr_expect(eq(sz, temp_dir_count(&dir), 1));
    char name[32];
    cr_expect(eq(int, bp_staged_file_publish(file, "r", ".zip", name, sizeof name, NULL), 0));
    bp_staged_file_free(file);
    cr_expect(eq(sz, temp_dir_count(&dir), 1));
}

Test(staged_sweep, leaves_names_that_are_not_exactly_ours) {
    static const char *const names[] = {
        ".bugpack-0123456789abcdef0123456789abcde.tmp",   /* a digit short */
        ".bugpack-0123456789abcdef0123456789abcdef0.tmp", /* one over */
        ".bugpack-0123456789ABCDEF0123456789abcdef.tmp",  /* upper case */
        ".bugpack-0123456789abcdef0123456789abcdeg.tmp",  /* not hexadecimal */
        ".bugpack-0123456789abcdef0123456789abcdef.tmq",
        ".bugpack_0123456789abcdef0123456789abcdef.tmp",
        "bugpack-00123456789abcdef0123456789abcdef.tmp",
        "report.zip",
        ".bugpack-.tmp",
    };
    const size_t count = sizeof names / sizeof names[0];
    for (size_t i = 0; i < count; i++) {
        make_aged(names[i], 1000);
    }
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 0));
    cr_expect(eq(sz, temp_dir_count(&dir), count));
}

Test(staged_sweep, leaves_links_fifos_and_directories_of_our_name) {
    cr_assert(temp_dir_write(&dir, "target", "x", 1));
    age("target", 1000);
    cr_assert(eq(int, symlinkat("target", dir.fd, STALE_NAME), 0));
    age(STALE_NAME, 1000);
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 0));
    cr_assert(eq(int, unlinkat(dir.fd, STALE_NAME, 0), 0));
    cr_assert(eq(int, mkfifoat(dir.fd, STALE_NAME, 0600), 0));
    age(STALE_NAME, 1000);
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 0));
    cr_assert(eq(int, unlinkat(dir.fd, STALE_NAME, 0), 0));
    cr_assert(eq(int, mkdirat(dir.fd, STALE_NAME, 0700), 0));
    age(STALE_NAME, 1000);
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 0));
    cr_expect(eq(sz, temp_dir_count(&dir), 2));
}

Test(staged_sweep, leaves_the_files_of_another_user) {
    if (geteuid() != 0) {
        not_tried("only root can give a file to somebody else");
    }
    make_aged(STALE_NAME, 1000);
    cr_assert(eq(int, fchownat(dir.fd, STALE_NAME, 65534, 65534, AT_SYMLINK_NOFOLLOW), 0));
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 0));
    cr_expect(temp_dir_has(&dir, STALE_NAME));
}

Test(staged_sweep, leaves_a_stale_file_that_somebody_holds_a_lock_on) {
    make_aged(STALE_NAME, 1000);
    CLEANUP(close_fd) int fd = openat(dir.fd, STALE_NAME, O_RDONLY | O_CLOEXEC);
    cr_assert(eq(int, flock(fd, LOCK_SH), 0));
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 0));
    cr_assert(eq(int, flock(fd, LOCK_UN), 0));
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 1));
}

Test(staged_sweep, does_not_move_the_position_of_the_callers_descriptor) {
    make_aged(STALE_NAME, 1000);
    off_t before = lseek(dir.fd, 0, SEEK_CUR);
    cr_expect(eq(sz, bp_staged_file_sweep(dir.fd), 1));
    cr_expect(lseek(dir.fd, 0, SEEK_CUR) == before);
    cr_expect(eq(sz, bp_staged_file_sweep(-1), 0));
}
