#include "inspect/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "inspect/frames.h"
#include "inspect/summary_lines.h"
#include "inspect/summary_names.h"

#define CUT_TO(field, text) bp_utf8_copy((field), sizeof(field), (text))

const bp_summary_record *bp_summary_newest(const bp_summary *summary, size_t age) {
    if (age >= summary->record_count || age >= BP_SUMMARY_RECORD_MAX) {
        return NULL;
    }
    return &summary->records[(summary->record_count - 1 - age) % BP_SUMMARY_RECORD_MAX];
}

/* --- the documents ------------------------------------------------------------------------ */

static bp_summary_thread *find_thread(bp_summary *summary, const bp_json_tree *row) {
    uint64_t tid;
    for (size_t i = 0; bp_json_tree_uint(row, "tid", &tid) && i < summary->listed_count; i++) {
        if (summary->threads[i].tid == tid) {
            return &summary->threads[i];
        }
    }
    return NULL;
}

/* The percent of a thread that was born in the window is 0 in the entry, and the length of the
 * window is not known yet; older reports have nothing else. */
static bool is_busier(const bp_summary_thread *one, const bp_summary_thread *other) {
    bool has_both = one->cpu_ms >= 0 && other->cpu_ms >= 0;
    return has_both ? one->cpu_ms > other->cpu_ms : one->cpu_percent > other->cpu_percent;
}

/* Keeps the busiest threads, in order; of equal ones the first. */
static void add_thread(bp_summary *summary, const bp_json_tree *row) {
    bp_summary_thread thread = {.cpu_ms = -1, .age_ms = -1};
    size_t at = summary->listed_count;
    if (!bp_json_tree_uint(row, "tid", &thread.tid) ||
        !bp_json_tree_number(row, "cpu_percent", &thread.cpu_percent)) {
        return;
    }
    CUT_TO(thread.name, bp_json_tree_text(row, "name"));
    (void)bp_json_tree_number(row, "cpu_ms", &thread.cpu_ms);
    (void)bp_json_tree_number(row, "age_ms", &thread.age_ms);
    thread.is_born = bp_json_tree_is_true(row, "born_in_window");
    while (at > 0 && is_busier(&thread, &summary->threads[at - 1])) {
        at--;
    }
    if (at == BP_SUMMARY_THREAD_MAX) {
        return;
    }
    summary->listed_count += summary->listed_count < BP_SUMMARY_THREAD_MAX;
    memmove(&summary->threads[at + 1], &summary->threads[at],
            (summary->listed_count - at - 1) * sizeof thread);
    summary->threads[at] = thread;
}

/* A bp_json_tree_taker. */
static bugpack_status take_measured(void *context, const bp_json_tree *row, bugpack_error *error) {
    bp_summary *summary = context;
    summary->thread_count++;
    add_thread(summary, row);
    return bp_summary_add_name(&summary->names, row, error);
}

static void read_metrics(bp_summary *summary, const bp_json_tree *metrics) {
    const bp_json_tree *process = bp_json_tree_object(metrics, "process");
    summary->has_metrics = bp_json_tree_number(process, "cpu_percent", &summary->cpu_percent);
    (void)bp_json_tree_number(metrics, "sample_window_ms", &summary->window_ms);
    summary->has_rss = bp_json_tree_uint(process, "rss_kb", &summary->rss_kb);
    summary->has_uptime = bp_json_tree_number(process, "uptime_secs", &summary->uptime_secs);
    for (size_t i = 0; i < summary->listed_count && summary->window_ms > 0; i++) {
        bp_summary_thread *thread = &summary->threads[i];
        if (thread->is_born && thread->cpu_ms > 0) {
            thread->cpu_percent = thread->cpu_ms / summary->window_ms * 100;
        }
    }
    bp_summary_sort_names(&summary->names, summary->window_ms);
    if (metrics == NULL) { /* what a part of it says is of no use */
        summary->thread_count = summary->listed_count = 0;
        bp_summary_release_names(&summary->names);
    }
}

static void read_process(bp_summary *summary, const bp_json_tree *process) {
    CUT_TO(summary->process_name, bp_json_tree_text(process, "name"));
    (void)bp_json_tree_uint(process, "pid", &summary->pid);
    summary->has_open_files = bp_json_tree_uint(process, "open_files", &summary->open_files);
    for (const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(process, "limits"));
         row != NULL; row = bp_json_tree_next(row)) {
        const char *name = bp_json_tree_text(row, "name");
        if (name != NULL && strcmp(name, "Max open files") == 0) {
            (void)bp_json_tree_uint(row, "soft", &summary->open_files_limit);
        }
    }
}

