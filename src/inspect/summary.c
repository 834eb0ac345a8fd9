#include "inspect/summary.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/error.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "inspect/frames.h"
#include "inspect/json_lines.h"
#include "inspect/line_time.h"

/*
 * What of the entries with many lines goes into the summary.
 */

/* Errors of the last seconds before the trigger in the end of a text log, in which `last` is. */
typedef struct log_errors {
    size_t count;
    bool is_cut;
    const char *condition; /* " if ...", or "" */
    const char *last;      /* without its time */
    size_t last_bytes;
} log_errors;

#define CUT_TO(field, text) bp_utf8_copy((field), sizeof(field), (text))

/* What documents, and the rows of a list, may take of memory until they are judged. */
static const size_t documents_max_bytes = (size_t)16 << 20, rows_max_bytes = (size_t)6 << 20;
static const uint64_t thread_min_bytes = (uint64_t)1 << 20;

double bp_summary_sample_cpu(const bp_sample *sample) {
    return sample->cpu_percent_100 / 100.0;
}

double bp_summary_sample_memory(const bp_sample *sample) {
    return sample->has_rss ? (double)sample->rss_kb / 1024 : -1;
}

bool bp_summary_channel_is_partial(const bp_summary_channel *channel) {
    return channel->recorded_count > channel->messages[0] + channel->messages[1];
}

