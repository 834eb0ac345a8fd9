/*
 * A host with numbered records, for the campaign of faults:
 *
 *   faults_host report DIR COUNT     records, takes a report, closes
 *   faults_host die DIR COUNT        records, ends by SIGKILL
 *   faults_host reopen DIR COUNT     opens, which recovers what died before it, and closes
 *   faults_host emit - -             no session: prints the records, dies by SIGFPE; for bugpack
 * run
 *   faults_host count DIR -          records until it is killed; prints "counting PID N" before it
 *                                    records what is below N
 *
 * DIR gets the reports. The file COUNT has 4 bytes, and gets the number of records whose calls have
 * returned. The path of each report goes to standard output, and what is wrong to standard error.
 * Exit status as of `bugpack capture`; 9 when something of the host's own was touched.
 *
 * Half-way, FAULTS_BETWEEN is run by the shell; with FAULTS_CLOSES every descriptor from 3 on is
 * closed and files of the host's own take their numbers, as in a program that becomes a daemon. It
 * waits for the moment at which docs/THREADING.md calls that safe.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <bugpack/bugpack.h>

enum {
    record_count = 120,
    count_step = 50,
    own_file_count = 40,
    own_file_bytes = 64,
    told_touched = 9
};

static const char *report_dir, *count_path;
static size_t ring_bytes = 16 << 10;
static uint32_t *committed, unmapped;
static int own_files[own_file_count];
static const char own_content[own_file_bytes + 1] =
    "this belongs to the host, and nobody else may write into it....";

static int worst;

static void worsen(int status) {
    worst = worst == 0 || status == 1 ? status : worst;
}

static int fail(const char *what) {
    (void)fprintf(stderr, "faults_host: %s: %s\n", what, strerror(errno));
    return 1;
}

static void print_diagnostic(bugpack_level level, const char *text, void *context) {
    (void)context;
    if (level >= BUGPACK_LEVEL_WARN) {
        (void)fprintf(stderr, "faults_host: %s\n", text);
    }
}

static void print_result(bugpack_status status, const char *path, unsigned missing_count,
                         const char *why) {
    if (status != BUGPACK_OK) {
        (void)fprintf(stderr, "faults_host: no report: %s\n", why);
        worsen(1);
        return;
    }
    (void)printf("%s\n", path);
    if (missing_count > 0) {
        (void)fprintf(stderr, "faults_host: %u artefacts are missing\n", missing_count);
        worsen(3);
    }
}

static void print_event(const bugpack_event *event, void *context) {
    (void)context;
    if (strcmp(event->report_type, "crash") == 0 &&
        (event->kind == BUGPACK_EVENT_WRITTEN || event->kind == BUGPACK_EVENT_FAILED)) {
        bool is_written = event->kind == BUGPACK_EVENT_WRITTEN;
        print_result(is_written ? BUGPACK_OK : BUGPACK_ERR_IO, event->path, event->missing_count,
                     event->error.message);
    }
}

static int open_session(bugpack **ret_session) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "faulty";
    options.report_dir = report_dir;
    options.log_ring_bytes = ring_bytes;
    options.traffic_budget_bytes = ring_bytes;
    /* A host that closes descriptors does it between two samples. */
    options.history_interval_ms = getenv("FAULTS_CLOSES") != NULL ? 2000 : 20;
    options.sample_window_ms = 20;
    options.min_free_bytes = BUGPACK_OFF64;
    options.on_event = print_event;
    options.on_diagnostic = print_diagnostic;
    if (bugpack_open(&options, ret_session, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "faults_host: %s\n", error.message);
        return 1;
    }
    return 0;
}

static bool map_count(void) {
    int fd = open(count_path, O_RDWR | O_CLOEXEC);
    committed = mmap(NULL, sizeof *committed, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    return committed != MAP_FAILED;
}

static void record(bugpack *session, bugpack_channel *channel, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; i++) {
        bugpack_log(session, BUGPACK_LEVEL_INFO, "count", "record %u.", i);
        bugpack_traffic(channel, BUGPACK_SENT, i, "count", &i, sizeof i);
        if (i % 30 == 0) {
            bugpack_notify(session, BUGPACK_LEVEL_WARN, "host", "notice %u.", i);
        }
        *committed = i + 1;
    }
}

/* Whether every other thread of this process sleeps. */
static bool are_threads_idle(void) {
    DIR *listing = opendir("/proc/self/task");
    struct dirent *entry;
    bool is_idle = listing != NULL;
    while (is_idle && (entry = readdir(listing)) != NULL) {
        char path[300], stat[512] = "";
        if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == getpid()) {
            continue;
        }
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t count = read(fd, stat, sizeof stat - 1);
        const char *state = count > 0 ? strrchr(stat, ')') : NULL;
        is_idle = state != NULL && state[1] == ' ' && state[2] == 'S';
        (void)close(fd);
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    return is_idle;
}

/* No report is under way, and the sample of the opening is taken. */
static void wait_until_idle(bugpack *session) {
    (void)bugpack_flush(session, 10000);
    for (unsigned idle_count = 0; idle_count < 10;) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        idle_count = are_threads_idle() ? idle_count + 1 : 0;
    }
}

