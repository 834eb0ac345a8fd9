#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/heap_state.h>
#include <bugpack/sample.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "inspect/report_file.h"
#include "model/heap_state.h"
#include "probe/thread_heap.h"

typedef struct heap_options {
    pid_t pid;
    uint32_t snapshot_count;
    uint32_t interval_ms;
    bool as_json;
    bool of_state;
    bool follows;
} heap_options;

static const bp_cli_bounds snapshots = {"a number", 1, 100000, 1};
static const bp_cli_bounds intervals = {"a number", 0, 600000, 1};

static const size_t counters_limit_bytes = (size_t)256 << 20;

static const bp_cli_option option_rows[] = {
    BP_CLI_PID(heap_options),
    BP_CLI_VALUE(heap_options, snapshot_count, 0, "snapshots", "N",
                 "how many snapshots (default 1, at most 100000); SIGINT\n"
                 "ends earlier, with what was read so far",
                 bp_cli_read_number, &snapshots),
    BP_CLI_VALUE(
        heap_options, interval_ms, 0, "interval-ms", "TIME",
        "time between snapshots, in milliseconds, or such as 5s\n(default 1s, at most 10min)",
        bp_cli_read_time, &intervals),
    BP_CLI_FLAG(heap_options, follows, 0, "follow",
                "print rates and changes each interval, until it is\nended; --snapshots counts the "
                "intervals"),
    BP_CLI_FLAG(heap_options, of_state, 0, "state",
                "print the heap-state.json of a file or a report"),
    BP_CLI_FLAG(heap_options, as_json, 0, "json",
                "JSON instead of text: the thread-heap.json of a\n"
                "report, with --state its heap-state.json, with\n"
                "--follow a line each interval"),
    BP_CLI_OPTIONS_END};

static bp_cli_exit say_no_counters(const bp_thread_heap_reading *reading) {
    bool is_absence = bp_heap_failure_is_absence(reading->failure, reading->system_errno);
    bp_cli_say("no counters: %s: %s", bp_heap_failure_name(reading->failure), reading->reason);
    return is_absence ? BP_CLI_COMPLETE : BP_CLI_FAILED;
}

static bp_cli_exit judge(const bp_thread_heap_reading *reading) {
    size_t unread_count = bp_thread_heap_unread_count(reading);
    if (reading->failure != BP_HEAP_FAILURE_NONE) {
        return say_no_counters(reading);
    }
    if (unread_count > 0) {
        bp_cli_say("%zu thread%s could not be read", unread_count, unread_count == 1 ? "" : "s");
        return BP_CLI_INCOMPLETE;
    }
    return BP_CLI_COMPLETE;
}

/* A prober, and what ends it; on a failure there is none. */
static bugpack_status open_prober(bp_heap_prober **ret_prober, int *ret_end_fd,
                                  bugpack_error *error) {
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    options.calibrator_path = BP_CLI_OWN_PATH;
    bugpack_status status = bp_cli_catch_end(ret_end_fd, error);
    return status == BUGPACK_OK ? bp_heap_prober_new(&options, ret_prober, error) : status;
}

static bugpack_status read_heap(const heap_options *given, bp_thread_heap_reading *ret_reading,
                                bugpack_error *error) {
    bp_heap_prober *prober = NULL;
    bp_heap_plan plan = {given->snapshot_count > 0 ? given->snapshot_count : 1, given->interval_ms,
                         -1};
    bugpack_status status = open_prober(&prober, &plan.stop_fd, error);
    if (status == BUGPACK_OK) {
        status = bp_heap_probe(prober, given->pid, &plan, ret_reading, error);
    }
    bp_heap_prober_free(prober);
    if (status == BUGPACK_OK && ret_reading->failure == BP_HEAP_FAILURE_PID_MISSING) {
        status = bp_fail(error, BUGPACK_ERR_NO_PROCESS, "%s", ret_reading->reason);
    }
    return status;
}

static bp_cli_exit print_heap(const heap_options *given) {
    bp_buffer text;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_thread_heap_reading reading = {.pid = 0};
    bp_cli_exit result;
    bp_buffer_init(&text, counters_limit_bytes);
    bugpack_status status = read_heap(given, &reading, &error);
    if (status == BUGPACK_OK) {
        status = given->as_json ? bp_thread_heap_print(&reading, 1, &text, &error)
                                : bp_thread_heap_print_text(&reading, &text, &error);
    }
    if (status != BUGPACK_OK) {
        result = bp_cli_say_error(&error);
    } else {
        (void)fwrite(bp_buffer_text(&text), 1, text.size, stdout);
        result = bp_cli_finish_output() == BP_CLI_COMPLETE ? judge(&reading) : BP_CLI_FAILED;
    }
    bp_buffer_release(&text);
    bp_thread_heap_reading_release(&reading);
    return result;
}

