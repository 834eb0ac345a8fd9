#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/follow.h"
#include "cli/output.h"
#include "probe/sampler.h"

/* The table's head is printed again after so many lines, about a screen. */
enum { head_lines = 40 };

static const bp_thread_metrics *find_busiest(const bp_metrics *metrics) {
    const bp_thread_metrics *busiest = NULL;
    for (size_t i = 0; i < metrics->thread_count; i++) {
        const bp_thread_metrics *thread = &metrics->threads[i];
        if (thread->cpu_percent > 0 &&
            (busiest == NULL || thread->cpu_percent > busiest->cpu_percent)) {
            busiest = thread;
        }
    }
    return busiest;
}

/* `before_kb` is the resident memory of the line before; NULL: this is the first one. */
static void print_line(const bp_metrics *metrics, const char *time, const uint64_t *before_kb,
                       uint32_t number) {
    char rss[BP_CLI_BYTES_BYTES] = "-", change[BP_CLI_CHANGE_BYTES] = "-", name[64 * 4 + 1];
    const bp_thread_metrics *busiest = find_busiest(metrics);
    if (number % head_lines == 0) {
        (void)printf("TIME (UTC)   CPU %%      RSS   CHANGE  THREADS  BUSIEST\n");
    }
    if (metrics->has_memory) {
        (void)bp_cli_format_bytes(metrics->rss_kb * 1024, rss);
        if (before_kb != NULL) {
            (void)bp_cli_format_change(*before_kb * 1024, metrics->rss_kb * 1024, change);
        }
    }
    (void)printf("%.8s  %8.1f %8s %8s %8zu", time + 11, metrics->cpu_percent, rss, change,
                 metrics->thread_count);
    if (busiest != NULL) {
        bp_cli_escape(busiest->name, name, sizeof name);
        (void)printf("  %s (%" PRIu64 ") %.1f %%", name, busiest->tid, busiest->cpu_percent);
    }
    (void)putchar('\n');
}

static void print_json(const bp_metrics *metrics, const char *time, const uint64_t *before_kb) {
    (void)printf("{\"time\":\"%s\",\"window_ms\":%" PRIu64 ",\"cpu_percent\":%.2f", time,
                 metrics->sample_window_ms, metrics->cpu_percent);
    if (metrics->has_memory) {
        (void)printf(",\"rss_kb\":%" PRIu64 ",\"vm_size_kb\":%" PRIu64, metrics->rss_kb,
                     metrics->vm_size_kb);
        if (before_kb != NULL) {
            (void)printf(",\"rss_change_kb\":%" PRId64,
                         (int64_t)metrics->rss_kb - (int64_t)*before_kb);
        }
    }
    (void)printf(",\"ended_threads\":%zu,\"threads\":[", metrics->vanished_count);
    for (size_t i = 0; i < metrics->thread_count; i++) {
        const bp_thread_metrics *thread = &metrics->threads[i];
        (void)printf("%s{\"tid\":%" PRIu64 ",\"name\":", i > 0 ? "," : "", thread->tid);
        bp_cli_print_json(thread->name);
        (void)printf(",\"cpu_percent\":%.2f%s}", thread->cpu_percent,
                     thread->is_born ? ",\"born_in_window\":true" : "");
    }
    (void)fputs("]}\n", stdout);
}

/* The process as it is until it ends, or somebody ends this. */
static bugpack_status follow(bp_sampler *sampler, const bp_cli_sample_follow *options, int end_fd,
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

bp_cli_exit bp_cli_follow_sample(const bp_cli_sample_follow *options) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_sampler *sampler = NULL;
    bp_cli_exit result = BP_CLI_COMPLETE;
    int end_fd;
    bugpack_status status = bp_cli_catch_end(&end_fd, &error);
    if (status == BUGPACK_OK) {
        status = bp_sampler_open(options->pid, &sampler, &error);
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
