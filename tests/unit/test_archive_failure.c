/*
 * What the archive refuses, and what it says when the system does.
 */
#include "support/archive_file.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "platform/thread.h"

static const uint64_t when = 1774751400000000000u;
static char text[300000];
static const char *path_of_zip;

static void fill(void) {
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + (i * i) % 23 + i % 3);
    }
}

TestSuite(archive_failure, .init = fill);

static void expect_finish_fails(bp_archive *archive, bugpack_status status, int system_errno,
                                const char *path) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint64_t bytes = 4711;
    cr_expect(eq(int, bp_archive_finish(archive, &bytes, &error), status));
    cr_expect(eq(int, error.status, status));
    cr_expect(eq(int, error.system_errno, system_errno));
    cr_expect(strstr(error.message, path) != NULL, "%s", error.message);
    cr_expect(eq(u64, bytes, 4711));
    /* Whatever failed, it is over: a second try cannot come out as a zip. */
    cr_expect(eq(int, bp_archive_finish(archive, &bytes, NULL), BUGPACK_ERR_INVALID));
}

Test(archive_failure, refuses_a_zip_without_entries) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    expect_finish_fails(file.archive, BUGPACK_ERR_INVALID, 0, file.path);
    cr_expect(eq(int, (int)lseek(file.fd, 0, SEEK_END), 0));
    archive_file_add(&file, "late", "x", 1, when);
    archive_file_finish(&file);
    archive_file_end(&file);
}

Test(archive_failure, refuses_bad_names_and_stays_usable) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    archive_file_add(&file, "once", "x", 1, when);
    char *long_name = malloc(65537);
    cr_assert(long_name != NULL);
    memset(long_name, 'n', 65536);
    long_name[65536] = '\0';
    const char *const names[] = {"", "once", "\xff", "cut\xc3", long_name};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        cr_expect(eq(int, bp_archive_add(file.archive, names[i], "y", 1, when, &error),
                     BUGPACK_ERR_INVALID));
        cr_expect(error.message[0] != '\0');
    }
    cr_expect(
        eq(int, bp_archive_add(file.archive, "null", NULL, 1, when, NULL), BUGPACK_ERR_INVALID));
    long_name[65535] = '\0'; /* just allowed */
    archive_file_add(&file, long_name, "z", 1, when);
    archive_file_finish(&file);
    cr_expect(
        eq(int, bp_archive_add(file.archive, "after", "y", 1, when, NULL), BUGPACK_ERR_INVALID));
    free(long_name);
    archive_file_end(&file);
}

static void expect_device_fails(const char *device, int flags, int system_errno) {
    int fd = open(device, flags | O_CLOEXEC);
    cr_assert(ge(int, fd, 0));
    bp_archive *archive = NULL;
    cr_assert(eq(int, bp_archive_new(fd, "/x/y.zip", NULL, NULL, &archive, NULL), 0));
    cr_assert(eq(int, bp_archive_add(archive, "entry", text, sizeof text, when, NULL), 0));
    expect_finish_fails(archive, BUGPACK_ERR_IO, system_errno, "/x/y.zip");
    bp_archive_free(archive);
    (void)close(fd);
}

Test(archive_failure, keeps_the_errno_of_a_full_disk_and_of_a_descriptor_for_reading) {
    expect_device_fails("/dev/full", O_RDWR, ENOSPC);
    expect_device_fails("/dev/zero", O_RDONLY, EBADF);
}

Test(archive_failure, takes_what_a_device_swallows_for_no_zip) {
    /* Writes succeed and nothing can be read back. */
    expect_device_fails("/dev/null", O_RDWR, EIO);
}

/* At every size below what the zip needs, EFBIG; bugpack's threads block the signal. */
Test(archive_failure, keeps_the_errno_of_a_file_size_limit) {
    sigset_t blocked;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGXFSZ);
    cr_assert(eq(int, sigprocmask(SIG_BLOCK, &blocked, NULL), 0));
    archive_file whole;
    archive_file_start(&whole, NULL, NULL);
    archive_file_add(&whole, "entry", text, sizeof text, when);
    archive_file_finish(&whole);
    rlim_t size = (rlim_t)lseek(whole.fd, 0, SEEK_END);
    archive_file_end(&whole);
    const rlim_t limits[] = {0, 1, 29, 30, 100, size / 2, size - 22, size - 1};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        archive_file file;
        archive_file_start(&file, NULL, NULL);
        archive_file_add(&file, "entry", text, sizeof text, when);
        struct rlimit before;
        cr_assert(eq(int, getrlimit(RLIMIT_FSIZE, &before), 0));
        struct rlimit limit = {.rlim_cur = limits[i], .rlim_max = before.rlim_max};
        cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &limit), 0));
        bugpack_error error = BUGPACK_ERROR_INIT;
        uint64_t bytes = 0;
        bugpack_status status = bp_archive_finish(file.archive, &bytes, &error);
        cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &before), 0));
        cr_expect(eq(int, status, BUGPACK_ERR_IO));
        cr_expect(eq(int, error.system_errno, EFBIG));
        archive_file_end(&file);
    }
}

