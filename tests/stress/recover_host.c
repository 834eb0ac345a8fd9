/*
 * A host that is killed leaves its rings behind, and they become one crash report: with every
 * record whose log call had returned, in order, whoever reads its files meanwhile, although a child
 * of it lives, and however many recover it at once. A living session is left alone.
 *
 *     stress_recover_host [KILLS]
 */
#include <bugpack/bugpack.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "session/command.h"
#include "support/check.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

enum { recoverer_count = 3 };

static char homes_dir[256], reports_dir[256], scratch_dir[256];
static int outlive_fds[2]; /* a child of each host lives until the test closes the other end */

static bugpack_options host_options(void) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "dying";
    options.app_version = "7";
    options.report_dir = reports_dir;
    options.create_report_dir = true;
    options.recorder.dir = homes_dir;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    return options;
}

/* Logs numbered records for ever, and says after each that the call has returned. */
static void run_host(atomic_uint *returned_count) {
    bugpack_session *session = NULL;
    bugpack_channel *channel = NULL;
    bugpack_options options = host_options();
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_channel_open(session, "net", NULL, &channel, NULL) == BUGPACK_OK);
    bugpack_notify(session, BUGPACK_LEVEL_WARN, "host", NULL, "about to die");
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char word;
        (void)close(outlive_fds[1]);
        (void)!read(outlive_fds[0], &word, 1);
        _exit(0);
    }
    for (unsigned i = 1;; i++) {
        bugpack_log(session, BUGPACK_LEVEL_INFO, "count", "record %u.", i);
        bugpack_traffic(channel, BUGPACK_SENT, 1, "count", &i, sizeof i);
        atomic_store(returned_count, i);
    }
}

static void count_report(const bugpack_report_result *result, void *context) {
    unsigned *count = context;
    CHECK(result->status == BUGPACK_OK);
    (*count)++;
}

static int64_t running_pid;
static unsigned running_count;

static void note_running(const bp_running_session *session, void *context) {
    (void)context;
    CHECK(strstr(session->name, "dying-") != NULL);
    CHECK(strcmp(session->app_name, "dying") == 0);
    running_pid = session->pid;
    running_count++;
}

/* No report is made of a host that lives, and whose it is is told: also by name, but by no other.
 */
static void check_running(pid_t host) {
    static const char *const names[] = {NULL, "dying", "another"};
    unsigned report_count = 0;
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    options.recorder_dir = homes_dir;
    options.on_report = count_report;
    const bp_recover_calls calls = {.on_running = note_running};
    options.context = &report_count;
    for (unsigned i = 0; i < 3; i++) {
        running_count = 0;
        options.app_name = names[i];
        CHECK(bp_session_recover(&options, &calls, NULL) == BUGPACK_OK);
        CHECK(report_count == 0);
        CHECK(running_count == (i < 2 ? 1u : 0u));
        CHECK(running_count == 0 || running_pid == host);
    }
    CHECK(bugpack_recover(&options, NULL) == BUGPACK_OK);
    options.struct_size = 1;
    CHECK(bugpack_recover(&options, NULL) == BUGPACK_ERR_INVALID);
    CHECK(bugpack_recover(NULL, NULL) == BUGPACK_ERR_INVALID);
    CHECK(bugpack_recover(&(bugpack_recover_options){.struct_size = sizeof(bugpack_recover_options),
                                                     .recorder_dir = homes_dir,
                                                     .on_report = count_report,
                                                     .context = &report_count},
                          NULL) == BUGPACK_OK);
    CHECK(report_count == 0);
}

/* Maps each ring of the session, and reads all of it. */
static void read_mapped(void) {
    char command[400], path[600];
    (void)snprintf(command, sizeof command, "ls %s/*/*.ring", homes_dir);
    FILE *names = popen(command, "r");
    CHECK(names != NULL);
    while (fgets(path, sizeof path, names) != NULL) {
        struct stat info;
        path[strcspn(path, "\n")] = '\0';
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0 && fstat(fd, &info) == 0);
        unsigned char *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
        CHECK(bytes != MAP_FAILED);
        volatile unsigned char sum = 0;
        for (off_t i = 0; i < info.st_size; i++) {
            sum = (unsigned char)(sum + bytes[i]);
        }
        CHECK(munmap(bytes, (size_t)info.st_size) == 0 && close(fd) == 0);
    }
    (void)pclose(names);
}

