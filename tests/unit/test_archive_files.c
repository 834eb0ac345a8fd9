/*
 * Entries whose bytes lie in a file: what comes out, and what happens when they cannot be had.
 */
#include "support/archive_file.h"
#include "support/zip_reader.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/temp_file.h"
#include "platform/thread.h"

enum { chunk_bytes = 256 * 1024, max_bytes = 5 * chunk_bytes };

static const uint64_t when = 1774751400000000000u;
static unsigned char text[max_bytes];
static unsigned char noise[max_bytes]; /* does not compress */
static unsigned char both[max_bytes];  /* noise between texts */

static void fill(void) {
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < max_bytes; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise[i] = (unsigned char)(state >> 32);
        text[i] = (unsigned char)("{ \"key\": 17 },\n"[i % 15] + (noise[i] < 4));
        both[i] = i / 100000 % 2 == 0 ? text[i] : noise[i];
    }
}

TestSuite(archive_files, .init = fill);

static void make_spool(const archive_file *file, const void *bytes, size_t byte_count,
                       bp_temp_file *temp_file) {
    cr_assert(eq(int, bp_temp_file_open(temp_file, file->dir.fd, UINT64_MAX, NULL), 0));
    cr_assert(eq(int, bp_temp_file_write(temp_file, bytes, byte_count), 0));
    cr_assert(eq(int, bp_temp_file_flush(temp_file, NULL), 0));
}

static void expect_same(const archive_file *file, long count, const char *name, const void *bytes,
                        size_t byte_count) {
    cr_expect(zip_holds(file->path, count, name, bytes, byte_count), "%s of %zu", name, byte_count);
}

/* Sizes about the chunk's and the stored block's; with the deflated bytes in a file and in memory.
 */
Test(archive_files, come_out_as_they_went_in_at_every_size) {
    static const size_t sizes[] = {0,
                                   1,
                                   2,
                                   100,
                                   65535,
                                   65536,
                                   131070,
                                   chunk_bytes - 1,
                                   chunk_bytes,
                                   chunk_bytes + 1,
                                   2 * chunk_bytes,
                                   max_bytes};
    enum { size_count = sizeof sizes / sizeof sizes[0] };
    static const unsigned char *const kinds[] = {text, noise, both};
    for (unsigned way = 0; way < 2; way++) {
        for (size_t kind = 0; kind < 3; kind++) {
            archive_file file;
            archive_file_start(&file, NULL, NULL);
            bp_temp_file temp_files[size_count];
            if (way == 0) {
                bp_archive_use_temp_dir(file.archive, file.dir.fd);
            }
            for (size_t i = 0; i < size_count; i++) {
                char name[16];
                (void)snprintf(name, sizeof name, "%zu", i);
                make_spool(&file, kinds[kind], sizes[i], &temp_files[i]);
                cr_assert(eq(
                    int,
                    bp_archive_add_file(file.archive, name, temp_files[i].fd, sizes[i], when, NULL),
                    0));
            }
            archive_file_add(&file, "memory", kinds[kind], max_bytes, when);
            archive_file_finish(&file);
            for (size_t i = 0; i < size_count; i++) {
                char name[16];
                (void)snprintf(name, sizeof name, "%zu", i);
                expect_same(&file, size_count + 1, name, kinds[kind], sizes[i]);
                bp_temp_file_release(&temp_files[i]);
            }
            expect_same(&file, size_count + 1, "memory", kinds[kind], max_bytes);
            cr_expect(zip_passes_unzip(file.path));
            cr_expect(eq(sz, temp_dir_count(&file.dir), 1)); /* the zip alone */
            archive_file_end(&file);
        }
    }
}

Test(archive_files, are_deflated_where_that_is_smaller_and_cost_nothing_else) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    bp_archive_use_temp_dir(file.archive, file.dir.fd);
    bp_temp_file a, b;
    make_spool(&file, text, max_bytes, &a);
    make_spool(&file, noise, max_bytes, &b);
    cr_assert(eq(int, bp_archive_add_file(file.archive, "noise", b.fd, max_bytes, when, NULL), 0));
    cr_assert(eq(int, bp_archive_add_file(file.archive, "text", a.fd, max_bytes, when, NULL), 0));
    archive_file_finish(&file);
    char list[512] = "";
    cr_assert(zip_list(file.path, list, sizeof list));
    cr_expect(eq(str, list,
                 "noise|0|0|0o100600|2026-03-29 02:30:00|5554050001a88ec869|1310720\n"
                 "text|8|0|0o100600|2026-03-29 02:30:00|5554050001a88ec869|1310720\n"));
    off_t size = lseek(file.fd, 0, SEEK_END);
    cr_expect(lt(i64, size, max_bytes + max_bytes / 5));
    bp_temp_file_release(&a);
    bp_temp_file_release(&b);
    archive_file_end(&file);
}

