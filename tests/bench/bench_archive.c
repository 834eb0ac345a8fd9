/*
 * What a large report costs: time, bytes written, memory. Prints rows of a table in Markdown.
 *
 *     bench_archive file FILE ZIP      streams a file through the archive into a zip
 *     bench_archive report DIR MIB     a report with a full log of MIB MiB, which is removed again
 */
#include <bugpack/bugpack.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/clock.h"
#include "support/check.h"

/* A number of /proc/self/io or /proc/self/status. */
static uint64_t read_number(const char *path, const char *name) {
    char line[256];
    uint64_t number = 0;
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            number = strtoull(line + strlen(name), NULL, 10);
        }
    }
    (void)fclose(file);
    return number;
}

static void print_row(const char *what, uint64_t began_ns, uint64_t zip_bytes,
                      uint64_t wrote_before) {
    double took_ms = (double)(bp_clock_monotonic_ns() - began_ns) / 1e6;
    uint64_t wrote = read_number("/proc/self/io", "wchar:") - wrote_before;
    printf("| %s | %.0f ms | %.2f MB | %.2f MB | %llu MiB |\n", what, took_ms,
           (double)zip_bytes / 1e6, (double)wrote / 1e6,
           (unsigned long long)read_number("/proc/self/status", "VmHWM:") / 1024);
}

static void stream_file(const char *path, const char *zip_path) {
    static char piece[64 * 1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int zip_fd = open(zip_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bp_archive_target target = {.fd = zip_fd, .dir_fd = AT_FDCWD, .name = zip_path};
    bp_archive *archive = NULL;
    uint64_t bytes = 0;
    ssize_t count;
    CHECK(fd >= 0 && zip_fd >= 0);
    uint64_t wrote_before = read_number("/proc/self/io", "wchar:");
    uint64_t began_ns = bp_clock_monotonic_ns();
    CHECK(bp_archive_new(&target, &archive, NULL) == BUGPACK_OK);
    CHECK(bp_archive_begin(archive, "entry", 0, NULL) == BUGPACK_OK);
    while ((count = read(fd, piece, sizeof piece)) > 0) {
        CHECK(bp_archive_write(archive, piece, (size_t)count) == BUGPACK_OK);
    }
    CHECK(bp_archive_end(archive, &bytes, NULL) == BUGPACK_OK);
    CHECK(bp_archive_finish(archive, &bytes, NULL) == BUGPACK_OK);
    bp_archive_free(archive);
    print_row(path, began_ns, bytes, wrote_before);
    (void)close(zip_fd);
    (void)close(fd);
}

static void write_report(const char *dir, size_t log_mib) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    bugpack_session *session = NULL;
    options.app_name = "bench";
    options.report_dir = dir;
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.log_ring_bytes = log_mib << 20;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    for (size_t i = 0; i < (log_mib << 20) / 128; i++) {
        bugpack_log(session, BUGPACK_LEVEL_INFO, "display",
                    "surface %zu: draw copy of %zu bytes at %zu, %zu", i % 7, i * 7919 % 65536,
                    i * 31 % 1920, i * 17 % 1080);
    }
    uint64_t wrote_before = read_number("/proc/self/io", "wchar:");
    uint64_t began_ns = bp_clock_monotonic_ns();
    CHECK(bugpack_report(session, NULL, &result, NULL) == BUGPACK_OK);
    char what[64];
    (void)snprintf(what, sizeof what, "report with a log of %zu MiB", log_mib);
    print_row(what, began_ns, result.zip_bytes, wrote_before);
    (void)unlink(result.path);
    bugpack_close(session);
}

int main(int argument_count, char **arguments) {
    if (argument_count == 4 && strcmp(arguments[1], "file") == 0) {
        stream_file(arguments[2], arguments[3]);
    } else if (argument_count == 4 && strcmp(arguments[1], "report") == 0) {
        write_report(arguments[2], strtoul(arguments[3], NULL, 10));
    } else {
        (void)fprintf(stderr, "usage: bench_archive file FILE ZIP | report DIR MIB\n");
        return 2;
    }
    return 0;
}
