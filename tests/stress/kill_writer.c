/*
 * A writer of reports is killed at random instants: every zip that has a name is whole, and the
 * sweep leaves nothing else. By both methods of a staged file.
 *
 *     stress_kill_writer [ROUNDS]     of each method
 */
#include "support/check.h"
#include "support/temp_dir.h"
#include "support/zip_reader.h"

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/clock.h"
#include "base/temp_file.h"
#include "platform/staged_file.h"
#include "support/no_tmpfile.h"

enum { entry_count = 5, noise_bytes = 60000, large_bytes = 300000 };

static const uint64_t max_delay_ns = 8 * BP_NS_PER_MS;

static unsigned char noise[noise_bytes];
static unsigned char large[large_bytes]; /* shrinks, and is more than one piece */

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static bool add(bp_archive *archive, const char *name, const void *bytes, size_t byte_count) {
    uint64_t entry_bytes;
    return bp_archive_begin(archive, name, 0, NULL) == BUGPACK_OK &&
           bp_archive_write(archive, bytes, byte_count) == BUGPACK_OK &&
           bp_archive_end(archive, &entry_bytes, NULL) == BUGPACK_OK;
}

static bool write_report(const temp_dir *dir) {
    static const char *const names[] = {"one", "two", "three", "manifest.json"};
    bp_staged_file *file = NULL;
    bp_archive *archive = NULL;
    uint64_t bytes;
    char name[64];
    bp_temp_file temp_file = BP_TEMP_FILE_INIT;
    bool is_written = bp_temp_file_open(&temp_file, dir->fd, sizeof large, NULL) == BUGPACK_OK &&
                      bp_temp_file_write(&temp_file, large, sizeof large) == BUGPACK_OK &&
                      bp_temp_file_flush(&temp_file, NULL) == BUGPACK_OK &&
                      bp_staged_file_new(dir->fd, dir->path, &file, NULL) == BUGPACK_OK;
    if (is_written) {
        const bp_archive_target target = {
            .fd = bp_staged_file_fd(file), .dir_fd = dir->fd, .name = "report.zip"};
        is_written = bp_archive_new(&target, &archive, NULL) == BUGPACK_OK &&
                     add(archive, "large", large, sizeof large);
    }
    for (size_t i = 0; is_written && i < entry_count - 1; i++) {
        is_written = add(archive, names[i], noise, sizeof noise - i);
    }
    is_written =
        is_written && bp_archive_finish(archive, &bytes, NULL) == BUGPACK_OK &&
        bp_staged_file_sync(file, NULL) == BUGPACK_OK &&
        bp_staged_file_publish(file, "report", ".zip", name, sizeof name, NULL) == BUGPACK_OK;
    bp_archive_free(archive);
    bp_staged_file_free(file);
    bp_temp_file_release(&temp_file);
    return is_written;
}

/* Writes reports until it is killed; says through `fd` when the first one stands. */
static void run_writer(const temp_dir *dir, int fd) {
    bool is_first = true;
    while (write_report(dir)) {
        if (is_first && write(fd, "!", 1) != 1) {
            break;
        }
        is_first = false;
    }
    _exit(1);
}

static void kill_one_writer(const temp_dir *dir) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)close(ends[0]);
        run_writer(dir, ends[1]);
    }
    (void)close(ends[1]);
    char byte;
    CHECK(read(ends[0], &byte, 1) == 1); /* 0 when the writer gave up */
    bp_clock_sleep_until(bp_clock_monotonic_ns() + next_random() % max_delay_ns);
    CHECK(kill(child, SIGKILL) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    (void)close(ends[0]);
}

/* Checks every zip and removes it; returns how many there were. */
static size_t check_zips(const temp_dir *dir) {
    size_t count = 0;
    DIR *stream = opendir(dir->path);
    CHECK(stream != NULL);
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || strcmp(dot, ".zip") != 0) {
            continue;
        }
        char path[600];
        (void)snprintf(path, sizeof path, "%s/%s", dir->path, entry->d_name);
        CHECK(zip_holds(path, entry_count, "large", large, sizeof large));
        CHECK(zip_holds(path, entry_count, "one", noise, sizeof noise));
        CHECK(zip_holds(path, entry_count, "two", noise, sizeof noise - 1));
        CHECK(zip_holds(path, entry_count, "three", noise, sizeof noise - 2));
        CHECK(zip_holds(path, entry_count, "manifest.json", noise, sizeof noise - 3));
        CHECK(unlink(path) == 0);
        count++;
    }
    (void)closedir(stream);
    return count;
}

/* Makes what is left old enough for the sweep first. */
static size_t sweep(const temp_dir *dir) {
    DIR *stream = opendir(dir->path);
    CHECK(stream != NULL);
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
        if (entry->d_name[0] != '.' || entry->d_name[1] == 'b') {
            CHECK(utimensat(dir->fd, entry->d_name, times, AT_SYMLINK_NOFOLLOW) == 0);
        }
    }
    (void)closedir(stream);
    return bp_staged_file_sweep(dir->fd);
}

static void kill_many(const char *label, unsigned long rounds) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    size_t zips = 0;
    size_t swept = 0;
    for (unsigned long i = 0; i < rounds; i++) {
        kill_one_writer(&dir);
        size_t round_zips = check_zips(&dir);
        CHECK(round_zips >= 1);
        zips += round_zips;
        swept += sweep(&dir);
        CHECK(temp_dir_count(&dir) == 0);
    }
    (void)printf("%s: %lu kills, %zu zips whole, %zu temporary files swept\n", label, rounds, zips,
                 swept);
    /* A writer under a temporary name has one most of the time: none at all is a broken test. */
    CHECK(!has_no_tmpfile || swept > 0);
    temp_dir_remove(&dir);
}

int main(int argument_count, char **arguments) {
    unsigned long rounds = run_length(argument_count, arguments, 60);
    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = (unsigned char)(next_random() >> 32);
    }
    for (size_t i = 0; i < sizeof large; i++) {
        large[i] = "0123456789abcdef"[noise[i % sizeof noise] & 15];
    }
    random_state ^= bp_clock_wall_ns();
    kill_many("unnamed", rounds);
    has_no_tmpfile = true;
    kill_many("named", rounds);
    return 0;
}
