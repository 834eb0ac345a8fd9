#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bugpack/heap.h>
#include <bugpack/sample.h>

#include "cli/command.h"
#include "cli/message.h"
#include "cli/option.h"

static const char help[] =
    "Usage: bugpack heap --pid PID [--snapshots N] [--interval-ms MS] [--json]\n"
    "\n"
    "Print how many bytes each thread of a running jemalloc process has allocated\n"
    "and freed since it began. The process is not changed and, as a rule, not\n"
    "stopped.\n"
    "\n"
    "Options:\n"
    "      --pid PID         the process to look at\n"
    "      --snapshots N     how often to look (default 1, at most 100000); SIGINT\n"
    "                        ends earlier, with what was read so far\n"
    "      --interval-ms MS  from one look to the next (default 1000, at most 600000)\n"
    "      --json            JSON instead of text: the thread-heap.json of a report\n"
    "  -h, --help            show this help\n"
    "\n"
    "Exit status: 0 printed (also when the process has no jemalloc), 1 failed,\n"
    "2 usage, 3 some threads could not be read, 4 no such process.\n";

enum { option_pid = BP_CLI_OPTION_LONG_BASE, option_snapshots, option_interval, option_json };

static const struct option long_options[] = {
    {"pid", required_argument, NULL, option_pid},
    {"snapshots", required_argument, NULL, option_snapshots},
    {"interval-ms", required_argument, NULL, option_interval},
    {"json", no_argument, NULL, option_json},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

static const uint32_t default_interval_ms = 1000;
static const uint32_t snapshot_max = 100000;

/* What SIGINT writes to, so that the library sees it as a readable descriptor. */
static int stop_pipe[2] = {-1, -1};

static void on_interrupt(int signal_number) {
    int saved_errno = errno;
    ssize_t ignored = write(stop_pipe[1], "", 1);
    (void)ignored;
    (void)signal_number;
    errno = saved_errno;
}

/* A second SIGINT ends the program as usual. One that was ignored from the start stays so. */
static bool catch_interrupt(void) {
    struct sigaction action, before;
    if (pipe(stop_pipe) != 0 || fcntl(stop_pipe[0], F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(stop_pipe[1], F_SETFD, FD_CLOEXEC) != 0) {
        bp_cli_say("cannot prepare for an interrupt: %s", strerror(errno));
        return false;
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
        (void)sigaction(SIGINT, &action, NULL);
    }
    return true;
}

static bp_cli_exit judge(const bugpack_thread_heap_result *result) {
    if (!result->is_measured) {
        bp_cli_say("no counters: %s: %s", result->failure, result->reason);
        return result->is_absence ? BP_CLI_COMPLETE : BP_CLI_FAILED;
    }
    if (result->unread_count > 0) {
        bp_cli_say("%u threads could not be read", (unsigned)result->unread_count);
        return BP_CLI_INCOMPLETE;
    }
    return BP_CLI_COMPLETE;
}

static bp_cli_exit print_heap(pid_t pid, bugpack_thread_heap_options *options) {
    char *text = NULL;
    size_t text_bytes = 0;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_thread_heap_result result = {.struct_size = sizeof result};
    if (!catch_interrupt()) {
        return BP_CLI_FAILED;
    }
    options->stop_fd = stop_pipe[0];
    options->calibrator_path = bp_cli_own_path;
    bugpack_status status =
        bugpack_thread_heap_read(pid, options, &text, &text_bytes, &result, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return bp_cli_exit_of(status);
    }
    (void)fwrite(text, 1, text_bytes, stdout);
    bugpack_free(text);
    return bp_cli_finish_output() ? judge(&result) : BP_CLI_FAILED;
}

static bool take_number(const char *option, const char *text, uint64_t smallest, uint64_t largest,
                        uint32_t *ret_value) {
    uint64_t value;
    if (!bp_cli_option_number(text, smallest, largest, &value)) {
        (void)bp_cli_say_usage("heap", "%s takes a number from %u to %u, not '%s'", option,
                               (unsigned)smallest, (unsigned)largest, text);
        return false;
    }
    *ret_value = (uint32_t)value;
    return true;
}

static bp_cli_exit run(int argument_count, char **arguments) {
    const char *name = bp_cli_heap_command.name;
    bugpack_thread_heap_options options = BUGPACK_THREAD_HEAP_OPTIONS_INIT;
    pid_t pid = 0;
    bool is_good = true;
    options.interval_ms = default_interval_ms;
    options.as_text = true;
    while (is_good) {
        switch (bp_cli_option_next(name, argument_count, arguments, ":h", long_options)) {
        case option_pid:
            is_good = bp_cli_option_pid(name, optarg, &pid);
            break;
        case option_snapshots:
            is_good = take_number("--snapshots", optarg, 1, snapshot_max, &options.snapshot_count);
            break;
        case option_interval:
            is_good = take_number("--interval-ms", optarg, 0, BUGPACK_THREAD_HEAP_INTERVAL_MAX_MS,
                                  &options.interval_ms);
            break;
        case option_json:
            options.as_text = false;
            break;
        case 'h':
            return bp_cli_print(help);
        case BP_CLI_OPTION_END:
            return pid != 0 ? print_heap(pid, &options)
                            : bp_cli_say_usage(name, "option '--pid' is missing");
        default:
            is_good = false;
        }
    }
    return BP_CLI_USAGE;
}

const bp_cli_command bp_cli_heap_command = {
    "heap", "print what the threads of a jemalloc process allocated", help, run};