/* A bp_json_tree_taker. */
static bugpack_status take_deadlock(void *context, const bp_json_tree *row, bugpack_error *error) {
    bp_summary *summary = context;
    (void)error;
    bp_summary_find(summary, BP_SEVERITY_CRITICAL, "threads.json", "deadlock: %s",
                    bp_json_tree_text_or(row, "description", "of threads that are not named"));
    summary->has_deadlock = true;
    bp_summary_add_deadlock(&summary->waiting, row);
    return BUGPACK_OK;
}

/* A bp_json_tree_taker. */
static bugpack_status take_waiting(void *context, const bp_json_tree *row, bugpack_error *error) {
    bp_summary *summary = context;
    bp_summary_thread *thread = find_thread(summary, row);
    (void)error;
    bp_summary_see_thread(summary, row);
    if (thread != NULL) {
        CUT_TO(thread->state, bp_json_tree_text(row, "state"));
        CUT_TO(thread->syscall, bp_json_tree_text(bp_json_tree_object(row, "syscall"), "name"));
        bp_summary_read_wait(thread, bp_json_tree_object(row, "waits_for"));
    }
    return BUGPACK_OK;
}

/* Whether the manifest says nothing else of threads.json: of one without a manifest, too. */
static bool is_whole(const bp_summary *summary) {
    bp_report_line line;
    char path[128];
    (void)snprintf(path, sizeof path, "%sthreads.json", summary->folder);
    return !bp_report_file_line(summary->report, path, &line) || strcmp(line.status, "ok") == 0;
}

static void read_threads(bp_summary *summary, const bp_json_tree *threads) {
    /* Those of descendants are not looked at. */
    summary->has_no_deadlock = threads != NULL && !summary->has_deadlock && is_whole(summary) &&
                               summary->waiting.clear_count > 0 &&
                               summary->waiting.unclear_count == 0 &&
                               bp_json_tree_array(threads, "descendants") == NULL;
    if (threads != NULL && summary->stopped_count > 0 &&
        summary->stopped_count == summary->known_count) {
        bp_summary_find(summary, BP_SEVERITY_CRITICAL, "threads.json",
                        "the process is stopped by a signal (SIGSTOP or the like), with %" PRIu64
                        " thread%s",
                        summary->known_count, summary->known_count == 1 ? "" : "s");
    }
}

/* A bp_json_tree_taker. */
static bugpack_status take_stack(void *context, const bp_json_tree *row, bugpack_error *error) {
    const bp_summary *summary = context;
    bp_summary_thread *thread = find_thread(context, row);
    (void)error;
    if (thread != NULL) {
        bp_frames_print(row, &summary->finder, thread->frames);
    }
    return BUGPACK_OK;
}

static void read_heap(bp_summary *summary, const bp_json_tree *heap) {
    static const char *const keys[] = {"allocated_bytes", "resident_bytes"};
    CUT_TO(summary->allocator, bp_json_tree_text(heap, "allocator"));
    for (size_t i = 0; i < 2; i++) {
        summary->has_heap[i] = bp_json_tree_uint(heap, keys[i], &summary->heap_bytes[i]);
    }
}

static void read_disconnect(bp_summary *summary, const bp_json_tree *cause) {
    char channel[64];
    CUT_TO(channel, bp_json_tree_text_or(cause, "channel", "?"));
    bp_summary_find(summary, BP_SEVERITY_CRITICAL, "disconnect-cause.json",
                    "the channel \"%s\" was lost: %s", channel,
                    bp_json_tree_text_or(cause, "error", "no error was given"));
}

static void read_crash(bp_summary *summary, const bp_json_tree *crash) {
    char text[224], frames[BP_FRAME_LIST_BYTES];
    CUT_TO(text, bp_json_tree_text_or(crash, "summary", "of an unknown signal"));
    bp_frames_print(bp_json_tree_object(crash, "backtrace"), &summary->finder, frames);
    bp_summary_find(summary, BP_SEVERITY_CRITICAL, "crash.json", "crash: %s%s%s", text,
                    frames[0] != '\0' ? ", in " : "", frames);
}

/* The busiest threads are known before what they did, and threads in deadlocks before their names:
 * that is also the order of the lists in the documents. */
