/*
 * A spool gives back what was written to it, keeps its limits, and leaves nothing behind.
 */
#include "support/temp_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/sink.h"
#include "base/temp_file.h"
#include "support/no_tmpfile.h"
#include "unit/unit.h"

/* With O_TMPFILE, and on a file system without it. */
enum { way_count = 2 };

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

TestSuite(temp_file, .init = set_up, .fini = tear_down);

static size_t read_all(const bp_temp_file *temp_file) {
    size_t done = 0;
    int64_t count;
    while ((count = bp_temp_file_read(temp_file, done, back + done, sizeof back - done)) > 0) {
        done += (size_t)count;
    }
    cr_assert(eq(i64, count, 0));
    return done;
}

static bugpack_status open_by(size_t way, bp_temp_file *temp_file, int dir_fd, uint64_t max_size,
                              bugpack_error *error) {
    has_no_tmpfile = way == 1;
    return bp_temp_file_open(temp_file, dir_fd, max_size, error);
}

Test(temp_file, gives_back_what_was_written_in_pieces_of_any_size) {
    static const size_t steps[] = {1, 7, 4096, 65535, 65536, 65537, sizeof text};
    for (size_t i = 0; i < way_count * (sizeof steps / sizeof steps[0]); i++) {
        size_t step = steps[i / way_count];
        CLEANUP(bp_temp_file_release) bp_temp_file temp_file;
        cr_assert(eq(int, open_by(i % way_count, &temp_file, dir.fd, sizeof text, NULL), 0));
        for (size_t at = 0; at < sizeof text; at += step) {
            size_t left = sizeof text - at;
            cr_assert(
                eq(int, bp_temp_file_write(&temp_file, text + at, left < step ? left : step), 0));
        }
        cr_expect(eq(u64, temp_file.size, sizeof text));
        cr_assert(eq(int, bp_temp_file_flush(&temp_file, NULL), 0));
        cr_assert(eq(sz, read_all(&temp_file), sizeof text));
        cr_expect(memcmp(back, text, sizeof text) == 0, "in pieces of %zu", step);
    }
}

Test(temp_file, goes_on_after_a_flush_and_reads_from_any_place) {
    bp_temp_file temp_file;
    cr_assert(eq(int, bp_temp_file_open(&temp_file, dir.fd, 100, NULL), 0));
    bp_sink *sink = bp_temp_file_sink;
    cr_assert(eq(int, sink(&temp_file, "one ", 4), 0));
    cr_assert(eq(int, bp_temp_file_flush(&temp_file, NULL), 0));
    cr_assert(eq(int, sink(&temp_file, "two", 3), 0));
    cr_assert(eq(int, sink(&temp_file, NULL, 0), 0));
    cr_assert(eq(int, bp_temp_file_flush(&temp_file, NULL), 0));
    cr_assert(eq(i64, bp_temp_file_read(&temp_file, 4, back, 100), 3));
    cr_expect(memcmp(back, "two", 3) == 0);
    cr_expect(eq(i64, bp_temp_file_read(&temp_file, 7, back, 100), 0));
    cr_expect(eq(i64, bp_temp_file_read(&temp_file, 1000, back, 100), 0));
    bp_temp_file_release(&temp_file);
    cr_expect(eq(i64, bp_temp_file_read(&temp_file, 0, back, 1), -1));
    cr_expect(eq(int, errno, EBADF));
}

Test(temp_file, is_private_closed_on_exec_and_without_a_name) {
    static const mode_t masks[] = {0, 0777};
    for (size_t i = 0; i < 2 * way_count; i++) {
        bp_temp_file temp_file;
        (void)umask(masks[i / way_count]);
        cr_assert(eq(int, open_by(i % way_count, &temp_file, dir.fd, 100, NULL), 0));
        cr_expect(bp_temp_file_is_open(&temp_file));
        cr_assert(eq(int, bp_temp_file_write(&temp_file, "x", 1), 0));
        cr_assert(eq(int, bp_temp_file_flush(&temp_file, NULL), 0));
        cr_expect(eq(sz, temp_dir_count(&dir), 0));
        struct stat info;
        cr_assert(eq(int, fstat(temp_file.fd, &info), 0));
        cr_expect(eq(int, info.st_mode, S_IFREG | 0600));
        cr_expect(eq(int, info.st_nlink, 0));
        cr_expect(ne(int, fcntl(temp_file.fd, F_GETFD) & FD_CLOEXEC, 0));
        int fd = temp_file.fd;
        bp_temp_file_release(&temp_file);
        cr_expect(not(bp_temp_file_is_open(&temp_file)));
        cr_expect(eq(int, fcntl(fd, F_GETFD), -1));
        bp_temp_file_release(&temp_file); /* once more does nothing */
    }
}