/* The heap-state.json of a report, or one by itself. */
static bugpack_status read_state(const char *path, bugpack_heap_state *ret_state,
                                 bugpack_error *error) {
    static const char name[] = "heap-state.json";
    bp_report_file *report = NULL;
    bp_buffer text;
    int fd;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_report_file_open_or_plain(path, &report, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_buffer_init(&text, (size_t)1 << 20);
    if (report == NULL) {
        status = bp_file_read_fd(fd, path, &text, error);
    } else if (bp_report_file_has(report, name, NULL)) {
        status = bp_report_file_read(report, name, &text, error);
    } else {
        bp_report_line line = {.status = "", .reason = ""};
        (void)bp_report_file_line(report, name, &line);
        status = bp_fail(error, BUGPACK_ERR_CORRUPT, "no %s in \"%s\"%s%s%s%s", name, path,
                         line.status[0] != '\0' ? ": " : "", line.status,
                         line.reason[0] != '\0' ? ": " : "", line.reason);
    }
    if (status == BUGPACK_OK) {
        status = bp_heap_state_parse(bp_buffer_text(&text), text.size, ret_state, &detail);
        status = status == BUGPACK_OK
                     ? status
                     : bp_fail(error, status, "%s of \"%s\": %s", name, path, detail.message);
    }
    bp_buffer_release(&text);
    if (report == NULL) {
        bp_file_close(fd);
    }
    bp_report_file_close(report);
    return status;
}

static bp_cli_exit print_state(const char *path, bool as_json) {
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer text;
    bp_buffer_init(&text, SIZE_MAX / 4);
    bugpack_status status = read_state(path, &state, &error);
    if (status == BUGPACK_OK && as_json && state.allocator[0] == '\0') {
        status =
            bp_fail(&error, BUGPACK_ERR_CORRUPT, "\"%s\" names no allocator: no JSON of it", path);
    } else if (status == BUGPACK_OK && as_json) {
        status = bp_heap_state_print(&state, &text, &error);
    } else if (status == BUGPACK_OK && bp_heap_state_text(&state, &text) != BUGPACK_OK) {
        status = bp_fail_memory(&error, "print the state of the heap");
    }
    (void)fputs(bp_buffer_text(&text), stdout);
    bp_buffer_release(&text);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    return bp_cli_finish_output();
}

/* What a thread did between two snapshots. */
typedef struct heap_change {
    const bp_thread_heap *now;
    bool has_change; /* the thread was measured before, or did not exist */
    uint64_t allocated_bytes, freed_bytes;
} heap_change;

static const bp_thread_heap_snapshot *last_of(const bp_thread_heap_reading *reading) {
    return reading->snapshot_count > 0 ? &reading->snapshots[reading->snapshot_count - 1] : NULL;
}

/* The threads are ascending by tid. */
static const bp_thread_heap *find_thread(const bp_thread_heap_snapshot *snapshot,
                                         const bp_thread_heap *thread) {
    for (size_t i = 0; i < snapshot->thread_count && snapshot->threads[i].tid <= thread->tid; i++) {
        if (snapshot->threads[i].tid == thread->tid) {
            return snapshot->threads[i].birth == thread->birth ? &snapshot->threads[i] : NULL;
        }
    }
    return NULL;
}

/* Counters begin with their thread: of a new one all of it is new. */
static heap_change compare(const bp_thread_heap_snapshot *before, const bp_thread_heap *now) {
    const bp_thread_heap *then = find_thread(before, now);
    heap_change change = {.now = now,
                          .has_change = now->is_measured && (then == NULL || then->is_measured)};
    if (change.has_change) {
        change.allocated_bytes = now->allocated_bytes - (then != NULL ? then->allocated_bytes : 0);
        change.freed_bytes = now->deallocated_bytes - (then != NULL ? then->deallocated_bytes : 0);
    }
    return change;
}

static int compare_sizes(const void *a, const void *b) {
    const heap_change *one = a, *other = b;
    uint64_t x = one->allocated_bytes + one->freed_bytes;
    uint64_t y = other->allocated_bytes + other->freed_bytes;
    if (x != y) {
        return x > y ? -1 : 1;
    }
    return one->now->tid < other->now->tid ? -1 : 1;
}

static void print_row(const char *tid, const char *name, const heap_change *change, double secs) {
    char allocated[BP_CLI_BYTES_BYTES], freed[BP_CLI_BYTES_BYTES], net_text[BP_CLI_CHANGE_BYTES];
    (void)printf("%10s  %10s  %10s  %10s  %s\n", tid,
                 bp_cli_format_bytes((uint64_t)((double)change->allocated_bytes / secs), allocated),
                 bp_cli_format_bytes((uint64_t)((double)change->freed_bytes / secs), freed),
                 bp_cli_format_change(change->freed_bytes, change->allocated_bytes, net_text),
                 name);
}

/* The threads that did something, the busiest first, below their sum. */
static void print_table(heap_change *changes, size_t count, const char *time, double secs) {
    heap_change sum = {.allocated_bytes = 0};
    size_t unknown_count = 0;
    for (size_t i = 0; i < count; i++) {
        sum.allocated_bytes += changes[i].allocated_bytes;
        sum.freed_bytes += changes[i].freed_bytes;
        unknown_count += !changes[i].has_change;
    }
    (void)printf("%.8s    ALLOC/S     FREED/S      CHANGE  THREAD\n", time + 11);
    print_row("all", unknown_count > 0 ? "(without some)" : "", &sum, secs);
    qsort(changes, count, sizeof *changes, compare_sizes);
    for (size_t i = 0; i < count && changes[i].allocated_bytes + changes[i].freed_bytes > 0; i++) {
        char tid[24], name[64 * 4 + 1];
        (void)snprintf(tid, sizeof tid, "%" PRIu64, changes[i].now->tid);
        bp_cli_escape(changes[i].now->name, name, sizeof name);
        print_row(tid, name, &changes[i], secs);
    }
}

static void print_json(const heap_change *changes, size_t count, const char *time, double secs) {
    (void)printf("{\"time\":\"%s\",\"interval_ms\":%.3f,\"threads\":[", time, secs * 1000);
    for (size_t i = 0; i < count; i++) {
        const heap_change *change = &changes[i];
        (void)printf("%s{\"tid\":%" PRIu64 ",\"name\":", i > 0 ? "," : "", change->now->tid);
        bp_cli_print_json(change->now->name);
        if (change->now->is_measured) {
            (void)printf(",\"allocated_bytes\":%" PRIu64 ",\"deallocated_bytes\":%" PRIu64,
                         change->now->allocated_bytes, change->now->deallocated_bytes);
        }
        if (change->has_change) {
            (void)printf(",\"allocated_bytes_per_sec\":%.0f,\"deallocated_bytes_per_sec\":%.0f,"
                         "\"change_bytes\":%.0f",
                         (double)change->allocated_bytes / secs, (double)change->freed_bytes / secs,
                         (double)change->allocated_bytes - (double)change->freed_bytes);
        }
        (void)putchar('}');
    }
    (void)fputs("]}\n", stdout);
}

static bp_cli_exit print_change(const bp_thread_heap_snapshot *before,
                                const bp_thread_heap_snapshot *now, bool as_json) {
    char time[BP_CLOCK_ISO_BYTES];
    heap_change *changes = calloc(now->thread_count + 1, sizeof *changes);
    double secs = (double)(now->taken_ns - before->taken_ns) / (double)BP_NS_PER_SEC;
    if (changes == NULL) {
        bp_cli_say("cannot compare the counters: out of memory");
        return BP_CLI_FAILED;
    }
    for (size_t i = 0; i < now->thread_count; i++) {
        changes[i] = compare(before, &now->threads[i]);
    }
    bp_clock_format_iso(now->taken_wall_ns, time);
    secs = secs > 0 ? secs : 1e-9;
    if (as_json) {
        print_json(changes, now->thread_count, time, secs);
    } else {
        print_table(changes, now->thread_count, time, secs);
    }
    free(changes);
    return bp_cli_finish_output();
}

/* The first thread began with its process. */
static bool is_same_process(const bp_thread_heap_reading *before,
                            const bp_thread_heap_reading *now) {
    const bp_thread_heap first = {.tid = now->pid, .birth = 0};
    const bp_thread_heap_snapshot *then = last_of(before), *snapshot = last_of(now);
    for (size_t i = 0; snapshot != NULL && i < snapshot->thread_count; i++) {
        if (snapshot->threads[i].tid == first.tid) {
            return find_thread(then, &snapshot->threads[i]) != NULL;
        }
    }
    return snapshot != NULL;
}

/* Nothing can be followed: as `bugpack heap` without --follow says it. */
static bp_cli_exit say_failure(const bp_thread_heap_reading *reading, bool is_first) {
    bool has_ended = reading->failure == BP_HEAP_FAILURE_PID_MISSING ||
                     /* A zombie has no executable, and this was none before. */
                     (!is_first && reading->failure == BP_HEAP_FAILURE_READLINK &&
                      reading->system_errno == ENOENT);
    if (has_ended && !is_first) {
        bp_cli_say("process %" PRIu64 " has ended", reading->pid);
        return BP_CLI_COMPLETE;
    }
    bp_cli_exit result = say_no_counters(reading);
    return has_ended ? BP_CLI_NO_PROCESS : result;
}

static bp_cli_exit follow(bp_heap_prober *prober, const heap_options *options, int end_fd) {
    const bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_thread_heap_reading before = {.pid = 0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_cli_exit result = BP_CLI_COMPLETE;
    for (uint32_t i = 0; result == BP_CLI_COMPLETE &&
                         (options->snapshot_count == 0 || i <= options->snapshot_count);
         i++) {
        bp_thread_heap_reading now = {.pid = 0};
        if (i > 0 && !bp_cli_wait_until(end_fd, bp_clock_monotonic_ns() +
                                                    options->interval_ms * BP_NS_PER_MS)) {
            break;
        }
        if (bp_heap_probe(prober, options->pid, &plan, &now, &error) != BUGPACK_OK) {
            result = bp_cli_say_error(&error);
            break;
        }
        if (now.failure == BP_HEAP_FAILURE_NONE && i > 0 && !is_same_process(&before, &now)) {
            now.failure = BP_HEAP_FAILURE_PID_MISSING; /* another one has its id */
        }
        if (now.failure != BP_HEAP_FAILURE_NONE) {
            result = say_failure(&now, i == 0);
            bp_thread_heap_reading_release(&now);
            break;
        }
        if (i > 0) {
            result = print_change(last_of(&before), last_of(&now), options->as_json);
        }
        bp_thread_heap_reading_release(&before);
        before = now;
    }
    bp_thread_heap_reading_release(&before);
    return result;
}

static bp_cli_exit follow_heap(const heap_options *options) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_heap_prober *prober = NULL;
    int end_fd;
    if (open_prober(&prober, &end_fd, &error) != BUGPACK_OK) {
        return bp_cli_say_error(&error);
    }
    bp_cli_exit result = follow(prober, options, end_fd);
    bp_heap_prober_free(prober);
    return result;
}

static bp_cli_exit run(int argument_count, char **arguments) {
    heap_options options = {.snapshot_count = 0, .interval_ms = 1000};
    char **operands;
    bp_cli_exit result;
    if (!bp_cli_read_options(&bp_cli_heap_command, argument_count, arguments, &options, &operands,
                             &result)) {
        return result;
    }
    if (options.of_state) {
        if (options.pid != 0 || options.follows) {
            return bp_cli_say_usage("--state and %s exclude each other",
                                    options.pid != 0 ? "--pid" : "--follow");
        }
        return print_state(operands[0] != NULL ? operands[0] : "-", options.as_json);
    }
    if (operands[0] != NULL) {
        return bp_cli_say_usage("unexpected argument '%s'", operands[0]);
    }
    if (options.pid == 0) {
        return bp_cli_say_usage("option '--pid' is missing");
    }
    if (options.follows && options.interval_ms == 0) {
        return bp_cli_say_usage("--follow needs an --interval-ms over 0");
    }
    if (options.follows) {
        return follow_heap(&options);
    }
    return print_heap(&options);
}

const bp_cli_command bp_cli_heap_command = {
    "heap",
    "print what the threads of a jemalloc process allocated",
    "Usage: bugpack heap --pid PID [--snapshots N] [--interval-ms TIME] [--json]\n"
    "       bugpack heap --pid PID --follow [--interval-ms TIME] [--json]\n"
    "       bugpack heap --state [--json] [FILE|ZIP]\n"
    "\n"
    "Print how many bytes each thread of a running jemalloc process has allocated\n"
    "and freed since it began. The process is not changed and, as a rule, not\n"
    "stopped.\n"
    "\n"
    "With --state, print the totals of a heap: heap-state.json, by itself or in a\n"
    "report; without a file, or with -, from standard input.\n",
    option_rows,
    "Exit status: 0 printed (also when the process has no jemalloc), 1 failed,\n"
    "2 usage, 3 some threads could not be read, 4 no such process.\n",
    1,
    run};
