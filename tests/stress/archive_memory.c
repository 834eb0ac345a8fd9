/*
 * A zip of 50 MiB that pass through the archive takes at most 1.5 MiB of memory, libzip and its
 * code with it, whether they shrink or not.
 */
#include "support/check.h"
#include "support/temp_dir.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/sanitizer.h"
#include "base/temp_file.h"

enum { file_count = 5, step_bytes = 64 * 1024 };

static const uint64_t temp_file_bytes = 10u << 20;
static const long max_kb = 1536;

static const bool counts_memory = !BP_SANITIZED; /* a sanitizer's own would count too */

static uint64_t random_state = 88172645463325252u;
static unsigned char step[step_bytes + 200];

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void fill_log(void) {
    static const char *const messages[] = {"cache miss for image", "frame decoded, bytes",
                                           "message of type", "reconnecting, attempt"};
    size_t at = 0;
    while (at < step_bytes) {
        uint64_t word = next_random();
        int length = snprintf((char *)step + at, sizeof step - at,
                              "{\"monotonic_ns\":%llu,\"level\":\"info\",\"message\":\"%s %u\"}\n",
                              (unsigned long long)(word >> 24), messages[word & 3],
                              (unsigned)(word >> 4 & 0xfff));
        CHECK(length > 0);
        at += (size_t)length;
    }
}

static void fill_noise(void) {
    for (size_t at = 0; at < step_bytes; at += sizeof(uint64_t)) {
        uint64_t word = next_random();
        memcpy(step + at, &word, sizeof word);
    }
}

static void make_files(const temp_dir *dir, void (*fill)(void), bp_temp_file *temp_files) {
    for (unsigned i = 0; i < file_count; i++) {
        CHECK(bp_temp_file_open(&temp_files[i], dir->fd, temp_file_bytes, NULL) == BUGPACK_OK);
        for (uint64_t done = 0; done < temp_file_bytes; done += step_bytes) {
            fill();
            CHECK(bp_temp_file_write(&temp_files[i], step, step_bytes) == BUGPACK_OK);
        }
        CHECK(bp_temp_file_flush(&temp_files[i], NULL) == BUGPACK_OK);
    }
}

/* Returns the size of the zip. */
static uint64_t write_zip(const temp_dir *dir, const bp_temp_file *temp_files) {
    uint64_t zip_bytes = 0;
    int fd = openat(dir->fd, "t.zip", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    const bp_archive_target target = {.fd = fd, .dir_fd = dir->fd, .name = "t.zip"};
    bp_archive *archive = NULL;
    CHECK(bp_archive_new(&target, &archive, NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < file_count; i++) {
        char name[8];
        uint64_t bytes;
        (void)snprintf(name, sizeof name, "%u", i);
        CHECK(bp_archive_begin(archive, name, 0, NULL) == BUGPACK_OK);
        for (uint64_t at = 0; at < temp_file_bytes; at += step_bytes) {
            CHECK(bp_temp_file_read(&temp_files[i], at, step, step_bytes) == step_bytes);
            CHECK(bp_archive_write(archive, step, step_bytes) == BUGPACK_OK);
        }
        CHECK(bp_archive_end(archive, &bytes, NULL) == BUGPACK_OK && bytes == temp_file_bytes);
    }
    CHECK(bp_archive_finish(archive, &zip_bytes, NULL) == BUGPACK_OK);
    bp_archive_free(archive);
    (void)close(fd);
    return zip_bytes;
}

/* A line of /proc/self/status in KiB. getrusage's peak would be that of before exec, too. */
static long status_kb(const char *name) {
    FILE *file = fopen("/proc/self/status", "re");
    CHECK(file != NULL);
    char line[256];
    long kb = -1;
    while (kb < 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            kb = strtol(line + strlen(name), NULL, 10);
        }
    }
    (void)fclose(file);
    CHECK(kb > 0);
    return kb;
}

/* Lets the peak begin anew (proc(5), clear_refs). */
static void reset_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "we");
    if (file == NULL || fputs("5", file) < 0 || fclose(file) != 0) {
        SKIP("the peak of memory cannot be reset here");
    }
}

static void measure(const temp_dir *dir, const char *label, void (*fill)(void)) {
    bp_temp_file temp_files[file_count];
    make_files(dir, fill, temp_files);
    reset_peak();
    long before_kb = status_kb("VmRSS:");
    uint64_t zip_bytes = write_zip(dir, temp_files);
    long took_kb = status_kb("VmHWM:") - before_kb;
    (void)printf("%s: peak of memory grew by %ld KiB, %.1f MiB\n", label, took_kb,
                 (double)zip_bytes / (1 << 20));
    CHECK(!counts_memory || took_kb <= max_kb);
    CHECK(zip_bytes < file_count * temp_file_bytes + 65536);
    for (unsigned i = 0; i < file_count; i++) {
        bp_temp_file_release(&temp_files[i]);
    }
}

int main(void) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    measure(&dir, "log", fill_log);
    measure(&dir, "noise", fill_noise);
    CHECK(temp_dir_count(&dir) == 1); /* the zip alone */
    temp_dir_remove(&dir);
    return 0;
}