Test(temp_file, refuses_a_write_over_its_limit_whole_and_for_good) {
    bp_temp_file temp_file;
    cr_assert(eq(int, bp_temp_file_open(&temp_file, dir.fd, 5, NULL), 0));
    cr_expect(eq(int, bp_temp_file_write(&temp_file, "1234", 4), 0));
    cr_expect(eq(int, bp_temp_file_write(&temp_file, "56", 2), BUGPACK_ERR_LIMIT));
    cr_expect(eq(int, bp_temp_file_write(&temp_file, "5", 1), BUGPACK_ERR_LIMIT));
    cr_expect(eq(u64, temp_file.size, 4));
    cr_expect(eq(int, bp_temp_file_flush(&temp_file, &failure), BUGPACK_ERR_LIMIT));
    cr_expect(strstr(failure.message, "limit of 5 bytes") != NULL, "%s", failure.message);
    bp_temp_file_release(&temp_file);
    cr_assert(eq(int, bp_temp_file_open(&temp_file, dir.fd, 5, NULL), 0));
    cr_expect(eq(int, bp_temp_file_write(&temp_file, "12345", 5), 0));
    cr_expect(eq(int, bp_temp_file_flush(&temp_file, NULL), 0));
    cr_expect(eq(sz, read_all(&temp_file), 5));
    bp_temp_file_release(&temp_file);
    cr_assert(eq(int, bp_temp_file_open(&temp_file, dir.fd, UINT64_MAX, NULL), 0));
    cr_expect(eq(int, bp_temp_file_write(&temp_file, "x", 1), 0));
#ifdef __LP64__ /* else so much is within that limit */
    cr_expect(eq(int, bp_temp_file_write(&temp_file, "x", SIZE_MAX), BUGPACK_ERR_LIMIT));
#endif
    bp_temp_file_release(&temp_file);
}

Test(temp_file, touches_no_file_that_has_its_number) {
    bp_temp_file temp_file;
    cr_assert(eq(int, bp_temp_file_open(&temp_file, dir.fd, 100, NULL), 0));
    cr_assert(eq(int, bp_temp_file_write(&temp_file, "ours", 4), 0));
    CLEANUP(close_fd) int other = openat(dir.fd, "other", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(eq(int, dup2(other, temp_file.fd), temp_file.fd));
    cr_expect(bp_temp_file_is_lost(&temp_file));
    cr_expect(eq(i64, bp_temp_file_read(&temp_file, 0, back, 1), -1));
    cr_expect(eq(int, errno, EBADF));
    cr_expect(eq(int, bp_temp_file_flush(&temp_file, &failure), BUGPACK_ERR_IO));
    cr_expect(eq(int, failure.system_errno, EBADF));
    CLEANUP(close_fd) int number = temp_file.fd;
    bp_temp_file_release(&temp_file);
    cr_expect(ge(int, fcntl(number, F_GETFD), 0), "it is not closed");
    cr_expect(zero(i64, lseek(number, 0, SEEK_END)));
}

/* Both where the write that fails is that of a flush, and where it is one of many bytes. */
Test(temp_file, tells_a_full_disk_and_stays_failed) {
    static const size_t sizes[] = {1, sizeof text};
    for (size_t i = 0; i < 2; i++) {
        CLEANUP(bp_temp_file_release) bp_temp_file temp_file;
        cr_assert(eq(int, bp_temp_file_open(&temp_file, dir.fd, sizeof text * 2, NULL), 0));
        int full = open("/dev/full", O_RDWR | O_CLOEXEC);
        cr_assert(ge(int, full, 0));
        (void)close(temp_file.fd);
        temp_file.fd = full;
        temp_file.mark = bp_fd_mark_of(full);
        bugpack_status status = bp_temp_file_write(&temp_file, text, sizes[i]);
        cr_expect(eq(int, status, sizes[i] == 1 ? BUGPACK_OK : BUGPACK_ERR_IO));
        for (unsigned again = 0; again < 2; again++) {
            cr_expect(eq(int, bp_temp_file_flush(&temp_file, &failure), BUGPACK_ERR_IO));
            cr_expect(eq(int, failure.system_errno, ENOSPC));
            cr_expect(strstr(failure.message, "No space left") != NULL, "%s", failure.message);
            cr_expect(eq(int, bp_temp_file_write(&temp_file, "x", 1), BUGPACK_ERR_IO));
        }
    }
}

Test(temp_file, cannot_be_made_without_a_directory_and_is_closed_then) {
    CLEANUP(close_fd) int file = openat(dir.fd, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(ge(int, file, 0));
    const int bad[] = {file, -1};
    const int numbers[] = {ENOTDIR, EBADF};
    for (size_t i = 0; i < 2 * way_count; i++) {
        CLEANUP(bp_temp_file_release) bp_temp_file temp_file;
        memset(&temp_file, 0x5a, sizeof temp_file);
        cr_expect(eq(int, open_by(i % way_count, &temp_file, bad[i / way_count], 5, &failure),
                     BUGPACK_ERR_IO));
        cr_expect(eq(int, failure.system_errno, numbers[i / way_count]));
        cr_expect(not(bp_temp_file_is_open(&temp_file)));
        cr_expect(eq(int, bp_temp_file_write(&temp_file, "", 0), BUGPACK_ERR_INVALID));
        cr_expect(eq(int, bp_temp_file_flush(&temp_file, &failure), BUGPACK_ERR_INVALID));
    }
}
