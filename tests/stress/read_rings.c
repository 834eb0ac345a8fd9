/*
 * Another program reads the ring files of a host, which is killed then: every record is recovered.
 * Where a ring has no new file yet, or cannot get one, the living session says so, and the report
 * of the dead one says since when records may be missing.
 */
#include <bugpack/bugpack.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

static temp_dir dir;
static char homes_dir[300];
static const char *const ring_entries[] = {"logs.jsonl", "notifications.json", "traffic.pcap"};
enum { entry_count = sizeof ring_entries / sizeof ring_entries[0] };

typedef struct host {
    pid_t pid;
    int socket_fd;
} host;

static int outlive_fds[2] = {-1, -1};
static int diagnostic_fds[2]; /* each line that on_diagnostic of a host gets */

static void pass_on(bugpack_level level, const char *text, void *context) {
    (void)context;
    CHECK(level < BUGPACK_LEVEL_WARN || dprintf(diagnostic_fds[1], "%s\n", text) > 0);
}

/* In the host: does what it is told. 'f' forks a child that outlives it; 'r' takes a report; any
 * other letter is recorded. */
static _Noreturn void obey(int socket_fd) {
    bugpack *session = NULL;
    bugpack_channel *channel = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "read";
    options.report_dir = dir.path;
    options.recorder_dir = homes_dir;
    options.sample_window_ms = BUGPACK_OFF;
    options.history_interval_ms = BUGPACK_OFF;
    options.on_diagnostic = pass_on;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_channel_open(session, "net", NULL, &channel, NULL) == BUGPACK_OK);
    char word;
    while (read(socket_fd, &word, 1) == 1) {
        if (word == 'f' && fork() == 0) {
            (void)read(outlive_fds[0], &word, 1); /* until the test closes the other end */
            _exit(0);
        }
        if (word == 'r') {
            char path[400];
            bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
            (void)snprintf(path, sizeof path, "%s/living.zip", dir.path);
            request.output_path = path;
            CHECK(bugpack_report(session, &request, NULL) == BUGPACK_OK);
        } else {
            bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "word %c", word);
            bugpack_notify(session, BUGPACK_LEVEL_INFO, "net", "word %c", word);
            char text[] = {'w', 'o', 'r', 'd', ' ', word};
            bugpack_traffic(channel, BUGPACK_SENT, 1, "word", text, sizeof text);
        }
        CHECK(write(socket_fd, &word, 1) == 1);
    }
    _exit(0);
}

static void tell(const host *to, char word) {
    char answer = 0;
    CHECK(write(to->socket_fd, &word, 1) == 1);
    CHECK(read(to->socket_fd, &answer, 1) == 1 && answer == word);
}

static host start_host(void) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    host it = {.pid = fork(), .socket_fd = ends[0]};
    CHECK(it.pid >= 0);
    if (it.pid == 0) {
        (void)close(ends[0]);
        (void)close(outlive_fds[1]);
        outlive_fds[1] = -1;
        obey(ends[1]);
    }
    (void)close(ends[1]);
    tell(&it, 'a');
    return it;
}

/* Opens the only session's directory. */
static int open_session_dir(void) {
    DIR *listing = opendir(homes_dir);
    CHECK(listing != NULL);
    struct dirent *entry;
    int fd = -1;
    while ((entry = readdir(listing)) != NULL) {
        if (entry->d_name[0] != '.') {
            CHECK(fd < 0);
            fd = openat(dirfd(listing), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
    }
    CHECK(fd >= 0 && closedir(listing) == 0);
    return fd;
}

/* Calls `visit` for each ring file of the session, by name. */
static void visit_rings(void (*visit)(int dir_fd, const char *name)) {
    static const char *const names[] = {"log.ring", "notifications.ring", "traffic-0.ring",
                                        "pins-0.ring"};
    int dir_fd = open_session_dir();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        visit(dir_fd, names[i]);
    }
    (void)close(dir_fd);
}

static void read_ring(int dir_fd, const char *name) {
    char bytes[4096];
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, bytes, sizeof bytes) == sizeof bytes);
    (void)close(fd);
}

static void block_new_file(int dir_fd, const char *name) {
    char new_name[64];
    (void)snprintf(new_name, sizeof new_name, "%s.new", name);
    CHECK(mkdirat(dir_fd, new_name, 0700) == 0);
}

static void unblock_new_file(int dir_fd, const char *name) {
    char new_name[64];
    (void)snprintf(new_name, sizeof new_name, "%s.new", name);
    CHECK(unlinkat(dir_fd, new_name, AT_REMOVEDIR) == 0);
}

