/*
 * What the archive refuses, what it says when the system does, and what is left then.
 */
#include "support/archive_file.h"
#include "support/zip_reader.h"
#include "unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/uio.h>

static const uint64_t when = 1774751400000000000u;
static unsigned char noise[700000];

static bool is_odd;       /* this program's pwrite interrupts and writes short */
static unsigned calls;    /* how many writes there were */
static unsigned fails_at; /* which fails with EIO; 0 for none */

/* Linked before libc's: the objects under test call it. */
ssize_t pwrite(int fd, const void *bytes, size_t byte_count, off_t offset) {
    calls++;
    if (calls == fails_at) {
        errno = EIO;
        return -1;
    }
    if (is_odd && calls % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    if (is_odd && byte_count > 1) {
        byte_count = 1 + (byte_count * 7 + calls) % (byte_count - 1);
    }
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = byte_count};
    return pwritev(fd, &piece, 1, offset);
}

static bool is_cut; /* this program's pread finds that somebody has cut the file */

ssize_t pread(int fd, void *bytes, size_t byte_count, off_t offset) {
    struct iovec piece = {.iov_base = bytes, .iov_len = byte_count};
    return is_cut ? 0 : preadv(fd, &piece, 1, offset);
}

static void fill(void) {
    archive_fill_noise(noise, sizeof noise);
}

TestSuite(archive_failure, .init = fill);

static void expect_finish_fails(bp_archive *archive, bugpack_status status, int system_errno,
                                const char *path) {
    failure = (bugpack_error)BUGPACK_ERROR_INIT;
    uint64_t bytes = 4711;
    cr_expect(eq(int, bp_archive_finish(archive, &bytes, &failure), status));
    cr_expect(eq(int, failure.status, status));
    cr_expect(eq(int, failure.system_errno, system_errno));
    cr_expect(strstr(failure.message, path) != NULL, "%s", failure.message);
    cr_expect(eq(u64, bytes, 4711));
}

Test(archive_failure, refuses_a_zip_without_entries_or_with_one_open) {
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, when, NULL);
    expect_finish_fails(file.archive, BUGPACK_ERR_INVALID, 0, file.path);
    cr_expect(eq(int, lseek(file.fd, 0, SEEK_END), 0));
    archive_file_add(&file, "late", "x", 1);
    cr_assert(zero(int, bp_archive_begin(file.archive, "open", 0, NULL)));
    cr_expect(eq(int, bp_archive_begin(file.archive, "two", 0, NULL), BUGPACK_ERR_INVALID));
    expect_finish_fails(file.archive, BUGPACK_ERR_INVALID, 0, file.path);
    bp_archive_roll_back(file.archive);
    archive_file_finish(&file);
    expect_finish_fails(file.archive, BUGPACK_ERR_INVALID, 0, file.path);
    cr_expect(zip_holds(file.path, 1, "late", "x", 1));
}

Test(archive_failure, makes_no_zip_of_packed_bytes_that_somebody_has_cut) {
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, when, NULL);
    archive_file_add(&file, "a", noise, sizeof noise);
    is_cut = true;
    expect_finish_fails(file.archive, BUGPACK_ERR_IO, EIO, file.path);
    is_cut = false;
}

Test(archive_failure, refuses_bad_names_and_stays_usable) {
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, when, NULL);
    archive_file_add(&file, "once", "x", 1);
    CLEANUP(free_memory) char *long_name = malloc(65537);
    cr_assert(long_name != NULL);
    memset(long_name, 'n', 65536);
    long_name[65536] = '\0';
    const char *const names[] = {"", "once", "Once", "\xff", "cut\xc3", long_name};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_expect(
            eq(int, archive_file_try(&file, names[i], "y", 1, &failure), BUGPACK_ERR_INVALID));
        cr_expect(failure.message[0] != '\0');
    }
    uint64_t bytes;
    cr_expect(eq(int, bp_archive_end(file.archive, &bytes, NULL), BUGPACK_ERR_INVALID));
    long_name[65535] = '\0'; /* just allowed */
    archive_file_add(&file, long_name, "z", 1);
    archive_file_finish(&file);
    cr_expect(eq(int, archive_file_try(&file, "after", "y", 1, NULL), BUGPACK_ERR_INVALID));
    cr_expect(zip_holds(file.path, 2, long_name, "z", 1));
}

