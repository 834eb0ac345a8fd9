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
 * Exit status as of `bugpack capture`. Half-way, FAULTS_BETWEEN is run by the shell. With
 * FAULTS_SANDBOX the host uses more of a session, and from "NUMBER ERRNO before" in it on that
 * system call is refused to all threads; with "after" once the session is open.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <bugpack/bugpack.h>

enum { record_count = 120, count_step = 50 };

static const char *report_dir, *count_path;
static size_t ring_bytes = 16 << 10;
static uint32_t *committed, unmapped;

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

/* Refuses the system call that FAULTS_SANDBOX names, if that is to be now. */
static void enter_sandbox(const char *when) {
    unsigned number = 0, refusal = 0;
    char told_when[8] = "";
    const char *text = getenv("FAULTS_SANDBOX");
    if (text == NULL || sscanf(text, "%u %u %7s", &number, &refusal, told_when) != 3 ||
        strcmp(told_when, when) != 0) {
        return;
    }
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (refusal & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        abort();
    }
}

static int open_session(bugpack_session **ret_session) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "faulty";
    options.report_dir = report_dir;
    options.recorder.log_ring_bytes = ring_bytes;
    options.recorder.traffic_budget_bytes = ring_bytes;
    options.recorder.history_interval_ms = 20;
    options.sample_window_ms = 20;
    options.limits.min_free_bytes = BUGPACK_OFF;
    options.on_event = print_event;
    options.on_diagnostic = print_diagnostic;
    if (getenv("FAULTS_SANDBOX") != NULL) {
        options.stacks = BUGPACK_STACKS_ALL;
        options.calibrator_path = getenv("FAULTS_COMMAND");
    }
    enter_sandbox("before");
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

static void record(bugpack_session *session, bugpack_channel *channel, uint32_t first,
                   uint32_t count) {
    for (uint32_t i = first; i < first + count; i++) {
        bugpack_log(session, BUGPACK_LEVEL_INFO, "count", "record %u.", i);
        bugpack_traffic(channel, BUGPACK_SENT, i, "count", &i, sizeof i);
        if (i % 30 == 0) {
            bugpack_notify(session, BUGPACK_LEVEL_WARN, "host", NULL, "notice %u.", i);
        }
        *committed = i + 1;
    }
}

/* What others do to the session half-way. */
static int meddle(void) {
    const char *command = getenv("FAULTS_BETWEEN");
    if (command != NULL && system(command) < 0) {
        return fail("cannot run a command");
    }
    return 0;
}

/* The monitor of the session has had its turns: it keeps a history every 20 ms. */
static void let_monitor_work(void) {
    if (getenv("FAULTS_BETWEEN") != NULL) {
        (void)nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 500000000}, NULL);
    }
}

static int record_and_end(bool must_die) {
    bugpack_session *session = NULL;
    bugpack_channel *channel = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (!map_count()) {
        return fail(count_path);
    }
    if (open_session(&session) != 0) {
        return 1;
    }
    enter_sandbox("after");
    if (getenv("FAULTS_SANDBOX") != NULL) {
        (void)bugpack_crash_handler_install(session, NULL);
        (void)bugpack_disconnect(session, "net", "gone", NULL, NULL);
    }
    if (bugpack_channel_open(session, "net", NULL, &channel, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "faults_host: no traffic: %s\n", error.message);
    }
    record(session, channel, 0, record_count / 2);
    int status = meddle();
    let_monitor_work();
    if (status != 0) {
        return status;
    }
    record(session, channel, record_count / 2, record_count / 2);
    if (must_die) {
        (void)kill(getpid(), SIGKILL);
    }
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    bugpack_status taken = bugpack_report(session, NULL, &result, NULL);
    print_result(taken, result.path, result.missing_count, result.error.message);
    bugpack_close(session);
    return worst;
}

static int reopen(void) {
    bugpack_session *session = NULL;
    if (open_session(&session) != 0) {
        return 1;
    }
    bugpack_close(session);
    return worst;
}

static int count_forever(void) {
    bugpack_session *session = NULL;
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
    return fflush(stdout) == 0 ? status : fail("its output");
}