static bugpack_status add_sample(void *context, const char *line, size_t line_bytes) {
    bp_summary *summary = context;
    bp_json_field fields[] = {{.key = "\"time\""},
                              {.key = "\"cpu_percent\""},
                              {.key = "\"rss_kb\""},
                              {.key = "\"bugpack_kb\""}};
    bp_json_line_find(line, line_bytes, fields, 4);
    bp_sample sample = {.wall_ns = bp_json_line_time(&fields[0].value)};
    uint64_t percent;
    if (sample.wall_ns == 0 || summary->sample_count == BP_SUMMARY_SAMPLE_MAX ||
        !bp_json_token_fixed(&fields[1].value, 2, &percent)) {
        return BUGPACK_OK;
    }
    sample.cpu_percent_100 = percent < UINT32_MAX ? (uint32_t)percent : UINT32_MAX;
    sample.has_rss = bp_json_token_fixed(&fields[2].value, 0, &sample.rss_kb);
    if (bp_json_token_fixed(&fields[3].value, 0, &sample.own_kb) && sample.own_kb > sample.rss_kb) {
        sample.own_kb = sample.rss_kb;
    }
    if (!bp_array_reserve(&summary->samples, summary->sample_count, &summary->sample_capacity)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    summary->samples[summary->sample_count++] = sample;
    return BUGPACK_OK;
}

static int read_level(const bp_json_token *token) {
    for (int level = BUGPACK_LEVEL_FATAL; level >= BUGPACK_LEVEL_TRACE; level--) {
        const char *name = bp_level_name((uint8_t)level);
        if (token->byte_count == strlen(name) + 2 &&
            memcmp(token->text + 1, name, token->byte_count - 2) == 0) {
            return level;
        }
    }
    return 0;
}

static bugpack_status add_record(void *context, const char *line, size_t line_bytes) {
    bp_summary *summary = context;
    bp_json_field fields[] = {{.key = "\"time\""}, {.key = "\"level\""}};
    bp_json_line_find(line, line_bytes, fields, 2);
    int level = read_level(&fields[1].value);
    summary->level_counts[level]++;
    if (level < BUGPACK_LEVEL_WARN && !summary->wants_output) {
        return BUGPACK_OK;
    }
    bp_json_field texts[] = {{.key = "\"channel\""}, {.key = "\"message\""}};
    bp_json_line_find(line, line_bytes, texts, 2);
    if (summary->wants_output) {
        char channel[16], message[BP_EVIDENCE_LINE_BYTES];
        bp_json_line_text(&texts[0].value, channel, sizeof channel);
        bp_json_line_text(&texts[1].value, message, sizeof message);
        bugpack_status status = bp_evidence_output(&summary->evidence, channel, message);
        if (status != BUGPACK_OK || level < BUGPACK_LEVEL_WARN) {
            return status;
        }
    }
    bp_summary_record *record = &summary->records[summary->record_count++ % BP_SUMMARY_RECORD_MAX];
    record->wall_ns = bp_json_line_time(&fields[0].value);
    record->level = level;
    bp_json_line_text(&texts[0].value, record->channel, sizeof record->channel);
    bp_json_line_text(&texts[1].value, record->message, sizeof record->message);
    uint64_t trigger_ns = summary->triggered_wall_ns;
    if (level >= BUGPACK_LEVEL_ERROR && trigger_ns != 0 && record->wall_ns <= trigger_ns &&
        trigger_ns - record->wall_ns <= BP_EVIDENCE_RECENT_NS) {
        summary->evidence.recent_error_count++;
        CUT_TO(summary->evidence.recent_error, record->message);
    }
    return BUGPACK_OK;
}

static bp_summary_channel *find_channel(bp_summary *summary, const char *name) {
    for (size_t i = 0; i < summary->channel_count; i++) {
        if (strcmp(summary->channels[i].name, name) == 0) {
            return &summary->channels[i];
        }
    }
    if (summary->channel_count == BP_SUMMARY_CHANNEL_MAX) {
        return NULL;
    }
    bp_summary_channel *channel = &summary->channels[summary->channel_count++];
    (void)memcpy(channel->name, name, strlen(name) + 1);
    return channel;
}

static bugpack_status add_message(void *context, const char *line, size_t line_bytes) {
    bp_summary *summary = context;
    bp_json_field fields[] = {{.key = "\"time\""},
                              {.key = "\"channel\""},
                              {.key = "\"direction\""},
                              {.key = "\"bytes\""},
                              {.key = "\"seq\""}};
    char name[sizeof summary->channels[0].name];
    uint64_t byte_count = 0, number = 0;
    bp_json_line_find(line, line_bytes, fields, 5);
    bp_json_line_text(&fields[1].value, name, sizeof name);
    bp_summary_channel *channel = find_channel(summary, name);
    if (channel == NULL) {
        summary->other_message_count++;
        return BUGPACK_OK;
    }
    size_t way = bp_json_token_is(&fields[2].value, "\"received\"");
    (void)bp_json_token_fixed(&fields[3].value, 0, &byte_count);
    (void)bp_json_token_fixed(&fields[4].value, 0, &number);
    channel->recorded_count = number > channel->recorded_count ? number : channel->recorded_count;
    channel->messages[way]++;
    channel->bytes[way] += byte_count;
    uint64_t wall_ns = bp_json_line_time(&fields[0].value); /* the clock may have been set back */
    bool is_first =
        wall_ns != 0 && (channel->first_wall_ns == 0 || wall_ns < channel->first_wall_ns);
    channel->first_wall_ns = is_first ? wall_ns : channel->first_wall_ns;
    channel->last_wall_ns = wall_ns > channel->last_wall_ns ? wall_ns : channel->last_wall_ns;
    return BUGPACK_OK;
}

/* Each fills parts of the summary that the others do not touch. */
static const struct line_entry {
    const char *name;
    bp_json_line_taker *take;
} line_entries[] = {{"metrics-history.jsonl", add_sample},
                    {"logs.jsonl", add_record},
                    {"traffic-index.jsonl", add_message}};
enum { line_entry_count = sizeof line_entries / sizeof line_entries[0] };

/* The reading of one of them. */
typedef struct line_job {
    bp_summary *summary;
    const struct line_entry *entry;
    bool is_wanted, has_thread;
    pthread_t thread;
    bugpack_status status;
    bugpack_error failure;
} line_job;

static void *run_job(void *context) {
    line_job *job = context;
    bp_line_stream stream;
    bp_line_stream_init(&stream, job->entry->take, job->summary);
    job->status = bp_report_file_stream(job->summary->report, job->entry->name, UINT64_MAX,
                                        bp_line_stream_write, &stream, &job->failure);
    bp_line_stream_release(&stream);
    return NULL;
}

/* A bp_sink for a bp_buffer: keeps the last BP_SUMMARY_TAIL_BYTES. */
static bugpack_status summary_keep_tail(void *context, const void *bytes, size_t byte_count) {
    const size_t tail_bytes = BP_SUMMARY_TAIL_BYTES;
    bp_buffer *tail = context;
    const char *next = bytes;
    if (byte_count > tail_bytes) {
        next += byte_count - tail_bytes;
        byte_count = tail_bytes;
    }
    if (tail->size + byte_count > tail_bytes) {
        size_t kept = tail_bytes - byte_count;
        memmove(tail->data, tail->data + tail->size - kept, kept);
        tail->size = kept;
    }
    return bp_buffer_append(tail, next, byte_count);
}

static log_errors log_errors_count(const bp_buffer *tail, uint64_t trigger_ns) {
    const bp_line_clock clock = {.until_ns = trigger_ns};
    const char *at = bp_buffer_text(tail), *end = at + tail->size, *next;
    log_errors errors = {.is_cut = tail->size == BP_SUMMARY_TAIL_BYTES, .condition = ""};
    for (; at < end; at = next) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t used = 0;
        bp_line_time time = {0};
        next = newline != NULL ? newline + 1 : end;
        while (at < next && *at == '\0') { /* of a power cut; the line behind them is whole */
            at++;
        }
        size_t length = (size_t)((newline != NULL ? newline : end) - at);
        bool is_recent = bp_line_time_read(at, length, &clock, &time, &used) &&
                         time.wall_ns <= trigger_ns &&
                         trigger_ns - time.wall_ns <= BP_EVIDENCE_RECENT_NS;
        if (is_recent && bp_line_level(at + used, length - used) >= BUGPACK_LEVEL_ERROR) {
            errors.count++;
            errors.condition = time.lacks_zone ? " if its times are in UTC" : errors.condition;
            errors.last = at + used;
            errors.last_bytes = length - used;
        }
    }
    return errors;
}

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
    bp_summary_thread thread = {.cpu_ms = -1};
    size_t at = summary->listed_count;
    if (!bp_json_tree_uint(row, "tid", &thread.tid) ||
        !bp_json_tree_number(row, "cpu_percent", &thread.cpu_percent)) {
        return;
    }
    CUT_TO(thread.name, bp_json_tree_text(row, "name"));
    (void)bp_json_tree_number(row, "cpu_ms", &thread.cpu_ms);
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
static bugpack_status take_measured(void *context, bp_json_tree *row, bugpack_error *error) {
    bp_summary *summary = context;
    summary->use.thread_count++;
    add_thread(summary, row);
    bugpack_status status = bp_summary_add_name(&summary->names, row, error);
    return status == BUGPACK_OK ? bp_evidence_measured(&summary->evidence, row, error) : status;
}

