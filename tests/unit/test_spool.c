/*
 * A spool gives back what was written to it, keeps its limits, and leaves nothing behind.
 */
#include "support/temp_dir.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sink.h"
#include "base/spool.h"

typedef bugpack_status open_spool(bp_spool *, int, uint64_t, bugpack_error *);

static open_spool *const ways[] = {bp_spool_open, bp_spool_open_named};
enum { way_count = sizeof ways / sizeof ways[0] };

static char text[200000];
static char back[sizeof text + 1];
static temp_dir dir;

static void set_up(void) {
    cr_assert(temp_dir_make(&dir));
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + (i * i) % 23 + i % 3);
    }
}

static void tear_down(void) {
    temp_dir_remove(&dir);
}

TestSuite(spool, .init = set_up, .fini = tear_down);

static size_t read_all(const bp_spool *spool) {
    size_t done = 0;
    int64_t count;
    while ((count = bp_spool_read(spool, done, back + done, sizeof back - done)) > 0) {
        done += (size_t)count;
    }
    cr_assert(eq(i64, count, 0));
    return done;
}

Test(spool, gives_back_what_was_written_in_pieces_of_any_size) {
    static const size_t steps[] = {1, 7, 4096, 65535, 65536, 65537, sizeof text};
    for (size_t i = 0; i < way_count * (sizeof steps / sizeof steps[0]); i++) {
        size_t step = steps[i / way_count];
        bp_spool spool;
        cr_assert(eq(int, ways[i % way_count](&spool, dir.fd, sizeof text, NULL), 0));
        for (size_t at = 0; at < sizeof text; at += step) {
            size_t left = sizeof text - at;
            cr_assert(eq(int, bp_spool_write(&spool, text + at, left < step ? left : step), 0));
        }
        cr_expect(eq(u64, spool.size, sizeof text));
        cr_assert(eq(int, bp_spool_flush(&spool, NULL), 0));
        cr_assert(eq(sz, read_all(&spool), sizeof text));
        cr_expect(memcmp(back, text, sizeof text) == 0, "in pieces of %zu", step);
        bp_spool_release(&spool);
    }
}

Test(spool, goes_on_after_a_flush_and_reads_from_any_place) {
    bp_spool spool;
    cr_assert(eq(int, bp_spool_open(&spool, dir.fd, 100, NULL), 0));
    bp_sink *sink = bp_spool_sink;
    cr_assert(eq(int, sink(&spool, "one ", 4), 0));
    cr_assert(eq(int, bp_spool_flush(&spool, NULL), 0));
    cr_assert(eq(int, sink(&spool, "two", 3), 0));
    cr_assert(eq(int, sink(&spool, NULL, 0), 0));
    cr_assert(eq(int, bp_spool_flush(&spool, NULL), 0));
    cr_assert(eq(i64, bp_spool_read(&spool, 4, back, 100), 3));
    cr_expect(memcmp(back, "two", 3) == 0);
    cr_expect(eq(i64, bp_spool_read(&spool, 7, back, 100), 0));
    cr_expect(eq(i64, bp_spool_read(&spool, 1000, back, 100), 0));
    bp_spool_release(&spool);
    cr_expect(eq(i64, bp_spool_read(&spool, 0, back, 1), -1));
    cr_expect(eq(int, errno, EBADF));
}

Test(spool, is_private_closed_on_exec_and_without_a_name) {
    (void)umask(0);
    for (size_t i = 0; i < way_count; i++) {
        bp_spool spool;
        cr_assert(eq(int, ways[i](&spool, dir.fd, 100, NULL), 0));
        cr_expect(bp_spool_is_open(&spool));
        cr_assert(eq(int, bp_spool_write(&spool, "x", 1), 0));
        cr_assert(eq(int, bp_spool_flush(&spool, NULL), 0));
        cr_expect(eq(sz, temp_dir_count(&dir), 0));
        struct stat info;
        cr_assert(eq(int, fstat(spool.fd, &info), 0));
        cr_expect(eq(int, (int)info.st_mode, S_IFREG | 0600));
        cr_expect(eq(int, (int)info.st_nlink, 0));
        cr_expect(ne(int, fcntl(spool.fd, F_GETFD) & FD_CLOEXEC, 0));
        int fd = spool.fd;
        bp_spool_release(&spool);
        cr_expect(not(bp_spool_is_open(&spool)));
        cr_expect(eq(int, fcntl(fd, F_GETFD), -1));
        bp_spool_release(&spool); /* once more does nothing */
    }
}

