#include "recorder/monitor.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/temp_dir.h"

static temp_dir dir;
static int fd, second_fd = -1;
static void *mapping;
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

/* Gives in at the third call: nothing else has the file open. */
static uint64_t hesitate(void *count, uint64_t now_ns) {
    if (atomic_fetch_add((atomic_int *)count, 1) < 2) {
        return now_ns + 10 * BP_NS_PER_MS;
    }
    close(fd);
    fd = -1;
    void *last = mapping;
    mapping = NULL; /* first: the other process goes on as soon as nothing maps the file */
    if (last != NULL) {
        (void)munmap(last, 4096);
    }
    return UINT64_MAX;
}

/* Opens the file in another process, which takes as long as the guard lets it wait. */
static void open_elsewhere(int flags) {
    pid_t other = fork();
    if (other == 0) {
        (void)close(fd); /* a fork has the same open file, with its lease */
        (void)close(second_fd);
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
        bp_file_guard_remove(guard, &count);
        fd = openat(dir.fd, "file", O_RDWR | O_CLOEXEC);
    }
}

Test(file_guard, needs_no_descriptor_while_the_file_is_mapped) {
    atomic_int count = 2;
    guard_it(&count);
    mapping = mmap(NULL, 4096, PROT_NONE, MAP_SHARED, fd, 0);
    cr_assert(ne(ptr, mapping, MAP_FAILED));
    cr_assert(zero(int, madvise(mapping, 4096, MADV_DONTFORK)));
    close(fd);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* the host has its number now */
    open_elsewhere(O_WRONLY);
    cr_assert(eq(int, atomic_load(&count), 3));
    cr_assert(eq(ptr, mapping, NULL));
    bp_file_guard_remove(guard, &count);
}

/* Guards the second file when the first one is wanted. */
static uint64_t change(void *count, uint64_t now_ns) {
    (void)now_ns;
    cr_assert(zero(int, (int)bp_file_guard_replace(guard, second_fd, count, NULL)));
    return hesitate(count, now_ns);
}

Test(file_guard, guards_another_file_in_the_place_of_one_that_it_yielded) {
    atomic_int count = 2, other_count = 0;
    second_fd = openat(dir.fd, "second", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int other_fd = openat(dir.fd, "other", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (bp_file_guard_add(guard, fd, change, &count, NULL) != BUGPACK_OK) {
        cr_skip("no lease can be had here");
    }
    cr_assert(zero(int, (int)bp_file_guard_add(guard, other_fd, hesitate, &other_count, NULL)));
    open_elsewhere(O_RDONLY);
    cr_assert(eq(int, atomic_load(&count), 3));
    cr_assert(eq(int, fcntl(second_fd, F_GETLEASE), F_WRLCK));
    /* Each of these looks at all files. */
    bp_monitor_wake(monitor);
    bp_file_guard_remove(guard, &count);
    bp_file_guard_remove(guard, &other_count);
    cr_assert(zero(int, atomic_load(&other_count)), "nobody wanted the other one");
    close(second_fd);
    close(other_fd);
}

Test(file_guard, refuses_a_file_that_is_open_elsewhere_or_cannot_be_leased) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    int second = openat(dir.fd, "file", O_RDONLY | O_CLOEXEC);
    cr_assert(eq(int, (int)bp_file_guard_add(guard, fd, hesitate, &second, &error),
                 (int)BUGPACK_ERR_UNSUPPORTED));
    cr_assert(eq(int, (int)error.status, (int)BUGPACK_ERR_UNSUPPORTED));
    cr_assert(ne(str, error.message, ""));
    close(second);
    cr_assert(eq(int, (int)bp_file_guard_add(guard, dir.fd, hesitate, &second, &error),
                 (int)BUGPACK_ERR_UNSUPPORTED));
}