static void read_metrics(bp_summary *summary, const bp_json_tree *metrics) {
    const bp_json_tree *process = bp_json_tree_object(metrics, "process");
    summary->use.has_metrics =
        bp_json_tree_number(process, "cpu_percent", &summary->use.cpu_percent);
    (void)bp_json_tree_number(metrics, "sample_window_ms", &summary->window_ms);
    summary->use.has_rss = bp_json_tree_uint(process, "rss_kb", &summary->use.rss_kb);
    summary->use.has_uptime =
        bp_json_tree_number(process, "uptime_secs", &summary->use.uptime_secs);
    for (size_t i = 0; i < summary->listed_count && summary->window_ms > 0; i++) {
        bp_summary_thread *thread = &summary->threads[i];
        if (thread->is_born && thread->cpu_ms > 0) {
            thread->cpu_percent = thread->cpu_ms / summary->window_ms * 100;
        }
    }
    bp_summary_sort_names(&summary->names, summary->window_ms);
    summary->evidence.window_ms = summary->window_ms;
    bp_evidence_end_measured(&summary->evidence);
    if (metrics == NULL) { /* what a part of it says is of no use */
        summary->evidence.busiest_count = 0;
        summary->use.thread_count = summary->listed_count = 0;
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
static bugpack_status take_deadlock(void *context, bp_json_tree *row, bugpack_error *error) {
    bp_summary *summary = context;
    return bp_rows_add(&summary->evidence.deadlocks, row, rows_max_bytes, error);
}

/* A bp_json_tree_taker. */
static bugpack_status take_waiting(void *context, bp_json_tree *row, bugpack_error *error) {
    bp_summary *summary = context;
    return bp_evidence_listed(&summary->evidence, row, error);
}

/* A bp_json_tree_taker. */
static bugpack_status take_file(void *context, bp_json_tree *row, bugpack_error *error) {
    bp_summary *summary = context;
    return bp_rows_add(&summary->evidence.files, row, rows_max_bytes, error);
}

static void read_threads(bp_summary *summary, const bp_json_tree *threads) {
    (void)threads;
    bp_evidence_end_listed(&summary->evidence);
    for (size_t i = 0; i < summary->listed_count; i++) {
        bp_summary_thread *busy = &summary->threads[i];
        const bp_thread *thread = bp_evidence_thread(&summary->evidence, busy->tid);
        if (thread != NULL && thread->is_listed) {
            CUT_TO(busy->state, thread->state);
            CUT_TO(busy->syscall, thread->syscall);
            busy->waits_for_thread = thread->waits_for_tid != 0;
            bp_thread_print_wait(thread, busy->waits_for, sizeof busy->waits_for);
        }
    }
}

/* A bp_json_tree_taker. */
static bugpack_status take_stack(void *context, bp_json_tree *row, bugpack_error *error) {
    bp_summary *summary = context;
    bp_summary_thread *thread = find_thread(context, row);
    (void)error;
    if (thread != NULL) {
        bp_frames_print(row, &summary->finder, thread->frames);
    }
    bp_evidence_stack(&summary->evidence, row);
    return BUGPACK_OK;
}

static void read_heap(bp_summary *summary, const bp_json_tree *heap) {
    static const char *const keys[] = {"allocated_bytes", "resident_bytes"};
    CUT_TO(summary->allocator, bp_json_tree_text(heap, "allocator"));
    for (size_t i = 0; i < 2; i++) {
        summary->has_heap[i] = bp_json_tree_uint(heap, keys[i], &summary->heap_bytes[i]);
    }
}

static void read_system(bp_summary *summary, const bp_json_tree *system) {
    bp_machine_read_system(&summary->machine, system);
}

/* The busiest threads are known before what they did, and threads in deadlocks before their names:
 * that is also the order of the lists in the documents. */
static const struct {
    const char *entry;
    size_t place; /* of the document in bp_evidence */
    bp_json_tree_list lists[3];
    /* Reads the rest, if anything there is of use. NULL: a document with lists is not there, or
     * cannot be read to its end. */
    void (*read)(bp_summary *summary, const bp_json_tree *document);
} documents[] = {
    {"runtime-metrics.json",
     offsetof(bp_evidence, metrics),
     {{"threads", take_measured, false}},
     read_metrics},
    {"process.json", offsetof(bp_evidence, process), {{NULL, NULL, false}}, read_process},
    {"threads.json",
     offsetof(bp_evidence, waits),
     {{"deadlocks", take_deadlock, false}, {"threads", take_waiting, false}},
     read_threads},
    {"files.json", offsetof(bp_evidence, files_rest), {{"files", take_file, false}}, NULL},
    {"heap-state.json", offsetof(bp_evidence, heap), {{NULL, NULL, false}}, read_heap},
    {"disconnect-cause.json", offsetof(bp_evidence, disconnect), {{NULL, NULL, false}}, NULL},
    {"crash.json", offsetof(bp_evidence, crash), {{NULL, NULL, false}}, NULL},
    {"system.json", offsetof(bp_evidence, system), {{NULL, NULL, false}}, read_system}};

/* --- reading ------------------------------------------------------------------------------ */

/* Whether an entry is there and within what may still be read, which it then uses up. */
static bool may_read(bp_summary *summary, const char *entry, const char *path) {
    uint64_t byte_count;
    if (!bp_report_file_has(summary->report, path, &byte_count)) {
        return false;
    }
    if (byte_count > summary->left_bytes) {
        bp_find_as(&summary->evidence, BP_DIAGNOSIS_NOT_READ, entry,
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
        bp_find_as(&summary->evidence, BP_DIAGNOSIS_NOT_READ, entry, "cannot be read: %s",
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
    if (documents[index].read != NULL && (rest != NULL || lists[0].key != NULL)) {
        documents[index].read(summary, rest);
    }
    if (rest != NULL) {
        bp_evidence_keep(
            &summary->evidence,
            (bp_json_tree **)(void *)((char *)&summary->evidence + documents[index].place), entry,
            rest);
    }
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

/* Long ones are read at once, each by a thread of its own. */
static bugpack_status read_lines(bp_summary *summary, bugpack_error *error) {
    line_job jobs[line_entry_count];
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < line_entry_count; i++) {
        const char *name = line_entries[i].name;
        uint64_t byte_count = 0;
        jobs[i] = (line_job){.summary = summary,
                             .entry = &line_entries[i],
                             .is_wanted = may_read(summary, name, name),
                             .failure = BUGPACK_ERROR_INIT};
        (void)bp_report_file_has(summary->report, name, &byte_count);
        jobs[i].has_thread = jobs[i].is_wanted && byte_count >= thread_min_bytes &&
                             pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]) == 0;
        if (jobs[i].is_wanted && !jobs[i].has_thread) {
            (void)run_job(&jobs[i]);
        }
    }
    for (size_t i = 0; i < line_entry_count; i++) {
        if (jobs[i].has_thread) {
            (void)pthread_join(jobs[i].thread, NULL);
        }
        if (status == BUGPACK_OK) {
            status =
                keep_failure(summary, jobs[i].entry->name, jobs[i].status, &jobs[i].failure, error);
        }
    }
    return status;
}

static void find_log_errors(bp_summary *summary, const char *entry, const bp_buffer *tail) {
    log_errors found = log_errors_count(tail, summary->triggered_wall_ns);
    if (found.count > 0) {
        bp_find_as(&summary->evidence, BP_DIAGNOSIS_LOG_ERRORS, entry,
                   "%s%zu error%s in the %d s before the trigger%s, the last: %.*s",
                   found.is_cut ? "at least " : "", found.count, found.count == 1 ? "" : "s",
                   (int)(BP_EVIDENCE_RECENT_NS / BP_NS_PER_SEC), found.condition,
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
        status = bp_report_file_stream(summary->report, name, UINT64_MAX, summary_keep_tail, &tail,
                                       &failure);
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

/* What takes most of the time. */
static bugpack_status read_long_entries(bp_summary *summary, bugpack_error *error) {
    bugpack_status status = read_stacks(summary, error);
    if (status == BUGPACK_OK) {
        status = read_machine(summary, error);
    }
    if (status == BUGPACK_OK) {
        status = read_lines(summary, error);
    }
    if (status == BUGPACK_OK && !bp_report_file_has(summary->report, "logs.jsonl", NULL)) {
        status = read_log_files(summary, error);
    }
    return status;
}

static void judge(bp_summary *summary) {
    bp_evidence *evidence = &summary->evidence;
    for (size_t i = 0; i < summary->names.count; i++) {
        const bp_summary_name *name = &summary->names.rows[i];
        if (name->count > evidence->common_count) {
            evidence->common_count = name->count;
            evidence->common_name = name->name;
        }
    }
    evidence->triggered_wall_ns = summary->triggered_wall_ns;
    evidence->samples = summary->samples;
    evidence->sample_count = summary->sample_count;
    bp_diagnose(evidence);
}

bugpack_status bp_summary_read(bp_summary *summary, bool is_brief, bugpack_error *error) {
    summary->metadata = bp_report_file_metadata(summary->report);
    summary->manifest = bp_report_file_manifest(summary->report);
    bp_buffer_init(&summary->log_tail, BP_SUMMARY_TAIL_BYTES);
    summary->evidence = (bp_evidence){.findings = summary->findings,
                                      .report = summary->report,
                                      .folder = summary->folder,
                                      .finder = &summary->finder,
                                      .metadata = summary->metadata,
                                      .manifest = summary->manifest,
                                      .left_bytes = documents_max_bytes};
    summary->wants_output = bp_evidence_wants_output(&summary->evidence);
    if (summary->folder[0] == '\0') {
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
    if (status == BUGPACK_OK && !is_brief) {
        status = read_long_entries(summary, error);
    }
    bp_summary_end_threads(summary);
    if (status == BUGPACK_OK) {
        judge(summary);
    }
    return status;
}

bool bp_summary_has_died_unseen(const bp_summary *summary) {
    const char *end = bp_json_tree_text_or(summary->metadata, "session_end", "");
    return strcmp(end, "died") == 0 && bp_json_tree_object(summary->metadata, "exit") == NULL &&
           !bp_report_file_has(summary->report, "crash.json", NULL);
}

void bp_summary_kind(const bp_summary *summary, char out[BP_SUMMARY_KIND_BYTES]) {
    const bp_json_tree *end = bp_json_tree_object(summary->metadata, "exit");
    uint64_t status;
    bp_utf8_copy(out, BP_SUMMARY_KIND_BYTES,
                 bp_json_tree_text_or(summary->metadata, "report_type", "report"));
    if (bp_json_tree_uint(end, "status", &status)) {
        (void)snprintf(out, BP_SUMMARY_KIND_BYTES, "exited with status %" PRIu64, status);
    }
}

void bp_summary_release(bp_summary *summary) {
    free(summary->samples);
    bp_summary_release_names(&summary->names);
    bp_evidence_release(&summary->evidence);
    bp_buffer_release(&summary->log_tail);
    summary->samples = NULL;
}

/* --- with the further processes ----------------------------------------------------------- */

static void take_over(bp_summary *summary, const bp_summary *of_process, bp_summary_process *row) {
    row->pid = of_process->pid;
    memcpy(row->name, of_process->process_name, sizeof row->name);
    row->use = of_process->use;
    bp_summary_join_deadlocked(summary, of_process);
    summary->left_bytes = of_process->left_bytes;
}

/*
 * Reads the documents of the further processes of a report, and takes what is found in them over
 * into its summary.
 */
static bugpack_status read_processes(bp_summary *summary, bugpack_error *error) {
    const char *last = "";
    bp_summary *of_process = NULL;
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < bp_report_file_count(summary->report); i++) {
        const char *entry = bp_report_file_name(summary->report, i);
        size_t length = bp_report_folder_bytes(entry);
        if (length == 0 || strncmp(entry, last, length) == 0) {
            continue; /* the entries of a process follow each other */
        }
        last = entry;
        bp_summary_process *row = &summary->processes[summary->process_count];
        if (length >= sizeof row->folder || summary->process_count == BP_SUMMARY_PROCESS_MAX) {
            summary->other_process_count++;
            continue;
        }
        *row = (bp_summary_process){.pid = 0};
        memcpy(row->folder, entry, length);
        of_process = of_process != NULL ? of_process : malloc(sizeof *of_process);
        if (of_process == NULL) {
            return bp_fail_memory(error, "read a report");
        }
        *of_process = (bp_summary){.path = summary->path,
                                   .report = summary->report,
                                   .findings = summary->findings,
                                   .folder = row->folder,
                                   .finder = summary->finder,
                                   .left_bytes = summary->left_bytes};
        status = bp_summary_read(of_process, true, error);
        if (status == BUGPACK_OK) {
            take_over(summary, of_process, row);
            summary->process_count++;
        }
        bp_summary_release(of_process);
    }
    free(of_process);
    return status;
}

bugpack_status bp_summary_open(const char *path, uint64_t max_bytes, bool is_brief,
                               bp_frame_finder finder, bp_summary **ret_summary,
                               bugpack_error *error) {
    bp_summary *summary = malloc(sizeof *summary);
    if (summary == NULL) {
        if (finder.free != NULL) {
            finder.free(finder.self);
        }
        return bp_fail_memory(error, "read a report");
    }
    *summary = (bp_summary){.path = path, .folder = "", .finder = finder, .left_bytes = max_bytes};
    summary->findings = &summary->own_findings;
    bugpack_status status = bp_report_file_open_any(path, &summary->report, error);
    if (status == BUGPACK_OK) {
        status = bp_summary_read(summary, is_brief, error);
    }
    if (status == BUGPACK_OK) {
        status = read_processes(summary, error);
    }
    if (status != BUGPACK_OK) {
        bp_summary_close(summary);
        return status;
    }
    bp_findings_sort(summary->findings);
    *ret_summary = summary;
    return BUGPACK_OK;
}

void bp_summary_close(bp_summary *summary) {
    if (summary == NULL) {
        return;
    }
    if (summary->finder.free != NULL) {
        summary->finder.free(summary->finder.self);
    }
    bp_summary_release(summary);
    bp_report_file_close(summary->report);
    free(summary);
}