static const struct {
    const char *entry;
    bp_json_tree_list lists[3];
    /* Reads the rest. NULL: a document with lists is not there, or cannot be read to its end. */
    void (*read)(bp_summary *summary, const bp_json_tree *document);
} documents[] = {{"runtime-metrics.json", {{"threads", take_measured, false}}, read_metrics},
                 {"process.json", {{NULL, NULL, false}}, read_process},
                 {"threads.json",
                  {{"deadlocks", take_deadlock, false}, {"threads", take_waiting, false}},
                  read_threads},
                 {"heap-state.json", {{NULL, NULL, false}}, read_heap},
                 {"disconnect-cause.json", {{NULL, NULL, false}}, read_disconnect},
                 {"crash.json", {{NULL, NULL, false}}, read_crash},
                 {"system.json", {{NULL, NULL, false}}, bp_summary_read_system}};

/* --- reading ------------------------------------------------------------------------------ */

/* Whether an entry is there and within what may still be read, which it then uses up. */
static bool may_read(bp_summary *summary, const char *entry, const char *path) {
    uint64_t byte_count;
    if (!bp_report_file_has(summary->report, path, &byte_count)) {
        return false;
    }
    if (byte_count > summary->left_bytes) {
        bp_summary_find(summary, BP_SEVERITY_WARNING, entry,
                        "not read: its %" PRIu64 " bytes are over the limit", byte_count);
        return false;
    }
    summary->left_bytes -= byte_count;
    return true;
}

/* A failure costs the entry; only a lack of memory costs the summary. */
static bugpack_status keep_failure(bp_summary *summary, const char *entry, bugpack_status status,
                                   const bugpack_error *failure, bugpack_error *error) {
    if (status == BUGPACK_ERR_NO_MEMORY) {
        return bp_fail_memory(error, "read a report");
    }
    if (status != BUGPACK_OK) {
        bp_summary_find(summary, BP_SEVERITY_WARNING, entry, "cannot be read: %s",
                        failure->message);
    }
    return BUGPACK_OK;
}

/* As bp_report_file_each, but within what may still be read; OK for an entry that is not there or
 * too large, which has no rest. */
static bugpack_status read_entry(bp_summary *summary, const char *entry,
                                 const bp_json_tree_list *lists, bp_json_tree **ret_rest,
                                 bugpack_error *error) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s%s", summary->folder, entry);
    return may_read(summary, entry, path)
               ? bp_report_file_each(summary->report, path, lists, summary, ret_rest, error)
               : BUGPACK_OK;
}

static bugpack_status read_document(bp_summary *summary, size_t index, bugpack_error *error) {
    const char *entry = documents[index].entry;
    const bp_json_tree_list *lists = documents[index].lists;
    bugpack_error failure = BUGPACK_ERROR_INIT;
    bp_json_tree *rest = NULL;
    bugpack_status status = read_entry(summary, entry, lists, &rest, &failure);
    if (rest != NULL || lists[0].key != NULL) {
        documents[index].read(summary, rest);
    }
    bp_json_tree_free(rest);
    return keep_failure(summary, entry, status, &failure, error);
}

static bugpack_status read_stacks(bp_summary *summary, bugpack_error *error) {
    static const char entry[] = "stacks.json";
    static const bp_json_tree_list lists[] = {{"threads", take_stack, false}, {NULL, NULL, false}};
    bugpack_error failure = BUGPACK_ERROR_INIT;
    bugpack_status status = read_entry(summary, entry, lists, NULL, &failure);
    return keep_failure(summary, entry, status, &failure, error);
}

static bugpack_status read_machine(bp_summary *summary, bugpack_error *error) {
    static const char entry[] = "host-threads.json";
    bugpack_error failure = BUGPACK_ERROR_INIT;
    bp_machine *machine = &summary->machine;
    (void)bp_json_tree_uint(bp_json_tree_object(summary->metadata, "collector"), "pid",
                            &machine->collector_pid);
    if (!may_read(summary, entry, entry)) {
        return BUGPACK_OK;
    }
    bugpack_status status =
        bp_report_file_each(summary->report, entry, bp_machine_lists, machine, NULL, &failure);
    if (status == BUGPACK_OK && machine->thread_count == 0) {
        status = bp_fail(&failure, BUGPACK_ERR_CORRUPT, "there are no threads in it");
    }
    bp_machine_end(machine, status == BUGPACK_OK);
    return keep_failure(summary, entry, status, &failure, error);
}