static bugpack_status start_second(void *(*run)(void *), void *argument, pthread_t *ret_thread,
                                   bugpack_error *error) {
    static unsigned calls;
    return ++calls % 2 == 0 ? bp_thread_start(run, argument, ret_thread, error)
                            : BUGPACK_ERR_NO_MEMORY;
}

/* Writes a zip with helpers and reads it back. */
static size_t write_helped(bp_archive_helpers helpers, unsigned char *zip, size_t max_zip_bytes) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    bp_archive_use_temp_dir(file.archive, file.dir.fd);
    bp_archive_use_helpers(file.archive, helpers);
    bp_temp_file temp_file;
    make_spool(&file, both, max_bytes, &temp_file);
    cr_assert(
        eq(int, bp_archive_add_file(file.archive, "a", temp_file.fd, max_bytes, when, NULL), 0));
    archive_file_add(&file, "noise", noise, max_bytes, when);
    archive_file_add(&file, "text", text, max_bytes, when);
    archive_file_add(&file, "small", text, 10, when);
    archive_file_finish(&file);
    size_t bytes = temp_dir_read(&file.dir, "t.zip", zip, max_zip_bytes);
    expect_same(&file, 4, "a", both, max_bytes);
    expect_same(&file, 4, "text", text, max_bytes);
    bp_temp_file_release(&temp_file);
    archive_file_end(&file);
    return bytes;
}

Test(archive_files, are_the_same_however_many_help) {
    static unsigned char one[3 * max_bytes];
    static unsigned char other[3 * max_bytes];
    size_t bytes = write_helped((bp_archive_helpers){0}, one, sizeof one);
    cr_assert(lt(sz, bytes, sizeof one));
    for (unsigned count = 0; count < 5; count++) {
        bp_archive_helpers helpers = {count, bp_thread_start, bp_thread_stand_back};
        cr_expect(eq(sz, write_helped(helpers, other, sizeof other), bytes));
        cr_expect(memcmp(one, other, bytes) == 0, "%u helpers", count);
        helpers = (bp_archive_helpers){count, start_second, NULL};
        cr_expect(eq(sz, write_helped(helpers, other, sizeof other), bytes));
        cr_expect(memcmp(one, other, bytes) == 0, "%u helpers, of which not all start", count);
    }
}

Test(archive_files, leave_the_descriptors_offset_alone) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    bp_temp_file temp_file;
    make_spool(&file, text, 1000, &temp_file);
    cr_assert(eq(i64, lseek(temp_file.fd, 17, SEEK_SET), 17));
    cr_assert(eq(int, bp_archive_add_file(file.archive, "a", temp_file.fd, 1000, when, NULL), 0));
    archive_file_finish(&file);
    expect_same(&file, 1, "a", text, 1000);
    cr_expect(eq(i64, lseek(temp_file.fd, 0, SEEK_CUR), 17));
    bp_temp_file_release(&temp_file);
    archive_file_end(&file);
}

Test(archive_files, refuses_what_is_no_file) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    cr_expect(
        eq(int, bp_archive_add_file(file.archive, "a", -1, 0, when, NULL), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bp_archive_add_file(file.archive, "a", file.dir.fd, UINT64_MAX, when, NULL),
                 BUGPACK_ERR_INVALID));
    archive_file_end(&file);
}

static void expect_read_fails(const unsigned char *bytes, int fd, uint64_t byte_count,
                              int system_errno) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    bp_archive_use_temp_dir(file.archive, file.dir.fd);
    bp_temp_file temp_file;
    make_spool(&file, bytes, max_bytes, &temp_file);
    bp_archive_helpers helpers = {byte_count % 3, bp_thread_start, NULL};
    bp_archive_use_helpers(file.archive, helpers);
    int read_fd = fd == 0 ? temp_file.fd : fd;
    cr_assert(eq(int, bp_archive_add_file(file.archive, "a", read_fd, byte_count, when, NULL), 0));
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint64_t zip_bytes = 4711;
    cr_expect(eq(int, bp_archive_finish(file.archive, &zip_bytes, &error), BUGPACK_ERR_IO));
    cr_expect(eq(int, error.system_errno, system_errno));
    cr_expect(strstr(error.message, file.path) != NULL, "%s", error.message);
    cr_expect(eq(u64, zip_bytes, 4711));
    bp_temp_file_release(&temp_file);
    archive_file_end(&file);
}

