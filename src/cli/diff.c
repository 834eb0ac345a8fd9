#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/diff_print.h"
#include "cli/option.h"
#include "cli/output.h"
#include "inspect/diff.h"

typedef struct diff_options {
    bp_host_key key;
    const char *counter; /* NULL: not given */
    uint32_t limit;
    bool as_json, is_raw;
} diff_options;

/* As of diff(1), and not as of the other commands. */
static const bp_cli_exit is_equal = BP_CLI_COMPLETE, is_different = BP_CLI_FAILED,
                         is_trouble = BP_CLI_USAGE;

static const char default_counter[] = "schedstat.run_ns";

static void say_absent(const bp_diff_side *side, bp_diff_artefact artefact) {
    const bp_diff_presence *presence = &side->presence[artefact];
    if (presence->lacks_counter) {
        bp_cli_say("\"%s\": %s", side->path, presence->reason);
    } else {
        bp_cli_say("no %s to compare in \"%s\"%s%s", bp_diff_artefact_name(artefact), side->path,
                   presence->reason[0] != '\0' ? ": " : "", presence->reason);
    }
}

/* Names what only one side has, and why the other has none. */
static void say_absences(const bp_diff *diff) {
    for (int i = 0; i < BP_DIFF_ARTEFACT_COUNT; i++) {
        const bp_diff_presence *before = &diff->before.presence[i];
        const bp_diff_presence *after = &diff->after.presence[i];
        if (!before->is_there && (after->is_there || before->reason[0] != '\0')) {
            say_absent(&diff->before, (bp_diff_artefact)i);
        }
        if (!after->is_there && (before->is_there || after->reason[0] != '\0')) {
            say_absent(&diff->after, (bp_diff_artefact)i);
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

/* Whether there is what was asked for; if not, the reason was said. */
static bool has_what_was_asked(const bp_diff *diff, const diff_options *options) {
    say_absences(diff);
    if (options->counter != NULL && !diff->has_host) {
        bool is_unmeasured = diff->before.presence[BP_DIFF_HOST].lacks_counter ||
                             diff->after.presence[BP_DIFF_HOST].lacks_counter;
        bp_cli_say("cannot compare %s", is_unmeasured ? diff->counter : options->counter);
        return false;
    }
    if (!diff->has_any && !diff->before.presence[BP_DIFF_HOST].lacks_counter &&
        !diff->after.presence[BP_DIFF_HOST].lacks_counter) {
        bp_cli_say("nothing to compare: \"%s\" and \"%s\" have nothing in common",
                   diff->before.path, diff->after.path);
    }
    return diff->has_any;
}

/* What limits the comparison of two captures. */
static void say_limits(const bp_diff *diff) {
    const struct {
        const char *path;
        bool is_complete;
    } sides[] = {{diff->before.path, diff->host.is_complete_before},
                 {diff->after.path, diff->host.is_complete_after}};
    if (!diff->host.is_same_boot) {
        bp_cli_say("\"%s\" and \"%s\" are not of one boot of a machine: no thread is in both",
                   diff->before.path, diff->after.path);
    }
    for (size_t i = 0; i < 2; i++) {
        if (!sides[i].is_complete) {
            bp_cli_say(
                "the capture of \"%s\" missed threads: what is only in the other is not compared",
                sides[i].path);
        }
    }
}

/* What should be known before the figures are read. */
static void say_relation(const bp_diff *diff) {
    if (diff->relation.program == BP_SAME_NO) {
        bp_cli_say("\"%s\" and \"%s\" are of different programs: %s and %s", diff->before.path,
                   diff->after.path, diff->before.facts.app_name, diff->after.facts.app_name);
    }
    if (strcmp(diff->before.facts.timestamp, diff->after.facts.timestamp) > 0 &&
        diff->after.facts.timestamp[0] != '\0') {
        bp_cli_say("\"%s\" is older than \"%s\"", diff->after.path, diff->before.path);
    }
    for (size_t i = 0; diff->has_host && i < diff->further_count; i++) {
        if (!diff->further[i].is_compared) {
            bp_cli_say("%s was not measured on both sides", diff->further[i].name);
        }
    }
}

static bp_cli_exit show(const bp_diff *diff, const diff_options *options) {
    bool emphasis = bp_cli_is_terminal(STDOUT_FILENO) && bp_cli_wants_colour();
    if (!has_what_was_asked(diff, options)) {
        return is_trouble;
    }
    if (diff->has_host) {
        say_limits(diff);
    }
    say_relation(diff);
    bool is_printed = options->as_json
                          ? print_json(diff, options->limit)
                          : bp_cli_print_diff(diff, options->limit, emphasis, options->is_raw);
    if (bp_cli_finish_output() != BP_CLI_COMPLETE || !is_printed) {
        return is_trouble;
    }
    return bp_diff_is_equal(diff) ? is_equal : is_different;
}

static bp_cli_exit compare(char **paths, const diff_options *options) {
    bp_diff diff;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_diff_compute(
        paths[0], paths[1], options->key,
        options->counter != NULL ? options->counter : default_counter, &diff, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return is_trouble;
    }
    bp_cli_exit result = show(&diff, options);
    bp_diff_release(&diff);
    return result;
}

static bool read_key(const bp_cli_option *option, const char *text, void *field) {
    static const bp_host_key keys[] = {BP_HOST_BY_PROCESS, BP_HOST_BY_CGROUP, BP_HOST_BY_THREAD};
    enum { key_count = sizeof keys / sizeof keys[0] };
    const char *names[key_count + 1] = {NULL};
    size_t index;
    for (size_t i = 0; i < key_count; i++) {
        names[i] = bp_diff_key_name(keys[i]);
    }
    if (!bp_cli_find_choice(option, text, names, &index)) {
        return false;
    }
    *(bp_host_key *)field = keys[index];
    return true;
}

/* Of a table that it fills: a name that was returned is needed until the last one. */
static const char *name_of_counter(const void *context, size_t index) {
    static char names[BP_HOST_COUNTER_COUNT][48];
    (void)context;
    return bp_host_diff_name_counter(index, names[index < BP_HOST_COUNTER_COUNT ? index : 0],
                                     sizeof names[0])
               ? names[index]
               : NULL;
}

/* Names with commas between them. */
static bool read_counter(const bp_cli_option *option, const char *text, void *field) {
    char suggestion[BP_CLI_SUGGESTION_BYTES], name[64];
    size_t count = 0, length = 0;
    for (const char *at = text; count == 0 || at[-1] == ','; at += length + 1, count++) {
        length = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (!bp_host_diff_has_counter(name)) {
            bp_cli_say_usage("there is no counter '%s'%s", name,
                             bp_cli_suggest(name, "", name_of_counter, NULL, suggestion));
            return false;
        }
    }
    if (count > BP_DIFF_COUNTER_MAX) {
        bp_cli_say_usage("--counter takes at most %d counters", BP_DIFF_COUNTER_MAX);
        return false;
    }
    return bp_cli_read_text(option, text, field);
}

static const bp_cli_bounds limits = {"a number", 1, UINT32_MAX, 1};

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(diff_options, key, 0, "by", "KEY",
                 "group threads by process (the default), cgroup or thread", read_key, NULL),
    BP_CLI_VALUE(diff_options, counter, 0, "counter", "NAMES",
                 "what to compare of two captures of the machine, with\n"
                 "commas between them (default schedstat.run_ns: CPU\n"
                 "time in nanoseconds)",
                 read_counter, NULL),
    BP_CLI_VALUE(diff_options, limit, 0, "limit", "N", "show only the N largest changes",
                 bp_cli_read_number, &limits),
    BP_CLI_FLAG(diff_options, is_raw, 0, "bytes", "numbers as in the reports, without units"),
    BP_CLI_FLAG(diff_options, as_json, 0, "json", "JSON instead of text"),
    BP_CLI_OPTIONS_END};

static bp_cli_exit run(int argument_count, char **arguments) {
    diff_options options = {.limit = UINT32_MAX};
    char **paths;
    bp_cli_exit result;
    if (!bp_cli_read_options(&bp_cli_diff_command, argument_count, arguments, &options, &paths,
                             &result)) {
        return result;
    }
    if (paths[0] == NULL || paths[1] == NULL) {
        return bp_cli_say_usage("two files are needed, BEFORE and AFTER");
    }
    return compare(paths, &options);
}

const bp_cli_command bp_cli_diff_command = {
    "diff",
    "show what changed from one report to another",
    "Usage: bugpack diff [OPTION]... BEFORE AFTER\n"
    "\n"
    "Show what changed from one report to another: of two captures of the machine\n"
    "what each process name, cgroup or thread name cost; of two reports about a\n"
    "process what it cost, its threads, limits, loaded objects and gaps, how its\n"
    "heap stood, and what it said of itself. Each file is a report, or a\n"
    "host-threads.json, runtime-metrics.json or heap-state.json by itself; one of\n"
    "them may be -, for standard input.\n",
    option_rows,
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
    "Exit status: 0 equal, 1 different, 2 trouble: a file that cannot be read, or\n"
    "nothing to compare, or not that counter, or a wrong command line.\n",
    2,
    run};
