#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/diff_text.h"
#include "cli/message.h"
#include "cli/option.h"

static const char help[] =
    "Usage: bugpack diff [OPTION]... BEFORE AFTER\n"
    "\n"
    "Show what changed from one report to another: of two captures of the machine\n"
    "what each process name, cgroup or thread name cost; of two reports about a\n"
    "process what it cost and how its heap stood. Each file is a report, or a\n"
    "host-threads.json, runtime-metrics.json or heap-state.json by itself.\n"
    "\n"
    "Options:\n"
    "      --by KEY        put threads together by process (the default), cgroup or\n"
    "                      thread\n"
    "      --counter NAME  what to compare (default schedstat.run_ns: CPU time in\n"
    "                      nanoseconds)\n"
    "      --limit N       show only the N largest changes\n"
    "      --json          JSON instead of text\n"
    "  -h, --help          show this help\n"
    "\n"
    "Counters:\n"
    "  stat.user_cpu_ns stat.system_cpu_ns stat.minor_faults stat.major_faults\n"
    "  stat.block_io_delay_ns\n"
    "  schedstat.run_ns schedstat.run_delay_ns schedstat.timeslices\n"
    "  status.voluntary_switches status.involuntary_switches\n"
    "  io.read_chars io.written_chars io.read_calls io.write_calls io.read_bytes\n"
    "  io.written_bytes io.cancelled_bytes\n"
    "  sched.exec_runtime_ns sched.switches sched.migrations\n"
    "  wakeups.wakeups wakeups.sync wakeups.migrate wakeups.local wakeups.remote\n"
    "  wakeups.affine wakeups.affine_attempts\n"
    "  waits.wait_sum_ns waits.wait_max_ns waits.wait_count waits.sleep_sum_ns\n"
    "  waits.sleep_max_ns waits.iowait_sum_ns waits.iowait_count\n"
    "  blocks.block_sum_ns blocks.block_max_ns\n"
    "  smaps_rollup.rss_kb smaps_rollup.pss_kb smaps_rollup.shared_clean_kb\n"
    "  smaps_rollup.shared_dirty_kb smaps_rollup.private_clean_kb\n"
    "  smaps_rollup.private_dirty_kb smaps_rollup.referenced_kb\n"
    "  smaps_rollup.anonymous_kb smaps_rollup.anonymous_huge_kb\n"
    "  smaps_rollup.swap_kb smaps_rollup.swap_pss_kb smaps_rollup.locked_kb\n"
    "  heap.allocated_bytes heap.deallocated_bytes\n"
    "\n"
    "Exit status: 0 compared, whether there are differences or not, 1 failed, or\n"
    "there is nothing to compare, 2 usage.\n";

enum { option_by = BP_CLI_OPTION_LONG_BASE, option_counter, option_limit, option_json };

static const struct option long_options[] = {{"by", required_argument, NULL, option_by},
                                             {"counter", required_argument, NULL, option_counter},
                                             {"limit", required_argument, NULL, option_limit},
                                             {"json", no_argument, NULL, option_json},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

typedef struct diff_options {
    const char *paths[2];
    bp_host_key key;
    const char *counter;
    size_t limit;
    bool as_json;
} diff_options;

/* As the progress bar has it: a terminal that can do it, and nobody who does not want it. */
static bool may_emphasise(void) {
    const char *terminal = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) == 1 && terminal != NULL && terminal[0] != '\0' &&
           strcmp(terminal, "dumb") != 0 && (no_color == NULL || no_color[0] == '\0');
}

static void say_absent(const char *artefact, const bp_diff_side *side, const char *reason) {
    bp_cli_say("no %s to compare in \"%s\"%s%s", artefact, side->path,
               reason[0] != '\0' ? ": " : "", reason);
}