Test(archive_failure, refuses_more_entries_than_its_bound) {
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, when, NULL);
    for (unsigned i = 0; i <= BP_ARCHIVE_ENTRY_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u", i);
        cr_assert(eq(int, archive_file_try(&file, name, noise, i % 7, &failure),
                     i < BP_ARCHIVE_ENTRY_MAX ? BUGPACK_OK : BUGPACK_ERR_INVALID));
    }
    cr_expect(
        ne(ptr, strstr(failure.message, "it has as many entries as a report may have"), NULL));
    archive_file_finish(&file);
    cr_expect(zip_holds(file.path, BP_ARCHIVE_ENTRY_MAX, "4095", noise, 4095 % 7));
}

static void expect_device_fails(const char *device, int flags, int system_errno) {
    CLEANUP(close_fd) int fd = open(device, flags | O_CLOEXEC);
    cr_assert(ge(int, fd, 0));
    archive_file file = {.fd = fd};
    const bp_archive_target target = {
        .fd = fd, .dir_fd = AT_FDCWD, .name = "/x/y.zip", .wall_ns = when};
    cr_assert(eq(int, bp_archive_new(&target, &file.archive, NULL), 0));
    cr_assert(zero(int, archive_file_try(&file, "entry", noise, sizeof noise, &failure)));
    expect_finish_fails(file.archive, BUGPACK_ERR_IO, system_errno, "/x/y.zip");
    expect_finish_fails(file.archive, BUGPACK_ERR_INVALID, 0, "/x/y.zip");
    bp_archive_free(file.archive);
}

Test(archive_failure, keeps_the_errno_of_a_full_disk_and_of_a_descriptor_for_reading) {
    expect_device_fails("/dev/full", O_RDWR, ENOSPC);
    expect_device_fails("/dev/zero", O_RDONLY, EBADF);
}

static void limit_file_size(rlim_t bytes) {
    struct rlimit limit;
    cr_assert(eq(int, getrlimit(RLIMIT_FSIZE, &limit), 0));
    limit.rlim_cur = bytes;
    cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &limit), 0));
}

/* EFBIG at every size below what the zip needs; bugpack's threads block the signal. */
Test(archive_failure, an_entry_over_a_limit_of_the_system_leaves_no_trace) {
    sigset_t blocked;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGXFSZ);
    cr_assert(eq(int, sigprocmask(SIG_BLOCK, &blocked, NULL), 0));
    static const rlim_t limits[] = {200, 1000, 100000, 300000, sizeof noise};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        CLEANUP(archive_file_end) archive_file file;
        archive_file_start(&file, when, NULL);
        archive_file_add(&file, "before", "x", 1);
        off_t size = lseek(file.fd, 0, SEEK_END);
        limit_file_size(limits[i]);
        cr_expect(eq(int, archive_file_try(&file, "entry", noise, sizeof noise, &failure),
                     BUGPACK_ERR_IO));
        cr_expect(eq(int, failure.system_errno, EFBIG));
        cr_expect(le(i64, lseek(file.fd, 0, SEEK_END), size));
        limit_file_size((rlim_t)size + 10); /* has no space for the directory */
        expect_finish_fails(file.archive, BUGPACK_ERR_IO, EFBIG, file.path);
        limit_file_size(RLIM_INFINITY);
    }
}

Test(archive_failure, writes_everything_through_interruptions_and_short_counts) {
    is_odd = true;
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, when, NULL);
    archive_file_add(&file, "one", noise, sizeof noise);
    archive_file_add(&file, "two", "x", 1);
    archive_file_finish(&file);
    is_odd = false;
    cr_expect(zip_holds(file.path, 2, "one", noise, sizeof noise));
    cr_expect(zip_holds(file.path, 2, "two", "x", 1));
    cr_expect(zip_passes_unzip(file.path));
}

