/*
 * A report from outside about a host that is stopped, that a debugger holds, or that answers
 * nobody: what it recorded is there, in order and complete up to the stop, and it goes on
 * afterwards as if nothing had been.
 */
#include <bugpack/bugpack.h>

#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/job.h"
#include "support/check.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

enum { record_count = 2000 };

static temp_dir dir;
static char rings_dir[300];

typedef struct host {
    pid_t pid;
    int socket_fd;
} host;

static void record(bugpack_session *session, bugpack_channel *channel, unsigned number) {
    char text[16];
    (void)snprintf(text, sizeof text, "message %04u", number);
    bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "line %04u TKT-12 password=hunter22", number);
    bugpack_traffic(channel, BUGPACK_SENT, 1, "word", text, strlen(text));
}

static bugpack_options host_options(const char *app_name, bool is_in_memory) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = app_name;
    options.report_dir = dir.path;
    options.recorder.dir = rings_dir;
    options.recorder.is_in_memory = is_in_memory;
    return options;
}

static bugpack_session *open_host(const bugpack_options *options) {
    bugpack_session *session = NULL;
    CHECK(bugpack_open(options, &session, NULL) == BUGPACK_OK);
    return session;
}

/* The host records, waits for a byte, records once more, and closes its session. */
static _Noreturn void run_host(int socket_fd, bool is_in_memory) {
    bugpack_channel *channel = NULL;
    bugpack_options options = host_options("viewer app", is_in_memory);
    char word = 'r';
    options.app_version = "4.2";
    options.sample_window_ms = BUGPACK_OFF;
    bugpack_session *session = open_host(&options);
    CHECK(bugpack_redact_add(session, "[ticket]\npattern = TKT-[0-9]+", NULL) == BUGPACK_OK);
    CHECK(bugpack_channel_open(session, "net", NULL, &channel, NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < record_count; i++) {
        record(session, channel, i);
    }
    bugpack_notify(session, BUGPACK_LEVEL_WARN, "net", NULL, "the server is silent");
    CHECK(write(socket_fd, &word, 1) == 1);
    CHECK(read(socket_fd, &word, 1) == 1);
    record(session, channel, record_count);
    CHECK(bugpack_report(session, NULL, NULL, NULL) == BUGPACK_OK);
    bugpack_close(session);
    _exit(0);
}

static host start_host(bool is_in_memory) {
    int ends[2];
    char word;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    host it = {.pid = fork(), .socket_fd = ends[0]};
    CHECK(it.pid >= 0);
    if (it.pid == 0) {
        (void)close(ends[0]);
        run_host(ends[1], is_in_memory);
    }
    (void)close(ends[1]);
    CHECK(read(it.socket_fd, &word, 1) == 1);
    return it;
}

static void take_report(pid_t pid, const char *without, char path[400]) {
    bugpack_session *session = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    (void)snprintf(path, 400, "%s/outside-%d.zip", dir.path, (int)pid);
    options.target_pid = pid;
    options.report_dir = dir.path;
    options.recorder.log_ring_bytes = BUGPACK_OFF;
    options.recorder.traffic_budget_bytes = BUGPACK_OFF;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.is_in_memory = true;
    options.without_entries = without;
    request.output_path = path;
    CHECK(bugpack_open(&options, &session, &error) == BUGPACK_OK);
    CHECK(bugpack_report(session, &request, NULL, NULL) == BUGPACK_OK);
    bugpack_close(session);
}

/* Each line once and in order. */
static void check_log(const char *path) {
    size_t bytes = 0;
    char *text = report_read(path, "logs.jsonl", &bytes);
    const char *at = text;
    CHECK(text != NULL);
    for (unsigned i = 0; i < record_count; i++) {
        char line[32];
        (void)snprintf(line, sizeof line, "line %04u ", i);
        at = strstr(at, line);
        CHECK(at != NULL);
    }
    CHECK(strstr(at, "line 2000") == NULL);
    CHECK(strstr(text, "hunter22") == NULL && strstr(text, "TKT-12") == NULL);
    free(text);
}

static void expect_report(pid_t pid) {
    char path[400];
    take_report(pid, "logs.jsonl traffic.pcap", path);
    CHECK(report_read(path, "logs.jsonl", NULL) == NULL);
    CHECK(report_read(path, "traffic-index.jsonl", NULL) == NULL);
    CHECK(report_entry_contains(path, "manifest.json", "left out on request"));
    CHECK(unlink(path) == 0);
    take_report(pid, "stacks.json stacks.txt", path);
    check_log(path);
    CHECK(report_entry_contains(path, "metadata.json", "\"name\": \"viewer app\""));
    CHECK(report_entry_contains(path, "metadata.json", "\"version\": \"4.2\""));
    CHECK(report_entry_contains(path, "metadata.json", "\"session_id\""));
    CHECK(report_entry_contains(path, "notifications.json", "the server is silent"));
    CHECK(report_entry_contains(path, "traffic-index.jsonl", "\"net\""));
    CHECK(unlink(path) == 0);
}

/* The path of a file of the only session. */
static void find_file(const char *name, char path[400]) {
    glob_t found;
    (void)snprintf(path, 400, "%s/*/%s", rings_dir, name);
    CHECK(glob(path, 0, NULL, &found) == 0 && found.gl_pathc == 1);
    (void)snprintf(path, 400, "%s", found.gl_pathv[0]);
    globfree(&found);
}

/* Kills a host, and removes its session. */
static void end_host(pid_t pid) {
    char command[400];
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    (void)snprintf(command, sizeof command, "rm -rf %s/*", rings_dir);
    CHECK(system(command) == 0);
}

/* Whether the manifest gives an entry this status. */
static bool has_status(const char *manifest, const char *name, const char *status) {
    char key[64], value[32];
    (void)snprintf(key, sizeof key, "\"name\": \"%s\"", name);
    (void)snprintf(value, sizeof value, "\"status\": \"%s\"", status);
    const char *at = strstr(manifest, key);
    const char *found = at == NULL ? NULL : strstr(at, "\"status\": ");
    return found != NULL && strncmp(found, value, strlen(value)) == 0;
}

typedef enum held { RUNNING, STOPPED, TRACED } held;

static void check_host(held how) {
    host it = start_host(false);
    int ended;
    if (how == STOPPED) {
        CHECK(kill(it.pid, SIGSTOP) == 0);
    }
    if (how == TRACED) {
        CHECK(ptrace(PTRACE_ATTACH, it.pid, NULL, NULL) == 0);
    }
    if (how != RUNNING) {
        CHECK(waitpid(it.pid, &ended, WUNTRACED) == it.pid && WIFSTOPPED(ended));
    }
    expect_report(it.pid);
    CHECK(how != STOPPED || kill(it.pid, SIGCONT) == 0);
    CHECK(how != TRACED || ptrace(PTRACE_DETACH, it.pid, NULL, NULL) == 0);
    CHECK(write(it.socket_fd, "g", 1) == 1);
    CHECK(waitpid(it.pid, &ended, 0) == it.pid && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    (void)close(it.socket_fd);
}

/* Nobody else can read what is in the memory of a host, and the report says so. */
static void check_memory(void) {
    char path[400];
    host it = start_host(true);
    take_report(it.pid, NULL, path);
    char *manifest = report_read(path, "manifest.json", NULL);
    CHECK(manifest != NULL && has_status(manifest, "logs.jsonl", "omitted"));
    CHECK(strstr(manifest, "the rings of the process are in memory") != NULL);
    free(manifest);
    CHECK(unlink(path) == 0);
    end_host(it.pid);
    (void)close(it.socket_fd);
}

/* A child of a host has no session. */
static void check_fork(void) {
    char path[400];
    int to_host[2], from_child[2];
    pid_t child = 0;
    CHECK(pipe(to_host) == 0 && pipe(from_child) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        bugpack_options options = host_options("viewer app", false);
        bugpack_log(open_host(&options), BUGPACK_LEVEL_INFO, "net", "of the parent");
        child = fork();
        if (child != 0) {
            CHECK(write(from_child[1], &child, sizeof child) == (ssize_t)sizeof child);
        }
        (void)close(to_host[1]);
        (void)read(to_host[0], path, 1);
        _exit(0);
    }
    CHECK(read(from_child[0], &child, sizeof child) == (ssize_t)sizeof child);
    take_report(child, NULL, path);
    CHECK(report_read(path, "logs.jsonl", NULL) == NULL);
    CHECK(!report_entry_contains(path, "metadata.json", "viewer app"));
    (void)close(to_host[1]);
    end_host(pid);
}

/* Copies as a report does. */
static bp_hosted *take_copies(pid_t pid, const bp_cancel_token *token, bp_snapshot *snapshot) {
    bp_hosted *hosted = NULL;
    int dir_fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    memset(snapshot, 0, sizeof *snapshot);
    CHECK(bp_hosted_take(pid, NULL, dir_fd, token, snapshot, &hosted, NULL) == BUGPACK_OK);
    (void)close(dir_fd);
    return hosted;
}

/* Where the copy of a ring fails, the rules of the host are still those of the report. */
static void check_cut(void) {
    static bp_snapshot snapshot;
    const bp_cancel_token token = {.is_cancelled = true};
    host it = start_host(false);
    bp_hosted *hosted = take_copies(it.pid, &token, &snapshot);
    CHECK(hosted != NULL && hosted->redaction != NULL);
    CHECK(snapshot.parts[BP_RING_KIND_LOG].is_on);
    CHECK(snapshot.parts[BP_RING_KIND_LOG].error.status == BUGPACK_ERR_CANCELLED);
    bp_hosted_free(hosted);
    bp_snapshot_release(&snapshot);
    end_host(it.pid);
    (void)close(it.socket_fd);
}

/* A host that writes at full speed into a small ring: whatever is copied is whole. */
static void check_busy(void) {
    static bp_snapshot snapshot;
    pid_t pid = fork();
    if (pid == 0) {
        bugpack_options options = host_options("busy", false);
        options.recorder.log_ring_bytes = (size_t)1 << 20;
        bugpack_session *session = open_host(&options);
        for (unsigned i = 0;; i++) {
            bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "line %u of a busy host", i);
        }
    }
    for (unsigned copied = 0; copied < 20;) {
        bp_hosted *hosted = take_copies(pid, NULL, &snapshot);
        const bp_ring_view *view = &snapshot.parts[BP_RING_KIND_LOG].view;
        if (hosted != NULL && view->record_count > 0) {
            CHECK(snapshot.parts[BP_RING_KIND_LOG].error.status == BUGPACK_OK && !view->is_damaged);
            CHECK(view->last_sequence - view->first_sequence + 1 == view->record_count);
            copied++;
        }
        bp_hosted_free(hosted);
        bp_snapshot_release(&snapshot);
    }
    end_host(pid);
}

static void spoil_file(const char *name) {
    char path[400];
    find_file(name, path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(pwrite(fd, "spoiled", 8, 0) == 8);
    (void)close(fd);
}

/* A ring that cannot be copied costs itself, and the report says that it is not there; at last all
 * of them. */
static void check_unread(void) {
    static const struct {
        const char *ring, *entry, *status;
    } rows[] = {{"log.ring", "logs.jsonl", "failed"},
                {"notifications.ring", "notifications.json", "failed"},
                /* Without its pins nothing is lost as long as the ring has all messages. */
                {"traffic-0.ring", "traffic.pcap", "truncated"}};
    enum { row_count = sizeof rows / sizeof rows[0] };
    for (size_t spoiled = 0; spoiled <= row_count; spoiled++) {
        int ends[2];
        char word, path[400];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            bugpack_channel *channel = NULL;
            bugpack_options options = host_options("spoiled", false);
            bugpack_session *session = open_host(&options);
            CHECK(bugpack_channel_open(session, "net", NULL, &channel, NULL) == BUGPACK_OK);
            bugpack_notify(session, BUGPACK_LEVEL_WARN, "net", NULL, "the server is silent");
            record(session, channel, 0);
            CHECK(write(ends[1], "r", 1) == 1);
            (void)pause();
            _exit(0);
        }
        CHECK(read(ends[0], &word, 1) == 1);
        for (size_t i = 0; i < row_count; i++) {
            if (spoiled == row_count || i == spoiled) {
                spoil_file(rows[i].ring);
            }
        }
        take_report(pid, NULL, path);
        char *manifest = report_read(path, "manifest.json", NULL);
        CHECK(manifest != NULL && strstr(manifest, "\"complete\": false") != NULL);
        for (size_t i = 0; i < row_count; i++) {
            if (spoiled == row_count) {
                CHECK(!has_status(manifest, rows[i].entry, "ok"));
            } else {
                CHECK(has_status(manifest, rows[i].entry, i == spoiled ? rows[i].status : "ok"));
            }
        }
        free(manifest);
        CHECK(unlink(path) == 0);
        end_host(pid);
        (void)close(ends[0]);
        (void)close(ends[1]);
    }
}

/* Begins a time namespace for the children of this process, 50,000 s ahead. */
static bool shift_clock(void) {
    static const char offset[] = "monotonic 50000 0\n";
    if (unshare(CLONE_NEWTIME) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) {
        return false;
    }
    int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    bool is_set = write(fd, offset, sizeof offset - 1) == (ssize_t)sizeof offset - 1;
    (void)close(fd);
    return is_set;
}

/* What was recorded by another monotonic clock has the right time. */
static void check_other_clock(void) {
    static bp_snapshot snapshot;
    int ends[2];
    pid_t pid = 0;
    CHECK(pipe(ends) == 0);
    pid_t parent = fork();
    if (parent == 0) {
        pid = shift_clock() ? fork() : -1;
        if (pid == 0) {
            bugpack_options options = host_options("ahead", false);
            bugpack_log(open_host(&options), BUGPACK_LEVEL_INFO, "net", "a line");
            pid = getpid();
            CHECK(write(ends[1], &pid, sizeof pid) == (ssize_t)sizeof pid);
            (void)pause();
        } else if (pid < 0) {
            CHECK(write(ends[1], &pid, sizeof pid) == (ssize_t)sizeof pid);
        }
        (void)waitpid(pid, NULL, 0);
        _exit(0);
    }
    (void)close(ends[1]);
    CHECK(read(ends[0], &pid, sizeof pid) == (ssize_t)sizeof pid);
    if (pid > 0) {
        bp_hosted_free(take_copies(pid, NULL, &snapshot));
        uint64_t now_ns = bp_clock_wall_ns();
        uint64_t logged_ns =
            snapshot.parts[BP_RING_KIND_LOG].view.last_ns + snapshot.wall_offset_ns;
        CHECK(snapshot.parts[BP_RING_KIND_LOG].view.record_count > 0);
        CHECK(logged_ns < now_ns + BP_NS_PER_SEC && now_ns - logged_ns < 3600 * BP_NS_PER_SEC);
        bp_snapshot_release(&snapshot);
        CHECK(kill(pid, SIGKILL) == 0);
    } else {
        (void)fprintf(stderr, "no time namespace can be made here\n");
    }
    CHECK(waitpid(parent, NULL, 0) == parent);
    (void)close(ends[0]);
}

int main(void) {
    CHECK(temp_dir_make(&dir));
    (void)snprintf(rings_dir, sizeof rings_dir, "%s/rings", dir.path);
    CHECK(mkdir(rings_dir, 0700) == 0);
    check_host(RUNNING);
    check_host(STOPPED);
    check_host(TRACED);
    check_memory();
    check_fork();
    check_cut();
    check_busy();
    check_unread();
    check_other_clock();
    temp_dir_remove(&dir);
    return 0;
}