/* What only one side has, and what a side says of why it has none. */
static void say_absences(const bp_diff *diff) {
    for (int i = 0; i < BP_DIFF_ARTEFACT_COUNT; i++) {
        const bp_diff_presence *before = &diff->before.presence[i];
        const bp_diff_presence *after = &diff->after.presence[i];
        const char *name = bp_diff_artefact_name((bp_diff_artefact)i);
        if (!before->is_there && (after->is_there || before->reason[0] != '\0')) {
            say_absent(name, &diff->before, before->reason);
        }
        if (!after->is_there && (before->is_there || after->reason[0] != '\0')) {
            say_absent(name, &diff->after, after->reason);
        }
    }
}

static bool print_json(const bp_diff *diff, size_t limit) {
    char *text = NULL;
    size_t text_bytes = 0;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_diff_json(diff, limit, &text, &text_bytes, &error) != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return false;
    }
    (void)fwrite(text, 1, text_bytes, stdout);
    free(text);
    return true;
}

static bp_cli_exit show(const bp_diff *diff, const diff_options *options) {
    say_absences(diff);
    if (!diff->has_any) {
        bp_cli_say("nothing to compare: \"%s\" and \"%s\" have nothing in common",
                   diff->before.path, diff->after.path);
        return BP_CLI_FAILED;
    }
    if (strcmp(diff->before.facts.timestamp, diff->after.facts.timestamp) > 0 &&
        diff->after.facts.timestamp[0] != '\0') {
        bp_cli_say("\"%s\" is older than \"%s\"", diff->after.path, diff->before.path);
    }
    bool is_printed = options->as_json ? print_json(diff, options->limit)
                                       : bp_cli_diff_print(diff, options->limit, may_emphasise());
    return bp_cli_finish_output() && is_printed ? BP_CLI_COMPLETE : BP_CLI_FAILED;
}

static bp_cli_exit compare(const diff_options *options) {
    bp_diff diff;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_diff_compute(options->paths[0], options->paths[1], options->key,
                                            options->counter, &diff, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    bp_cli_exit result = show(&diff, options);
    bp_diff_release(&diff);
    return result;
}

static bool take_key(const char *command, const char *text, bp_host_key *ret_key) {
    static const bp_host_key keys[] = {BP_HOST_BY_PROCESS, BP_HOST_BY_CGROUP, BP_HOST_BY_THREAD};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(text, bp_diff_key_name(keys[i])) == 0) {
            *ret_key = keys[i];
            return true;
        }
    }
    bp_cli_say_usage(command, "--by takes process, cgroup or thread, not '%s'", text);
    return false;
}

static bool take_counter(const char *command, const char *text, const char **ret_counter) {
    if (!bp_host_diff_has_counter(text)) {
        bp_cli_say_usage(command, "there is no counter '%s'", text);
        return false;
    }
    *ret_counter = text;
    return true;
}

static bool take_limit(const char *command, const char *text, size_t *ret_limit) {
    uint64_t value;
    if (!bp_cli_option_number(text, 1, UINT32_MAX, &value)) {
        bp_cli_say_usage(command, "--limit takes a number from 1 to %u, not '%s'", UINT32_MAX,
                         text);
        return false;
    }
    *ret_limit = (size_t)value;
    return true;
}

static bp_cli_exit run(int argument_count, char **arguments) {
    const char *name = bp_cli_diff_command.name;
    diff_options options = {.counter = "schedstat.run_ns", .limit = SIZE_MAX};
    bool is_good = true;
    while (is_good) {
        switch (bp_cli_option_next_or_operands(name, argument_count, arguments, ":h", long_options,
                                               2, options.paths)) {
        case option_by:
            is_good = take_key(name, optarg, &options.key);
            break;
        case option_counter:
            is_good = take_counter(name, optarg, &options.counter);
            break;
        case option_limit:
            is_good = take_limit(name, optarg, &options.limit);
            break;
        case option_json:
            options.as_json = true;
            break;
        case 'h':
            return bp_cli_print(help);
        case BP_CLI_OPTION_END:
            return options.paths[1] != NULL
                       ? compare(&options)
                       : bp_cli_say_usage(name, "two files are needed, BEFORE and AFTER");
        default:
            is_good = false;
        }
    }
    return BP_CLI_USAGE;
}

const bp_cli_command bp_cli_diff_command = {"diff", "show what changed from one report to another",
                                            help, run};
