#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <bugpack/sample.h>
#include <bugpack/session.h>

#include "cli/option.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "model/fields.h"
#include "print/fill.h"
#include "process/sampler.h"

typedef struct sample_options {
    pid_t pid;
    uint32_t window_ms;
    uint32_t count; /* 0: without end */
    bool follows;
    bool as_json;
} sample_options;

static const bp_cli_bounds counts = {"a number", 1, 1000000, 1};

/* CPU time is counted in ticks of 10 ms: a shorter window would show what one tick is of it. */
enum { least_window_ms = 100 };

static const bp_cli_option option_rows[] = {
    BP_CLI_PID(sample_options),
    BP_CLI_VALUE(sample_options, window_ms, 0, "window", "TIME",
                 "how long to measure, in seconds, or such as 500ms\n(default 2s, at most 10min)",
                 bp_cli_read_time, &bp_cli_windows),
    BP_CLI_FLAG(sample_options, follows, 0, "follow",
                "print a line each window, with changes, until it is\nended"),
    BP_CLI_VALUE(sample_options, count, 0, "count", "N", "end after N lines (default: never)",
                 bp_cli_read_number, &counts),
    BP_CLI_FLAG(sample_options, as_json, 0, "json", "with --follow: JSON, an object each line"),
    BP_CLI_OPTIONS_END};

static bp_cli_exit print_sample(const sample_options *options) {
    char *json = NULL;
    size_t json_bytes = 0;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bugpack_sample(options->pid, options->window_ms, &json, &json_bytes, &error) !=
        BUGPACK_OK) {
        return bp_cli_say_error(&error);
    }
    (void)fwrite(json, 1, json_bytes, stdout);
    /* Of a system without a sampler. No text in it can have a newline of its own. */
    bool has_metrics = strstr(json, "\n  \"available\": false") == NULL;
    bugpack_free(json);
    bp_cli_exit result = bp_cli_finish_output();
    if (result != BP_CLI_COMPLETE || has_metrics) {
        return result;
    }
    bp_cli_say("this system has no metrics: the \"reason\" is in the JSON");
    return BP_CLI_FAILED;
}

/* The table's head is printed again after so many lines, about a screen. */
enum { head_lines = 40 };

/* With a sign, unless nothing has changed. */
static void format_change(uint64_t before_kb, uint64_t after_kb, char out[BP_FILL_BYTES + 1]) {
    uint64_t size_kb = after_kb > before_kb ? after_kb - before_kb : before_kb - after_kb;
    out[0] = after_kb > before_kb ? '+' : '-';
    (void)bp_fill_bytes((double)size_kb * 1024, out + (size_kb != 0));
}

/* `before_kb` is the resident memory of the line before; NULL: this is the first one. */
static void print_line(const bp_metrics *metrics, const char *time, const uint64_t *before_kb,
                       uint32_t number) {
    char rss[BP_FILL_BYTES] = "-", change[BP_FILL_BYTES + 1] = "-";
    const bp_thread_metrics *busiest = bp_metrics_busiest(metrics);
    if (number % head_lines == 0) {
        (void)printf("TIME (UTC)   CPU %%      RSS   CHANGE  THREADS  BUSIEST\n");
    }
    if (metrics->has_memory) {
        (void)bp_fill_bytes((double)metrics->rss_kb * 1024, rss);
        if (before_kb != NULL) {
            format_change(*before_kb, metrics->rss_kb, change);
        }
    }
    (void)printf("%.8s  %8.1f %8s %8s %8zu", time + 11, metrics->cpu_percent, rss, change,
                 metrics->thread_count);
    if (busiest != NULL) {
        (void)fputs("  ", stdout);
        bp_cli_print_escaped(stdout, busiest->name);
        (void)printf(" (%" PRIu64 ") %.1f %%", busiest->tid, busiest->cpu_percent);
    }
    (void)putchar('\n');
}

/* Two decimals, also of a whole number. */
static void add_percent(bp_json *json, double value) {
    char text[32];
    int length = snprintf(text, sizeof text, "%.2f", value);
    bp_json_add_raw(json, "cpu_percent", text, (size_t)length);
}