Test(spool, has_mode_0600_also_under_a_umask_that_takes_everything) {
    (void)umask(0777);
    for (size_t i = 0; i < way_count; i++) {
        bp_spool spool;
        cr_assert(eq(int, ways[i](&spool, dir.fd, 100, NULL), 0));
        struct stat info;
        cr_assert(eq(int, fstat(spool.fd, &info), 0));
        cr_expect(eq(int, (int)info.st_mode & 0777, 0600));
        bp_spool_release(&spool);
    }
}

Test(spool, refuses_a_write_over_its_limit_whole_and_for_good) {
    bp_spool spool;
    cr_assert(eq(int, bp_spool_open(&spool, dir.fd, 5, NULL), 0));
    cr_expect(eq(int, bp_spool_write(&spool, "1234", 4), 0));
    cr_expect(eq(int, bp_spool_write(&spool, "56", 2), BUGPACK_ERR_NO_MEMORY));
    cr_expect(eq(int, bp_spool_write(&spool, "5", 1), BUGPACK_ERR_NO_MEMORY));
    cr_expect(eq(u64, spool.size, 4));
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_expect(eq(int, bp_spool_flush(&spool, &error), BUGPACK_ERR_NO_MEMORY));
    cr_expect(strstr(error.message, "limit of 5 bytes") != NULL, "%s", error.message);
    bp_spool_release(&spool);
    cr_assert(eq(int, bp_spool_open(&spool, dir.fd, 5, NULL), 0));
    cr_expect(eq(int, bp_spool_write(&spool, "12345", 5), 0));
    cr_expect(eq(int, bp_spool_flush(&spool, NULL), 0));
    cr_expect(eq(sz, read_all(&spool), 5));
    bp_spool_release(&spool);
    cr_assert(eq(int, bp_spool_open(&spool, dir.fd, UINT64_MAX, NULL), 0));
    cr_expect(eq(int, bp_spool_write(&spool, "x", 1), 0));
    cr_expect(eq(int, bp_spool_write(&spool, "x", SIZE_MAX), BUGPACK_ERR_NO_MEMORY));
    bp_spool_release(&spool);
}

/* Both where the write that fails is that of a flush, and where it is one of many bytes. */
Test(spool, tells_a_full_disk_and_stays_failed) {
    static const size_t sizes[] = {1, sizeof text};
    for (size_t i = 0; i < 2; i++) {
        bp_spool spool;
        cr_assert(eq(int, bp_spool_open(&spool, dir.fd, sizeof text * 2, NULL), 0));
        int full = open("/dev/full", O_RDWR | O_CLOEXEC);
        cr_assert(ge(int, full, 0));
        (void)close(spool.fd);
        spool.fd = full;
        bugpack_status status = bp_spool_write(&spool, text, sizes[i]);
        cr_expect(eq(int, status, sizes[i] == 1 ? BUGPACK_OK : BUGPACK_ERR_IO));
        for (unsigned again = 0; again < 2; again++) {
            bugpack_error error = BUGPACK_ERROR_INIT;
            cr_expect(eq(int, bp_spool_flush(&spool, &error), BUGPACK_ERR_IO));
            cr_expect(eq(int, error.system_errno, ENOSPC));
            cr_expect(strstr(error.message, "No space left") != NULL, "%s", error.message);
            cr_expect(eq(int, bp_spool_write(&spool, "x", 1), BUGPACK_ERR_IO));
        }
        bp_spool_release(&spool);
    }
}

