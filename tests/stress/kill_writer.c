/*
 * A writer of reports is killed at random instants, some hundreds of times: every zip that has a
 * name is whole, and the sweep leaves nothing else. By both methods of a staged file.
 */
#include "support/check.h"
#include "support/temp_dir.h"
#include "support/zip_reader.h"

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/clock.h"
#include "base/temp_file.h"
#include "platform/staged_method.h"

enum { max_rounds = 250, entry_count = 5, noise_bytes = 60000, large_bytes = 300000 };

static const uint64_t max_ns = 9 * BP_NS_PER_SEC; /* for one method */
static const uint64_t max_delay_ns = 8 * BP_NS_PER_MS;

static unsigned char noise[noise_bytes];
static unsigned char large[large_bytes]; /* shrinks, and more than is deflated in memory */

/* Without a name, or under one for as long as the system needs it. */
typedef bugpack_status open_temp_file(bp_temp_file *, int, uint64_t, bugpack_error *);
typedef bugpack_status new_staged_file(int, const char *, bp_staged_file **, bugpack_error *);

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static bool write_report(const temp_dir *dir, new_staged_file *start) {
    bp_staged_file *file = NULL;
    bp_archive *archive = NULL;
    uint64_t bytes;
    char name[64];
    bp_temp_file temp_file = BP_TEMP_FILE_INIT;
    open_temp_file *open =
        start == bp_staged_file_new ? bp_temp_file_open : bp_temp_file_open_named;
    bool is_written = open(&temp_file, dir->fd, sizeof large, NULL) == BUGPACK_OK &&
                      bp_temp_file_write(&temp_file, large, sizeof large) == BUGPACK_OK &&
                      bp_temp_file_flush(&temp_file, NULL) == BUGPACK_OK &&
                      start(dir->fd, dir->path, &file, NULL) == BUGPACK_OK &&
                      bp_archive_new(bp_staged_file_fd(file), "report.zip", NULL, NULL, &archive,
                                     NULL) == BUGPACK_OK;
    if (is_written) {
        bp_archive_use_temp_dir(archive, dir->fd);
        is_written = bp_archive_add_file(archive, "large", temp_file.fd, sizeof large, 0, NULL) ==
                     BUGPACK_OK;
    }
    static const char *const names[] = {"one", "two", "three", "manifest.json"};
    for (size_t i = 0; is_written && i < entry_count - 1; i++) {
        is_written =
            bp_archive_add(archive, names[i], noise, sizeof noise - i, 0, NULL) == BUGPACK_OK;
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
static void run_writer(const temp_dir *dir, new_staged_file *start, int fd) {
    bool is_first = true;
    while (write_report(dir, start)) {
        if (is_first && write(fd, "!", 1) != 1) {
            break;
        }
        is_first = false;
    }
    _exit(1);
}

static void kill_one_writer(const temp_dir *dir, new_staged_file *start) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)close(ends[0]);
        run_writer(dir, start, ends[1]);
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

static void kill_many(const char *label, new_staged_file *start) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    uint64_t end_ns = bp_clock_monotonic_ns() + max_ns;
    unsigned rounds = 0;
    size_t zips = 0;
    size_t swept = 0;
    while (rounds < max_rounds && bp_clock_monotonic_ns() < end_ns) {
        kill_one_writer(&dir, start);
        size_t round_zips = check_zips(&dir);
        CHECK(round_zips >= 1);
        zips += round_zips;
        swept += bp_staged_file_sweep_older(dir.fd, 0);
        CHECK(temp_dir_count(&dir) == 0);
        rounds++;
    }
    (void)printf("%s: %u kills, %zu zips whole, %zu temporary files swept\n", label, rounds, zips,
                 swept);
    /* A writer under a temporary name has one most of the time: none at all is a broken test. */
    CHECK(start == bp_staged_file_new || swept > 0);
    temp_dir_remove(&dir);
}

int main(void) {
    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = (unsigned char)(next_random() >> 32);
    }
    for (size_t i = 0; i < sizeof large; i++) {
        large[i] = "0123456789abcdef"[noise[i % sizeof noise] & 15];
    }
    random_state ^= bp_clock_wall_ns();
    kill_many("unnamed", bp_staged_file_new);
    kill_many("named", bp_staged_file_new_named);
    return 0;
}