/* Somebody else reads the files again and again, until it is killed. Returns when that was done
 * once. The scripts get the directory of the sessions, their own, and the host's id. */
static pid_t start_reader(unsigned round, pid_t host) {
    static const char *const scripts[] = {
        "grep -r word $0 >$1/out", "cat $0/*/* >$1/out", "rm -rf $1/copy; cp -r $0 $1/copy",
#ifdef BUGPACK_COMMAND
        BUGPACK_COMMAND " capture --pid $2 --window 1ms --without stacks.json -o $1 >$1/out 2>&1",
#endif
        NULL};
    const char *script = scripts[round % (sizeof scripts / sizeof scripts[0])];
    char command[800], id[24], path[320];
    CHECK(mkdir(scratch_dir, 0700) == 0);
    (void)snprintf(path, sizeof path, "%s/done", scratch_dir);
    (void)snprintf(id, sizeof id, "%d", (int)host);
    pid_t reader = fork();
    CHECK(reader >= 0);
    if (reader == 0) {
        (void)setpgid(0, 0);
        while (script == NULL) {
            read_mapped();
            (void)close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        }
        (void)snprintf(command, sizeof command, "while :; do %s; : >$1/done; done", script);
        (void)execl("/bin/sh", "sh", "-c", command, homes_dir, scratch_dir, id, (char *)NULL);
        _exit(127);
    }
    while (access(path, F_OK) != 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return reader;
}

static void end_reader(pid_t reader) {
    char command[320];
    CHECK(kill(-reader, SIGKILL) == 0 && waitpid(reader, NULL, 0) == reader);
    (void)snprintf(command, sizeof command, "rm -rf %s", scratch_dir);
    CHECK(system(command) == 0);
}

static void kill_host(atomic_uint *returned_count, unsigned round) {
    atomic_store(returned_count, 0);
    pid_t host = fork();
    CHECK(host >= 0);
    if (host == 0) {
        run_host(returned_count);
    }
    while (atomic_load(returned_count) == 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    check_running(host);
    pid_t reader = start_reader(round, host);
    (void)nanosleep(&(struct timespec){.tv_nsec = (long)(round * 137 % 20) * 1000000}, NULL);
    CHECK(kill(host, SIGKILL) == 0);
    CHECK(waitpid(host, NULL, 0) == host);
    end_reader(reader);
}

/* Who recovers the session holds its lock, and is not the session. */
static void refuse_running(const bp_running_session *session, void *context) {
    (void)context;
    (void)fprintf(stderr, "%s is told to run as process %lld\n", session->name,
                  (long long)session->pid);
    _exit(101);
}

static void expect_no_room(const bugpack_report_result *result, void *context) {
    unsigned *count = context;
    CHECK(result->status == BUGPACK_ERR_IO);
    CHECK(strstr(result->error.message, "it is kept in") != NULL);
    (*count)++;
}

/* Room is looked for first: without it nothing is written, and nothing is lost. */
static void check_without_room(void) {
    unsigned count = 0;
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    options.recorder_dir = homes_dir;
    options.on_report = expect_no_room;
    options.context = &count;
    options.min_free_bytes = UINT64_MAX / 2;
    CHECK(bugpack_recover(&options, NULL) == BUGPACK_OK);
    CHECK(count == 1);
}

/* Several processes recover at once; together they write one report. */
static void recover_together(void) {
    unsigned written_count = 0;
    pid_t recoverers[recoverer_count];
    for (unsigned i = 0; i < recoverer_count; i++) {
        recoverers[i] = fork();
        CHECK(recoverers[i] >= 0);
        if (recoverers[i] == 0) {
            unsigned count = 0;
            bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
            options.recorder_dir = homes_dir;
            options.app_name = "dying";
            options.on_report = count_report;
            options.context = &count;
            const bp_recover_calls calls = {.on_running = refuse_running};
            bugpack_status status = bp_session_recover(&options, &calls, NULL);
            _exit(status == BUGPACK_OK ? (int)count : 100);
        }
    }
    for (unsigned i = 0; i < recoverer_count; i++) {
        int status = 0;
        CHECK(waitpid(recoverers[i], &status, 0) == recoverers[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 100);
        written_count += (unsigned)WEXITSTATUS(status);
    }
    CHECK(written_count == 1);
}

/* The time after a key of a document, as it is written there. */
static void copy_time(const char *text, const char *key, char time[28]) {
    const char *at = strstr(text, key);
    CHECK(at != NULL);
    (void)snprintf(time, 28, "%s", at + strlen(key));
    CHECK(time[19] == '.' && time[26] == 'Z');
}

/* The session is known to have run when it logged. */
static void check_trigger(const char *path, const char *last_line) {
    char triggered[28], logged[28];
    char *metadata = report_read(path, "metadata.json", NULL);
    CHECK(metadata != NULL);
    copy_time(metadata, "\"triggered_at\": \"", triggered);
    copy_time(last_line, "\"time\":\"", logged);
    CHECK(strncmp(triggered, logged, 26) >= 0);
    CHECK(strncmp(strrchr(path, '/') + strlen("/dying-crash-"), triggered,
                  strlen("2026-11-23T10")) == 0);
    free(metadata);
}

/* Every record up to the last whose call had returned, and in order. */
static unsigned check_report(unsigned returned_count) {
    temp_dir reports = {.fd = -1};
    char path[600];
    (void)snprintf(reports.path, sizeof reports.path, "%s", reports_dir);
    CHECK(report_find_only(&reports, path, sizeof path));
    CHECK(strstr(path, "/dying-crash-") != NULL);
    CHECK(report_entry_contains(path, "metadata.json", "\"session_end\": \"died\""));
    CHECK(report_entry_contains(path, "metadata.json", "\"version\": \"7\""));
    CHECK(report_entry_contains(path, "notifications.json", "about to die"));
    CHECK(report_entry_contains(path, "manifest.json", "\"complete\": true"));
    size_t log_bytes = 0;
    char *log = report_read(path, "logs.jsonl", &log_bytes);
    CHECK(log != NULL);
    unsigned found_count = 0, newest = 0;
    const char *line = log, *last = log;
    while (line < log + log_bytes) {
        const char *end = memchr(line, '\n', (size_t)(log + log_bytes - line));
        CHECK(end != NULL);
        const char *text = memmem(line, (size_t)(end - line), "\"record ", 8);
        CHECK(text != NULL);
        unsigned number = (unsigned)strtoul(text + 8, NULL, 10);
        CHECK(found_count == 0 || number == newest + 1);
        newest = number;
        found_count++;
        last = line;
        line = end + 1;
    }
    CHECK(newest >= returned_count);
    CHECK(newest == found_count || found_count > 10000); /* the ring has turned over */
    check_trigger(path, last);
    free(log);
    size_t pcap_bytes = 0;
    char *pcap = report_read(path, "traffic.pcap", &pcap_bytes);
    CHECK(pcap != NULL && pcap_bytes > 24);
    free(pcap);
    CHECK(unlink(path) == 0);
    return found_count;
}

static void check_next_open_recovers(atomic_uint *returned_count) {
    kill_host(returned_count, 0);
    bugpack_session *session = NULL;
    bugpack_options options = host_options();
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    bugpack_close(session);
    (void)check_report(atomic_load(returned_count));
}

int main(int argument_count, char **arguments) {
    /* For each kind of reader, and one more. `tests/run --full` kills fifty. */
    const unsigned round_count = (unsigned)run_length(argument_count, arguments, 5);
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    CHECK(pipe(outlive_fds) == 0);
    (void)snprintf(homes_dir, sizeof homes_dir, "%.200s/homes", dir.path);
    (void)snprintf(reports_dir, sizeof reports_dir, "%.200s/reports", dir.path);
    (void)snprintf(scratch_dir, sizeof scratch_dir, "%.200s/scratch", dir.path);
    atomic_uint *returned_count = mmap(NULL, sizeof *returned_count, PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(returned_count != MAP_FAILED);
    unsigned long record_count = 0;
    for (unsigned round = 0; round < round_count; round++) {
        kill_host(returned_count, round);
        check_without_room();
        recover_together();
        record_count += check_report(atomic_load(returned_count));
    }
    check_next_open_recovers(returned_count);
    temp_dir homes = {.fd = -1};
    (void)snprintf(homes.path, sizeof homes.path, "%s", homes_dir);
    DIR *listing = opendir(homes.path);
    CHECK(listing != NULL);
    struct dirent *entry;
    while ((entry = readdir(listing)) != NULL) {
        CHECK(entry->d_name[0] == '.'); /* what was turned is gone, and so is what ended cleanly */
    }
    (void)closedir(listing);
    printf("%u hosts killed, %lu records recovered, in order, none lost\n", round_count + 1,
           record_count);
    temp_dir_remove(&dir);
    return 0;
}