Test(archive_files, fail_the_zip_when_they_end_early_or_cannot_be_read) {
    expect_read_fails(text, 0, max_bytes + 1, EIO);
    expect_read_fails(noise, 0, UINT32_MAX, EIO);
    expect_read_fails(text, 1000000, max_bytes, EBADF);
    int write_only = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert(write_only > 0 && directory > 0);
    expect_read_fails(text, write_only, 1, EBADF);
    expect_read_fails(text, directory, max_bytes, EISDIR);
    (void)close(write_only);
    (void)close(directory);
}

Test(archive_files, tell_when_there_is_no_place_for_what_was_deflated) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    bp_archive_use_temp_dir(file.archive, file.fd); /* not a directory */
    archive_file_add(&file, "small", text, chunk_bytes, when);
    archive_file_add(&file, "large", text, chunk_bytes + 1, when);
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint64_t zip_bytes;
    cr_expect(eq(int, bp_archive_finish(file.archive, &zip_bytes, &error), BUGPACK_ERR_IO));
    cr_expect(eq(int, error.system_errno, ENOTDIR));
    archive_file_end(&file);
}

/* The limit is met while spooling: the zip itself has not been begun. */
Test(archive_files, tell_a_file_size_limit_while_spooling) {
    (void)signal(SIGXFSZ, SIG_IGN);
    static const unsigned char *const kinds[] = {noise, both};
    for (size_t i = 0; i < 2; i++) {
        archive_file file;
        archive_file_start(&file, NULL, NULL);
        bp_archive_use_temp_dir(file.archive, file.dir.fd);
        bp_temp_file temp_file;
        make_spool(&file, kinds[i], max_bytes, &temp_file);
        cr_assert(eq(
            int, bp_archive_add_file(file.archive, "a", temp_file.fd, max_bytes, when, NULL), 0));
        struct rlimit before;
        cr_assert(eq(int, getrlimit(RLIMIT_FSIZE, &before), 0));
        struct rlimit limit = {.rlim_cur = 100000, .rlim_max = before.rlim_max};
        cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &limit), 0));
        bugpack_error error = BUGPACK_ERROR_INIT;
        uint64_t zip_bytes;
        bugpack_status status = bp_archive_finish(file.archive, &zip_bytes, &error);
        cr_assert(eq(int, setrlimit(RLIMIT_FSIZE, &before), 0));
        cr_expect(eq(int, status, BUGPACK_ERR_IO));
        cr_expect(eq(int, error.system_errno, EFBIG));
        cr_expect(eq(i64, lseek(file.fd, 0, SEEK_END), 0));
        bp_temp_file_release(&temp_file);
        archive_file_end(&file);
    }
}

static int stop_at(void *context) {
    unsigned *left = context;
    return *left == 0 || --*left == 0;
}

Test(archive_files, stop_wherever_they_are_asked_to) {
    for (unsigned n = 1; n <= 200; n += n < 8 ? 1 : 37) {
        unsigned left = n;
        archive_file file;
        archive_file_start(&file, stop_at, &left);
        bp_archive_use_temp_dir(file.archive, file.dir.fd);
        bp_archive_helpers helpers = {n % 3, bp_thread_start, NULL};
        bp_archive_use_helpers(file.archive, helpers);
        bp_temp_file temp_file;
        make_spool(&file, both, max_bytes, &temp_file);
        cr_assert(eq(
            int, bp_archive_add_file(file.archive, "a", temp_file.fd, max_bytes, when, NULL), 0));
        uint64_t zip_bytes;
        bugpack_status status = bp_archive_finish(file.archive, &zip_bytes, NULL);
        cr_expect(eq(int, status, left == 0 ? BUGPACK_ERR_TIMEOUT : BUGPACK_OK));
        cr_expect(n > 5 || left == 0); /* it is asked for each of the five chunks */
        bp_temp_file_release(&temp_file);
        archive_file_end(&file);
    }
}
