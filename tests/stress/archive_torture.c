/*
 * Every allocation that writing a zip takes fails in turn, alone and with all that follow: there is
 * never a crash, a failure has a status and a sentence, and a success is the very same zip.
 */
#include "support/check.h"
#include "support/failing_malloc.h"
#include "support/temp_dir.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "archive/archive.h"

static const uint64_t when = 1774751400000000000u;

enum { zip_max = 1024 * 1024 };

static char text[200000];
static unsigned char noise[100000];
static char large[300000]; /* more than one piece */
static unsigned char wanted[zip_max];
static unsigned char got[zip_max];

static void fill(void) {
    uint32_t state = 2463534242u;
    for (size_t i = 0; i < sizeof noise; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        noise[i] = (unsigned char)state;
    }
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = "0123456789abcdef"[noise[i % sizeof noise] & 15];
    }
    for (size_t i = 0; i < sizeof large; i++) {
        large[i] = text[i % sizeof text];
    }
}

static bugpack_status add(bp_archive *archive, const char *name, const void *bytes,
                          size_t byte_count, bugpack_error *error) {
    uint64_t entry_bytes;
    bugpack_status status = bp_archive_begin(archive, name, 0, error);
    if (status == BUGPACK_OK) {
        (void)bp_archive_write(archive, bytes, byte_count);
        status = bp_archive_end(archive, &entry_bytes, error);
    }
    return status;
}

static bugpack_status write_zip(int dir_fd, int fd, bugpack_error *error) {
    const bp_archive_target target = {
        .fd = fd, .dir_fd = dir_fd, .name = "torture.zip", .wall_ns = when};
    bp_archive *archive = NULL;
    uint64_t bytes = 0;
    bugpack_status status = bp_archive_new(&target, &archive, error);
    static const struct {
        const char *name;
        const void *bytes;
        size_t byte_count;
    } entries[] = {{"text", text, sizeof text},
                   {"noise", noise, sizeof noise},
                   {"large", large, sizeof large},
                   {"\xc3\xa4", "x", 1},
                   {"empty", NULL, 0}};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0] && status == BUGPACK_OK; i++) {
        status = add(archive, entries[i].name, entries[i].bytes, entries[i].byte_count, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_archive_finish(archive, &bytes, error);
    }
    bp_archive_free(archive);
    return status;
}

/* An entry that could not be added does not spoil what is finished all the same. */
static bugpack_status add_and_go_on(int dir_fd, int fd, bool *ret_added) {
    const bp_archive_target target = {
        .fd = fd, .dir_fd = dir_fd, .name = "torture.zip", .wall_ns = when};
    bp_archive *archive = NULL;
    bugpack_status status = bp_archive_new(&target, &archive, NULL);
    *ret_added = false;
    if (status == BUGPACK_OK) {
        bool is_first = add(archive, "a", text, 1000, NULL) == BUGPACK_OK;
        bool is_second = add(archive, "b", text, 1000, NULL) == BUGPACK_OK;
        *ret_added = is_first && is_second;
        uint64_t bytes;
        status = bp_archive_finish(archive, &bytes, NULL);
    }
    bp_archive_free(archive);
    return status;
}

static int new_file(const temp_dir *dir) {
    int fd = openat(dir->fd, "t.zip", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    return fd;
}

static size_t make_wanted(const temp_dir *dir) {
    int fd = new_file(dir);
    CHECK(write_zip(dir->fd, fd, NULL) == BUGPACK_OK);
    (void)close(fd);
    size_t wanted_bytes = temp_dir_read(dir, "t.zip", wanted, sizeof wanted);
    CHECK(wanted_bytes > sizeof noise && wanted_bytes < sizeof wanted);
    return wanted_bytes;
}

static void fail_each(const temp_dir *dir, size_t wanted_bytes, bool and_all_later) {
    unsigned long failures = 0;
    unsigned long successes = 0;
    for (unsigned long nth = 1;; nth++) {
        int fd = new_file(dir);
        bugpack_error error = BUGPACK_ERROR_INIT;
        failing_malloc_arm(nth, and_all_later);
        bugpack_status status = write_zip(dir->fd, fd, &error);
        unsigned long tried = failing_malloc_disarm();
        (void)close(fd);
        if (tried < nth) {
            CHECK(status == BUGPACK_OK);
            break;
        }
        if (status == BUGPACK_OK) {
            CHECK(temp_dir_read(dir, "t.zip", got, sizeof got) == wanted_bytes);
            CHECK(memcmp(got, wanted, wanted_bytes) == 0);
            successes++;
        } else {
            CHECK(error.status == status && error.message[0] != '\0');
            CHECK(status == BUGPACK_ERR_NO_MEMORY);
            failures++;
        }
    }
    CHECK(failures > 10);
    (void)printf("%s: %lu failed, %lu succeeded all the same\n",
                 and_all_later ? "one and all later" : "one allocation", failures, successes);
}

/* A host that ignores the failure of one add gets a zip of the other, or a failure. */
static void fail_each_and_go_on(const temp_dir *dir) {
    for (unsigned long nth = 1;; nth++) {
        int fd = new_file(dir);
        bool is_added;
        failing_malloc_arm(nth, false);
        bugpack_status status = add_and_go_on(dir->fd, fd, &is_added);
        unsigned long tried = failing_malloc_disarm();
        (void)close(fd);
        if (tried < nth) {
            CHECK(status == BUGPACK_OK && is_added);
            break;
        }
        if (status == BUGPACK_OK) {
            size_t bytes = temp_dir_read(dir, "t.zip", got, sizeof got);
            /* The end record: how many entries there are. */
            CHECK(bytes > 22 && memcmp(got + bytes - 22, "PK\5\6", 4) == 0);
            CHECK(got[bytes - 12] == (is_added ? 2 : 1));
        }
    }
}

int main(void) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    fill();
    size_t wanted_bytes = make_wanted(&dir);
    fail_each(&dir, wanted_bytes, false);
    fail_each(&dir, wanted_bytes, true);
    fail_each_and_go_on(&dir);
    temp_dir_remove(&dir);
    return 0;
}
