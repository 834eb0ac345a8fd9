/*
 * For tests of the archive: a zip being written to a file of a temporary directory.
 */
#ifndef TESTS_SUPPORT_ARCHIVE_FILE_H
#define TESTS_SUPPORT_ARCHIVE_FILE_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "archive/archive.h"
#include "support/temp_dir.h"

typedef struct archive_file {
    temp_dir dir;
    char path[300];
    int fd;
    bp_archive *archive;
} archive_file;

/* Bytes that do not compress. */
static inline void archive_fill_noise(unsigned char *bytes, size_t byte_count) {
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < byte_count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (unsigned char)(state >> 32);
    }
}

static inline void archive_file_start(archive_file *file, uint64_t wall_ns,
                                      const bp_cancel_token *token) {
    cr_assert(temp_dir_make(&file->dir));
    (void)snprintf(file->path, sizeof file->path, "%s/t.zip", file->dir.path);
    file->fd = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cr_assert(ge(int, file->fd, 0));
    file->archive = NULL;
    const bp_archive_target target = {.fd = file->fd,
                                      .dir_fd = file->dir.fd,
                                      .name = file->path,
                                      .wall_ns = wall_ns,
                                      .token = token};
    cr_assert(eq(int, bp_archive_new(&target, &file->archive, NULL), 0));
}

/* All of one entry, at the rank 0. */
static inline bugpack_status archive_file_try(archive_file *file, const char *name,
                                              const void *bytes, size_t byte_count,
                                              bugpack_error *error) {
    uint64_t entry_bytes = 0;
    bugpack_status status = bp_archive_begin(file->archive, name, 0, error);
    if (status == BUGPACK_OK) {
        (void)bp_archive_write(file->archive, bytes, byte_count);
        status = bp_archive_end(file->archive, &entry_bytes, error);
        cr_expect(status != BUGPACK_OK || entry_bytes == byte_count);
    }
    return status;
}

static inline void archive_file_add(archive_file *file, const char *name, const void *bytes,
                                    size_t byte_count) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(archive_file_try(file, name, bytes, byte_count, &error) == BUGPACK_OK, "%s",
              error.message);
}

static inline void archive_file_finish(archive_file *file) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint64_t bytes = 0;
    cr_assert(bp_archive_finish(file->archive, &bytes, &error) == BUGPACK_OK, "%s", error.message);
    cr_expect(eq(u64, bytes, (uint64_t)lseek(file->fd, 0, SEEK_END)));
}

static inline void archive_file_end(archive_file *file) {
    bp_archive_free(file->archive);
    (void)close(file->fd);
    temp_dir_remove(&file->dir);
}

#endif