static bool take_descriptors(bugpack *session) {
    wait_until_idle(session);
    for (int fd = 3; fd < 1024; fd++) {
        (void)close(fd);
    }
    for (int i = 0; i < own_file_count; i++) {
        char name[] = "/tmp/faults-own.XXXXXX";
        own_files[i] = mkstemp(name);
        if (own_files[i] < 0 || unlink(name) != 0 ||
            pwrite(own_files[i], own_content, own_file_bytes, 0) != own_file_bytes) {
            return false;
        }
    }
    return true;
}

static bool are_descriptors_ours(void) {
    char content[own_file_bytes];
    struct stat info;
    for (int i = 0; i < own_file_count; i++) {
        if (fstat(own_files[i], &info) != 0 || info.st_size != own_file_bytes ||
            pread(own_files[i], content, sizeof content, 0) != own_file_bytes ||
            memcmp(content, own_content, sizeof content) != 0) {
            return false;
        }
    }
    return true;
}

/* What others, or the host itself, do to the session half-way. */
static int meddle(bugpack *session) {
    const char *command = getenv("FAULTS_BETWEEN");
    if (getenv("FAULTS_CLOSES") != NULL && !take_descriptors(session)) {
        return fail("cannot take descriptors");
    }
    if (command != NULL && system(command) < 0) {
        return fail("cannot run a command");
    }
    return 0;
}

/* The monitor of the session has had its turns: it keeps a history every 20 ms, or 2 s. */
static void let_monitor_work(void) {
    if (getenv("FAULTS_BETWEEN") != NULL || getenv("FAULTS_CLOSES") != NULL) {
        time_t secs = getenv("FAULTS_CLOSES") != NULL ? 2 : 1;
        (void)nanosleep(&(struct timespec){.tv_sec = secs, .tv_nsec = 500000000}, NULL);
    }
}

static int record_and_end(bool must_die) {
    bugpack *session = NULL;
    bugpack_channel *channel = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bool has_closed = getenv("FAULTS_CLOSES") != NULL;
    if (!map_count()) {
        return fail(count_path);
    }
    if (open_session(&session) != 0) {
        return 1;
    }
    if (bugpack_channel_open(session, "net", NULL, &channel, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "faults_host: no traffic: %s\n", error.message);
    }
    record(session, channel, 0, record_count / 2);
    int status = meddle(session);
    let_monitor_work();
    if (status != 0) {
        return status;
    }
    record(session, channel, record_count / 2, record_count / 2);
    if (must_die && (!has_closed || are_descriptors_ours())) {
        (void)kill(getpid(), SIGKILL);
    }
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    bugpack_status taken = bugpack_report(session, NULL, &result);
    print_result(taken, result.path, result.missing_count, result.error.message);
    bugpack_close(session);
    if (has_closed && !are_descriptors_ours()) {
        (void)fprintf(stderr, "faults_host: a file of the host's own was touched\n");
        return told_touched;
    }
    return worst;
}

static int reopen(void) {
    bugpack *session = NULL;
    if (open_session(&session) != 0) {
        return 1;
    }
    bugpack_close(session);
    return worst;
}

static int count_forever(void) {
    bugpack *session = NULL;
    bugpack_channel *channel = NULL;
    committed = &unmapped;
    ring_bytes = 64 << 10; /* full after some pages have reached the disk */
    if (open_session(&session) != 0 ||
        bugpack_channel_open(session, "net", NULL, &channel, NULL) != BUGPACK_OK) {
        return fail("cannot record");
    }
    for (uint32_t i = 0; i < UINT32_MAX - count_step; i += count_step) {
        (void)printf("counting %d %u\n", (int)getpid(), i + count_step);
        (void)fflush(stdout);
        (void)tcdrain(STDOUT_FILENO);
        record(session, channel, i, count_step);
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return 0;
}

static int emit(void) {
    for (unsigned i = 0; i < record_count; i++) {
        char line[32];
        int line_bytes = snprintf(line, sizeof line, "record %u.\n", i);
        if (write(i % 2 == 0 ? STDOUT_FILENO : STDERR_FILENO, line, (size_t)line_bytes) !=
            line_bytes) {
            return fail("cannot print");
        }
    }
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    (void)raise(SIGFPE);
    return fail("cannot end by a signal");
}

int main(int argument_count, char **arguments) {
    if (argument_count != 4) {
        (void)fprintf(stderr, "usage: faults_host MODE DIR COUNT\n");
        return 2;
    }
    report_dir = arguments[2];
    count_path = arguments[3];
    int status = 2;
    if (strcmp(arguments[1], "report") == 0) {
        status = record_and_end(false);
    } else if (strcmp(arguments[1], "die") == 0) {
        status = record_and_end(true);
    } else if (strcmp(arguments[1], "reopen") == 0) {
        status = reopen();
    } else if (strcmp(arguments[1], "count") == 0) {
        status = count_forever();
    } else if (strcmp(arguments[1], "emit") == 0) {
        status = emit();
    }
    return fflush(stdout) == 0 ? status : 1;
}