typedef struct stop_at {
    unsigned calls;
    unsigned stops_at; /* 0: never */
} stop_at;

static int poll_until(void *context) {
    stop_at *stop = context;
    stop->calls++;
    return stop->calls == stop->stops_at;
}

static void add_some(archive_file *file) {
    archive_file_add(file, "one", text, sizeof text, when);
    archive_file_add(file, "two", "x", 1, when);
    archive_file_add(file, "three", NULL, 0, when);
}

Test(archive_failure, stops_wherever_it_is_asked_to) {
    stop_at stop = {0, 0};
    archive_file file;
    archive_file_start(&file, poll_until, &stop);
    add_some(&file);
    archive_file_finish(&file);
    archive_file_end(&file);
    unsigned all_calls = stop.calls;
    cr_assert(gt(int, (int)all_calls, 20)); /* both while packing and while writing */
    for (unsigned n = 1; n <= all_calls; n++) {
        stop = (stop_at){0, n};
        archive_file_start(&file, poll_until, &stop);
        add_some(&file);
        expect_finish_fails(file.archive, BUGPACK_ERR_TIMEOUT, 0, file.path);
        cr_expect(eq(int, (int)stop.calls, (int)n)); /* and is not asked again */
        archive_file_end(&file);
    }
}

/* Helpers that a busy machine does not let run, from before they could begin. */
static atomic_bool may_help;
static atomic_uint ended_helpers;

static void wait_to_help(void) {
    while (!atomic_load(&may_help)) {
        (void)usleep(1000);
    }
}

struct call {
    void *(*run)(void *);
    void *argument;
};

static void *run_and_count(void *argument) {
    struct call call = *(struct call *)argument;
    free(argument);
    (void)call.run(call.argument);
    atomic_fetch_add(&ended_helpers, 1);
    return NULL;
}

static bugpack_status start_counted(void *(*run)(void *), void *argument, pthread_t *ret_thread,
                                    bugpack_error *error) {
    struct call *call = malloc(sizeof *call);
    *call = (struct call){run, argument};
    return bp_thread_start(run_and_count, call, ret_thread, error);
}

Test(archive_failure, stops_without_waiting_for_helpers, .timeout = 60) {
    enum { large_bytes = 3 << 20 };
    unsigned char *large = calloc(1, large_bytes);
    const bp_archive_helpers helpers = {2, start_counted, wait_to_help};
    stop_at stop = {0, 6};
    archive_file file;
    archive_file_start(&file, poll_until, &stop);
    bp_archive_use_helpers(file.archive, helpers);
    archive_file_add(&file, "large", large, large_bytes, when);
    expect_finish_fails(file.archive, BUGPACK_ERR_TIMEOUT, 0, file.path);
    archive_file_end(&file);
    free(large);
    cr_expect(zero(uint, atomic_load(&ended_helpers)));
    atomic_store(&may_help, true);
    while (atomic_load(&ended_helpers) < 2) {
        (void)usleep(1000);
    }
}

/* How often it was asked before anything was written: that is, while the entries were packed. */
static int count_before_writing(void *context) {
    unsigned *calls = context;
    struct stat info;
    cr_assert(eq(int, stat(path_of_zip, &info), 0));
    *calls += info.st_size == 0;
    return 0;
}

Test(archive_failure, asks_before_every_256_kib_that_it_packs) {
    unsigned calls = 0;
    archive_file file;
    archive_file_start(&file, count_before_writing, &calls);
    path_of_zip = file.path;
    archive_file_add(&file, "entry", text, sizeof text, when);
    archive_file_finish(&file);
    cr_expect(eq(int, (int)calls, 2 + 1)); /* two chunks, and before the first write */
    archive_file_end(&file);
}

Test(archive_failure, frees_what_was_never_finished) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    add_some(&file);
    archive_file_end(&file);
    bp_archive_free(NULL);
}