/* The nth write fails: the entry that it belongs to is not there, the others are. */
static bool fail_one(unsigned nth) {
    failure = (bugpack_error)BUGPACK_ERROR_INIT;
    static const struct {
        const char *name;
        size_t byte_count;
    } entries[] = {{"small", 1000}, {"large", sizeof noise}, {"stored", 100000}, {"last", 1}};
    archive_file file;
    long count = 0;
    bool is_there[4];
    uint64_t bytes = 4711;
    archive_file_start(&file, when, NULL);
    calls = 0;
    fails_at = nth;
    for (size_t i = 0; i < 4; i++) {
        bugpack_status status =
            archive_file_try(&file, entries[i].name, noise, entries[i].byte_count, &failure);
        is_there[i] = status == BUGPACK_OK;
        count += is_there[i];
        cr_expect(is_there[i] || (status == BUGPACK_ERR_IO && failure.system_errno == EIO));
    }
    bool is_reached = calls >= nth;
    bugpack_status status = bp_archive_finish(file.archive, &bytes, NULL);
    fails_at = 0;
    if (is_reached) {
        cr_expect(eq(int, count, 3), "write %u", nth);
        cr_expect(zero(int, status));
        for (size_t i = 0; i < 4; i++) {
            if (is_there[i]) {
                cr_expect(
                    zip_holds(file.path, count, entries[i].name, noise, entries[i].byte_count));
            }
        }
        cr_expect(zip_passes_unzip(file.path));
    } else {
        /* The directory's own write, or none. */
        cr_expect(eq(int, status, calls >= nth ? BUGPACK_ERR_IO : BUGPACK_OK));
        cr_expect(calls < nth || bytes == 4711);
    }
    bool was_any = calls >= nth;
    archive_file_end(&file);
    return was_any;
}

Test(archive_failure, a_write_that_fails_costs_its_entry_alone) {
    unsigned nth = 1;
    while (fail_one(nth)) {
        nth++;
    }
    cr_expect(gt(uint, nth, 12));
}

/* Cancels while the nth piece of 100,000 bytes passes. */
struct canceller {
    bp_cancel_token token;
    unsigned calls, cancels_at;
};

static bugpack_status cancel_at(void *context, const char *entry, const void *bytes,
                                size_t byte_count, bp_sink *pass_on, void *archive) {
    struct canceller *canceller = context;
    (void)entry;
    if (++canceller->calls == canceller->cancels_at) {
        atomic_store(&canceller->token.is_cancelled, true);
    }
    return bytes == NULL ? BUGPACK_OK : pass_on(archive, bytes, byte_count);
}

Test(archive_failure, stops_at_the_next_piece_when_it_is_cancelled) {
    for (unsigned n = 1; n <= 8; n++) {
        struct canceller canceller = {.cancels_at = n};
        CLEANUP(archive_file_end) archive_file file;
        uint64_t bytes = 4711;
        archive_file_start(&file, when, &canceller.token);
        bp_archive_set_filter(file.archive, cancel_at, &canceller);
        cr_assert(zero(int, bp_archive_begin(file.archive, "entry", 0, NULL)));
        for (unsigned i = 0; i < 7; i++) {
            (void)bp_archive_write(file.archive, noise + 100000 * i, 100000);
        }
        cr_expect(eq(int, bp_archive_end(file.archive, &bytes, &failure), BUGPACK_ERR_CANCELLED));
        cr_expect(ne(int, failure.message[0], '\0'));
        cr_expect(eq(i64, lseek(file.fd, 0, SEEK_END), 0));
        cr_expect(eq(u64, bytes, 4711));
    }
}

Test(archive_failure, frees_what_was_never_finished) {
    CLEANUP(archive_file_end) archive_file file;
    archive_file_start(&file, when, NULL);
    archive_file_add(&file, "one", noise, sizeof noise);
    cr_assert(zero(int, bp_archive_begin(file.archive, "open", 0, NULL)));
    cr_assert(zero(int, bp_archive_write(file.archive, noise, sizeof noise)));
    bp_archive_free(NULL);
}
