#include "recorder/monitor.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temp_dir.h"

static temp_dir dir;
static int fd;
static bp_monitor *monitor;
static bp_file_guard *guard;

static void set_up(void) {
    cr_assert(temp_dir_make(&dir));
    fd = openat(dir.fd, "file", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cr_assert(ge(int, fd, 0));
    cr_assert(zero(int, (int)bp_monitor_new(&monitor, NULL)));
    guard = bp_monitor_file_guard(monitor);
}

static void tear_down(void) {
    bp_file_guard_clear(guard);
    bp_monitor_free(monitor);
    close(fd);
    temp_dir_remove(&dir);
}

TestSuite(file_guard, .init = set_up, .fini = tear_down);

/* Gives in at the third call. */
static bool hesitate(void *count) {
    return atomic_fetch_add((atomic_int *)count, 1) == 2;
}

/* Opens the file in another process, which takes as long as the guard lets it wait. */
static void open_elsewhere(int flags) {
    pid_t other = fork();
    if (other == 0) {
        _exit(openat(dir.fd, "file", flags | O_CLOEXEC) < 0);
    }
    int status = 1;
    cr_assert(eq(int, waitpid(other, &status, 0), other));
    cr_assert(zero(int, status));
}

static void guard_it(atomic_int *count) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_file_guard_add(guard, fd, hesitate, count, &error) != BUGPACK_OK) {
        cr_skip("no lease can be had here");
    }
}

Test(file_guard, holds_up_who_opens_the_file_until_it_is_yielded) {
    static const int ways[] = {O_RDONLY, O_WRONLY, O_RDWR | O_TRUNC};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        atomic_int count = 0;
        guard_it(&count);
        open_elsewhere(ways[i]);
        cr_assert(eq(int, atomic_load(&count), 3), "asked again until it gave in");
        open_elsewhere(ways[i]);
        cr_assert(eq(int, atomic_load(&count), 3), "and not after that");
        bp_file_guard_remove(guard, fd);
    }
}

Test(file_guard, does_nothing_for_a_file_that_was_removed) {
    atomic_int count = 0;
    guard_it(&count);
    bp_file_guard_remove(guard, fd);
    bp_file_guard_remove(guard, fd);
    open_elsewhere(O_RDWR | O_TRUNC);
    cr_assert(zero(int, atomic_load(&count)));
}

Test(file_guard, refuses_a_file_that_is_open_elsewhere_or_cannot_be_leased) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    int second = openat(dir.fd, "file", O_RDONLY | O_CLOEXEC);
    cr_assert(eq(int, (int)bp_file_guard_add(guard, fd, hesitate, NULL, &error),
                 (int)BUGPACK_ERR_UNSUPPORTED));
    cr_assert(eq(int, (int)error.status, (int)BUGPACK_ERR_UNSUPPORTED));
    cr_assert(ne(str, error.message, ""));
    close(second);
    cr_assert(eq(int, (int)bp_file_guard_add(guard, dir.fd, hesitate, NULL, &error),
                 (int)BUGPACK_ERR_UNSUPPORTED));
}