static void print_json(const bp_metrics *metrics, const char *time, const uint64_t *before_kb) {
    bp_buffer line;
    bp_json json;
    bp_buffer_init(&line, BP_CLI_JSON_BYTES);
    bp_json_begin_as(&json, BP_JSON_RECORD, &line);
    bp_json_add_text(&json, "time", time);
    bp_json_add_uint(&json, "window_ms", metrics->sample_window_ms);
    add_percent(&json, metrics->cpu_percent);
    if (metrics->has_memory) {
        bp_json_add_uint(&json, "rss_kb", metrics->rss_kb);
        bp_json_add_uint(&json, "vm_size_kb", metrics->vm_size_kb);
    }
    if (metrics->has_memory && before_kb != NULL) {
        bp_json_add_int(&json, "rss_change_kb", (int64_t)metrics->rss_kb - (int64_t)*before_kb);
    }
    bp_json_add_uint(&json, "ended_threads", metrics->vanished_count);
    bp_json_array_begin(&json, "threads");
    for (size_t i = 0; i < metrics->thread_count; i++) {
        const bp_thread_metrics *thread = &metrics->threads[i];
        bp_json_object_begin(&json, NULL);
        bp_json_add_uint(&json, "tid", thread->tid);
        bp_json_add_text(&json, "name", thread->name);
        add_percent(&json, thread->cpu_percent);
        bp_model_add_flag(&json, "born_in_window", thread->is_born);
        bp_json_object_end(&json);
    }
    bp_json_array_end(&json);
    bp_cli_print_json(stdout, &json);
}

/* The process as it is until it ends, or somebody ends this. */
static bugpack_status follow(bp_sampler *sampler, const sample_options *options, int end_fd,
                             bp_cli_exit *ret_exit, bugpack_error *error) {
    uint64_t before_kb = 0;
    bool has_before = false;
    bugpack_status status = bp_sampler_begin(sampler, error);
    for (uint32_t i = 0; status == BUGPACK_OK && (options->count == 0 || i < options->count); i++) {
        bp_metrics metrics;
        char time[BP_CLOCK_ISO_BYTES];
        /* From now: on a busy machine a late window makes the next one no shorter. */
        if (!bp_cli_wait_until(end_fd,
                               bp_clock_monotonic_ns() + options->window_ms * BP_NS_PER_MS)) {
            break;
        }
        status = bp_sampler_end(sampler, &metrics, error);
        if (status != BUGPACK_OK) {
            break;
        }
        bp_clock_format_iso(bp_clock_wall_ns(), time);
        status = bp_sampler_begin(sampler, error); /* the next window, before this one is printed */
        if (options->as_json) {
            print_json(&metrics, time, has_before ? &before_kb : NULL);
        } else {
            print_line(&metrics, time, has_before ? &before_kb : NULL, i);
        }
        has_before = metrics.has_memory;
        before_kb = metrics.rss_kb;
        bp_metrics_release(&metrics);
        *ret_exit = bp_cli_finish_output();
        if (*ret_exit != BP_CLI_COMPLETE) {
            break;
        }
    }
    return status;
}

static bp_cli_exit follow_sample(const sample_options *options) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_sampler *sampler = NULL;
    bp_cli_exit result = BP_CLI_COMPLETE;
    int end_fd;
    bugpack_status status = bp_cli_catch_end(&end_fd, &error);
    if (status == BUGPACK_OK) {
        status = bp_sampler_open(options->pid, false, &sampler, &error);
    }
    if (status != BUGPACK_OK) {
        return bp_cli_say_error(&error);
    }
    status = follow(sampler, options, end_fd, &result, &error);
    bp_sampler_close(sampler);
    if (status == BUGPACK_ERR_NO_PROCESS) {
        bp_cli_say("%s", error.message); /* that it ends is no failure of this */
    } else if (status != BUGPACK_OK) {
        result = bp_cli_say_error(&error);
    }
    return result;
}

static const sample_options defaults = {.window_ms = BUGPACK_SAMPLE_WINDOW_DEFAULT_MS};

static bp_cli_exit run(void *context, char **none) {
    const sample_options *options = context;
    (void)none;
    if (options->pid == 0) {
        return bp_cli_say_usage("option '--pid' is missing");
    }
    if (options->count > 0 && !options->follows) {
        return bp_cli_say_usage("--count needs --follow");
    }
    if (options->window_ms > 0 && options->window_ms < least_window_ms) {
        return bp_cli_say_usage("--window takes 0, or at least %u milliseconds", least_window_ms);
    }
    if (options->follows && options->window_ms == 0) {
        return bp_cli_say_usage("--follow needs a --window over 0");
    }
    return options->follows ? follow_sample(options) : print_sample(options);
}

const bp_cli_command bp_cli_sample_command = {
    "sample",
    "print what a process and its threads cost, as JSON",
    "Usage: bugpack sample --pid PID [--window TIME]\n"
    "       bugpack sample --pid PID --follow [--window TIME] [--count N] [--json]\n"
    "\n"
    "Print what a process and each of its threads cost over a window, as JSON: the\n"
    "runtime-metrics.json of a report.\n",
    option_rows,
    "Exit status: 0 printed, 1 failed or no metrics on this system, 2 usage,\n"
    "4 no such process.\n",
    0,
    .run = run,
    .options_bytes = sizeof(sample_options),
    .defaults = &defaults};