Test(spool, tells_a_file_size_limit) {
    (void)signal(SIGXFSZ, SIG_IGN);
    bp_spool spool;
    cr_assert(eq(int, bp_spool_open(&spool, dir.fd, sizeof text, NULL), 0));
    struct rlimit before;
    cr_assert(eq(int, getrlimit(RLIMIT_FSIZE, &before), 0));
    struct rlimit limit = {.rlim_cur = 100000, .rlim_max = before.rlim_max};
    cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &limit), 0));
    bugpack_status status = bp_spool_write(&spool, text, sizeof text);
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status flushed = bp_spool_flush(&spool, &error);
    cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &before), 0));
    cr_expect(eq(int, status, BUGPACK_ERR_IO));
    cr_expect(eq(int, flushed, BUGPACK_ERR_IO));
    cr_expect(eq(int, error.system_errno, EFBIG));
    bp_spool_release(&spool);
}

Test(spool, cannot_be_made_without_a_directory_and_is_closed_then) {
    int file = openat(dir.fd, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(ge(int, file, 0));
    const int bad[] = {file, -1};
    const int numbers[] = {ENOTDIR, EBADF};
    for (size_t i = 0; i < 2 * way_count; i++) {
        bp_spool spool;
        memset(&spool, 0x5a, sizeof spool);
        bugpack_error error = BUGPACK_ERROR_INIT;
        cr_expect(
            eq(int, ways[i % way_count](&spool, bad[i / way_count], 5, &error), BUGPACK_ERR_IO));
        cr_expect(eq(int, error.system_errno, numbers[i / way_count]));
        cr_expect(not(bp_spool_is_open(&spool)));
        cr_expect(eq(int, bp_spool_write(&spool, "", 0), BUGPACK_ERR_INVALID));
        cr_expect(eq(int, bp_spool_flush(&spool, &error), BUGPACK_ERR_INVALID));
        bp_spool_release(&spool);
    }
    (void)close(file);
}

Test(spool, moves_with_what_is_pending) {
    bp_spool one = BP_SPOOL_INIT;
    bp_spool other;
    cr_assert(eq(int, bp_spool_open(&one, dir.fd, 10, NULL), 0));
    cr_assert(eq(int, bp_spool_open(&other, dir.fd, 10, NULL), 0));
    cr_expect(eq(int, bp_spool_write(&one, "old", 3), 0));
    cr_expect(eq(int, bp_spool_write(&other, "new", 3), 0));
    int old_fd = one.fd;
    bp_spool_move(&one, &other);
    cr_expect(eq(int, fcntl(old_fd, F_GETFD), -1));
    cr_expect(not(bp_spool_is_open(&other)));
    cr_expect(eq(int, bp_spool_flush(&one, NULL), 0));
    cr_expect(eq(sz, read_all(&one), 3));
    cr_expect(memcmp(back, "new", 3) == 0);
    bp_spool_release(&one);
    bp_spool_release(&other);
}

Test(spool, forgets_its_end_whether_pending_or_written_and_goes_on) {
    bp_spool spool;
    cr_assert(eq(int, bp_spool_open(&spool, dir.fd, sizeof text, NULL), 0));
    cr_expect(eq(int, bp_spool_write(&spool, "abcdef", 6), 0));
    cr_expect(eq(int, bp_spool_truncate(&spool, 4), 0));
    cr_expect(eq(int, bp_spool_flush(&spool, NULL), 0));
    cr_expect(eq(int, bp_spool_write(&spool, text, 100000), 0));
    cr_expect(eq(int, bp_spool_write(&spool, "pending", 7), 0));
    cr_expect(eq(int, bp_spool_truncate(&spool, 2), 0));
    cr_expect(eq(u64, spool.size, 2));
    cr_expect(eq(int, bp_spool_write(&spool, "xyz", 3), 0));
    cr_expect(eq(int, bp_spool_flush(&spool, NULL), 0));
    cr_expect(eq(sz, read_all(&spool), 5));
    cr_expect(memcmp(back, "abxyz", 5) == 0);
    cr_expect(eq(int, bp_spool_truncate(&spool, 6), BUGPACK_ERR_INVALID));
    bp_spool_release(&spool);
}