static bugpack_status read_lines(bp_summary *summary, bugpack_error *error) {
    bp_summary_lines lines[BP_SUMMARY_LINES];
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < BP_SUMMARY_LINES; i++) {
        const char *entry = bp_summary_line_entries[i];
        lines[i] = (bp_summary_lines){.is_wanted = may_read(summary, entry, entry),
                                      .failure = BUGPACK_ERROR_INIT};
    }
    bp_summary_read_lines(summary, lines);
    for (size_t i = 0; i < BP_SUMMARY_LINES && status == BUGPACK_OK; i++) {
        status = keep_failure(summary, bp_summary_line_entries[i], lines[i].status,
                              &lines[i].failure, error);
    }
    return status;
}

static void find_log_errors(bp_summary *summary, const char *entry, const bp_buffer *tail) {
    bp_log_errors found = bp_log_errors_count(tail, summary->triggered_wall_ns);
    if (found.count > 0) {
        bp_summary_find(summary, BP_SEVERITY_WARNING, entry,
                        "%s%zu error%s in the %d s before the trigger%s, the last: %.*s",
                        found.is_cut ? "at least " : "", found.count, found.count == 1 ? "" : "s",
                        (int)(BP_SUMMARY_RECENT_NS / BP_NS_PER_SEC), found.condition,
                        (int)bp_utf8_cut(found.last, found.last_bytes, 400), found.last);
    }
}

/* The ends of the log files, where there is no ring: the first is kept, in all errors are found. */
static bugpack_status read_log_files(bp_summary *summary, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < bp_report_file_count(summary->report); i++) {
        const char *name = bp_report_file_name(summary->report, i);
        bugpack_error failure = BUGPACK_ERROR_INIT;
        bp_buffer tail;
        if (strncmp(name, "logs/", 5) != 0 || !may_read(summary, name, name)) {
            continue;
        }
        bp_buffer_init(&tail, BP_SUMMARY_TAIL_BYTES);
        status = bp_report_file_stream(summary->report, name, UINT64_MAX, bp_summary_keep_tail,
                                       &tail, &failure);
        status = keep_failure(summary, name, status, &failure, error);
        find_log_errors(summary, name, &tail);
        if (summary->log_name[0] == '\0') {
            CUT_TO(summary->log_name, name);
            summary->log_tail = tail;
        } else {
            bp_buffer_release(&tail);
        }
    }
    return status;
}

bugpack_status bp_summary_read_documents(bp_report_file *report, const char *path,
                                         const char *folder, const bp_frame_finder *finder,
                                         uint64_t max_bytes, bp_summary *ret_summary,
                                         bugpack_error *error) {
    static const bp_frame_finder none = {NULL, NULL, NULL};
    bp_summary *summary = ret_summary;
    *summary = (bp_summary){.path = path,
                            .report = report,
                            .folder = folder,
                            .finder = finder != NULL ? *finder : none,
                            .metadata = bp_report_file_metadata(report),
                            .manifest = bp_report_file_manifest(report),
                            .left_bytes = max_bytes};
    bp_buffer_init(&summary->log_tail, BP_SUMMARY_TAIL_BYTES);
    if (summary->process_name[0] == '\0' && folder[0] == '\0') {
        CUT_TO(summary->process_name, bp_json_tree_text(summary->metadata, "process_name"));
    }
    const char *triggered = bp_json_tree_text(summary->metadata, "triggered_at");
    if (triggered != NULL) {
        (void)bp_clock_parse(triggered, &summary->triggered_wall_ns);
    }
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof documents / sizeof documents[0]; i++) {
        status = read_document(summary, i, error);
    }
    if (status != BUGPACK_OK) {
        bp_summary_release(summary);
    }
    return status;
}

bugpack_status bp_summary_read(bp_report_file *report, const char *path,
                               const bp_frame_finder *finder, uint64_t max_bytes,
                               bp_summary *ret_summary, bugpack_error *error) {
    bp_summary *summary = ret_summary;
    bugpack_status status =
        bp_summary_read_documents(report, path, "", finder, max_bytes, summary, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = read_stacks(summary, error);
    status = status == BUGPACK_OK ? read_machine(summary, error) : status;
    status = status == BUGPACK_OK ? read_lines(summary, error) : status;
    if (status == BUGPACK_OK && !bp_report_file_has(report, "logs.jsonl", NULL)) {
        status = read_log_files(summary, error);
    }
    if (status != BUGPACK_OK) {
        bp_summary_release(summary);
    }
    return status;
}

void bp_summary_release(bp_summary *summary) {
    free(summary->samples);
    bp_summary_release_names(&summary->names);
    bp_buffer_release(&summary->log_tail);
    summary->samples = NULL;
}