/* Whether a report that the host takes now says `needle` about its rings. */
static bool living_says(const host *of, const char *needle) {
    char path[400];
    (void)snprintf(path, sizeof path, "%s/living.zip", dir.path);
    tell(of, 'r');
    bool is_said = report_entry_contains(path, "manifest.json", needle);
    CHECK(unlink(path) == 0);
    return is_said;
}

static void count_report(const bugpack_report_result *result, void *context) {
    CHECK(result->status == BUGPACK_OK);
    (void)snprintf(context, 400, "%.399s", result->path);
}

/* Kills the host, and recovers its session: all of `words` are there. */
static void expect_recovered(host *dead, const char *words, bool is_complete) {
    char path[400] = "";
    CHECK(kill(dead->pid, SIGKILL) == 0 && waitpid(dead->pid, NULL, 0) == dead->pid);
    (void)close(dead->socket_fd);
    CHECK(bugpack_recover(&(bugpack_recover_options){.struct_size = sizeof(bugpack_recover_options),
                                                     .recorder_dir = homes_dir,
                                                     .app_name = "read",
                                                     .on_report = count_report,
                                                     .context = path},
                          NULL) == BUGPACK_OK);
    CHECK(path[0] != '\0');
    for (size_t i = 0; i < entry_count; i++) {
        for (const char *word = words; *word != '\0'; word++) {
            char text[] = {'w', 'o', 'r', 'd', ' ', *word};
            size_t byte_count = 0;
            char *entry = report_read(path, ring_entries[i], &byte_count);
            CHECK(entry != NULL && memmem(entry, byte_count, text, sizeof text) != NULL);
            free(entry);
        }
    }
    CHECK(report_entry_contains(path, "manifest.json", "\"complete\": true") == is_complete);
    CHECK(report_entry_contains(path, "manifest.json",
                                "may be missing: another program opened the file") != is_complete);
    CHECK(unlink(path) == 0);
}

static void loses_nothing_when_its_files_are_read(void) {
    host it = start_host();
    tell(&it, 'b');
    visit_rings(read_ring);
    tell(&it, 'c');
    expect_recovered(&it, "abc", true);
}

/* More often than it gets new files. */
static void read_until_in_memory(const host *it) {
    do {
        visit_rings(read_ring);
        visit_rings(read_ring);
    } while (!living_says(it, "a crash would have lost it: another program opened its file"));
}

static void says_since_when_records_are_missing(void) {
    host it = start_host();
    read_until_in_memory(&it);
    tell(&it, 'x');
    expect_recovered(&it, "a", false);
}

static void goes_back_into_a_file(void) {
    host it = start_host();
    read_until_in_memory(&it);
    tell(&it, 'b');
    while (living_says(&it, "a crash would have lost it")) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    tell(&it, 'c');
    expect_recovered(&it, "abc", true);
}

/* The host is told without being asked. */
static void wait_for_diagnostic(const char *needle) {
    char lines[4096];
    size_t used = 0;
    do {
        ssize_t count = read(diagnostic_fds[0], lines + used, sizeof lines - 1 - used);
        CHECK(count > 0);
        used += (size_t)count;
        lines[used] = '\0';
    } while (strstr(lines, needle) == NULL);
}

static void says_why_it_has_no_new_file(void) {
    host it = start_host();
    visit_rings(block_new_file);
    visit_rings(read_ring);
    CHECK(living_says(&it, "another program opened its file, and it has no new one: cannot make"));
    wait_for_diagnostic("opened its file, and it has no new one: cannot make");
    tell(&it, 'x');
    visit_rings(unblock_new_file);
    expect_recovered(&it, "a", false);
}

/* The child has neither the session's lock nor the leases of its files. */
static void is_dead_although_its_child_lives(void) {
    CHECK(pipe2(outlive_fds, O_CLOEXEC) == 0);
    host it = start_host();
    (void)close(outlive_fds[0]);
    tell(&it, 'f');
    tell(&it, 'b');
    expect_recovered(&it, "ab", true);
    (void)close(outlive_fds[1]);
}

int main(void) {
    CHECK(temp_dir_make(&dir));
    CHECK(pipe2(diagnostic_fds, O_CLOEXEC) == 0);
    (void)snprintf(homes_dir, sizeof homes_dir, "%s/homes", dir.path);
    host it = start_host();
    if (living_says(&it, "a crash would")) {
        expect_recovered(&it, "", true);
        temp_dir_remove(&dir);
        SKIP("no lease can be had here");
    }
    expect_recovered(&it, "a", true);
    loses_nothing_when_its_files_are_read();
    says_since_when_records_are_missing();
    goes_back_into_a_file();
    says_why_it_has_no_new_file();
    is_dead_although_its_child_lives();
    temp_dir_remove(&dir);
    return 0;
}
