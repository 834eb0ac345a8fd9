#include "facts/process_reader.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "base/utf8.h"
#include "entries/json_lines.h"
#include "entries/line_time.h"
#include "facts/screen_facts.h"

enum { sample_max = 1 << 16 }; /* eighteen hours of the metrics history */

/* --- entries of lines --------------------------------------------------------------------- */

static bugpack_status add_sample(void *context, const char *line, size_t line_bytes) {
    bp_process_reader *reader = context;
    bp_json_field fields[] = {{.key = "\"time\""},         {.key = "\"cpu_percent\""},
                              {.key = "\"rss_kb\""},       {.key = "\"bugpack_kb\""},
                              {.key = "\"thread_count\""}, {.key = "\"file_count\""},
                              {.key = "\"vm_size_kb\""}};
    bp_json_line_find(line, line_bytes, fields, sizeof fields / sizeof fields[0]);
    bp_sample sample = {.wall_ns = bp_json_line_time(&fields[0].value)};
    uint64_t percent;
    if (sample.wall_ns == 0 || reader->sample_count == sample_max ||
        !bp_json_token_fixed(&fields[1].value, 2, &percent)) {
        return BUGPACK_OK;
    }
    sample.cpu_percent_100 = percent < UINT32_MAX ? (uint32_t)percent : UINT32_MAX;
    sample.has_rss = bp_json_token_fixed(&fields[2].value, 0, &sample.rss_kb);
    if (bp_json_token_fixed(&fields[3].value, 0, &sample.own_kb) && sample.own_kb > sample.rss_kb) {
        sample.own_kb = sample.rss_kb;
    }
    (void)bp_json_token_fixed(&fields[4].value, 0, &sample.thread_count);
    (void)bp_json_token_fixed(&fields[5].value, 0, &sample.file_count);
    (void)bp_json_token_fixed(&fields[6].value, 0, &sample.vm_size_kb);
    if (!bp_array_reserve(&reader->samples, reader->sample_count, &reader->sample_capacity)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    reader->samples[reader->sample_count++] = sample;
    return BUGPACK_OK;
}

static bugpack_status add_record(void *context, const char *line, size_t line_bytes) {
    bp_process_reader *reader = context;
    bp_evidence *evidence = &reader->evidence;
    bp_json_field fields[] = {{.key = "\"time\""}, {.key = "\"level\""}};
    bp_json_line_find(line, line_bytes, fields, 2);
    const bp_json_token *name = &fields[1].value;
    int level = name->byte_count > 2 ? bp_line_level_of(name->text + 1, name->byte_count - 2) : 0;
    reader->level_counts[level]++;
    uint64_t wall_ns = bp_json_line_time(&fields[0].value);
    bool is_recent = bp_evidence_is_recent(evidence, wall_ns);
    if (level < BUGPACK_LEVEL_WARN && !reader->wants_output && !is_recent) {
        return BUGPACK_OK;
    }
    bp_json_field texts[] = {{.key = "\"channel\""}, {.key = "\"message\""}};
    char channel[16], message[BP_EVIDENCE_LINE_BYTES];
    bp_json_line_find(line, line_bytes, texts, 2);
    bp_json_line_text(&texts[0].value, channel, sizeof channel);
    bp_json_line_text(&texts[1].value, message, sizeof message);
    if (is_recent) {
        bp_log_rate_add(&evidence->log_rate, wall_ns, level >= BUGPACK_LEVEL_WARN, message);
    }
    if (reader->wants_output) {
        bp_evidence_output(evidence, channel, message);
    }
    if (level < BUGPACK_LEVEL_WARN) {
        return BUGPACK_OK;
    }
    bp_log_row *record = &reader->records[reader->record_count++ % BP_READER_RECORD_MAX];
    record->wall_ns = wall_ns;
    record->level = level;
    bp_json_line_text(&texts[0].value, record->channel, sizeof record->channel);
    bp_json_line_text(&texts[1].value, record->message, sizeof record->message);
    if (level >= BUGPACK_LEVEL_ERROR && is_recent) {
        evidence->recent_error_count++;
        bp_utf8_copy(evidence->recent_error, sizeof evidence->recent_error, record->message);
    }
    return BUGPACK_OK;
}

static bp_channel_row *find_channel(bp_process_reader *reader, const char *name) {
    for (size_t i = 0; i < reader->channel_count; i++) {
        if (strcmp(reader->channels[i].name, name) == 0) {
            return &reader->channels[i];
        }
    }
    if (reader->channel_count == BP_READER_CHANNEL_MAX) {
        return NULL;
    }
    bp_channel_row *channel = &reader->channels[reader->channel_count++];
    (void)memcpy(channel->name, name, strlen(name) + 1);
    return channel;
}

static bugpack_status add_message(void *context, const char *line, size_t line_bytes) {
    bp_process_reader *reader = context;
    bp_json_field fields[] = {{.key = "\"time\""},
                              {.key = "\"channel\""},
                              {.key = "\"direction\""},
                              {.key = "\"bytes\""},
                              {.key = "\"seq\""}};
    char name[sizeof reader->channels[0].name];
    uint64_t byte_count = 0, number = 0;
    bp_json_line_find(line, line_bytes, fields, 5);
    bp_json_line_text(&fields[1].value, name, sizeof name);
    bp_channel_row *channel = find_channel(reader, name);
    if (channel == NULL) {
        reader->other_message_count++;
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

static bugpack_status add_stack(void *context, const char *line, size_t line_bytes) {
    return bp_call_tree_add(&((bp_process_reader *)context)->profile, line, line_bytes);
}

/* The profile is the last. */
static const struct {
    const char *name;
    bp_json_line_taker *take;
} line_entries[] = {{"metrics-history.jsonl", add_sample},
                    {"logs.jsonl", add_record},
                    {"traffic-index.jsonl", add_message},
                    {"profile.folded", add_stack}};
enum { line_entry_count = sizeof line_entries / sizeof line_entries[0] };

/* --- reading ------------------------------------------------------------------------------ */

/* True if an entry is there and within the limit of bytes, of which it uses up its own. */
static bool may_read(bp_process_reader *reader, const char *entry, const char *path) {
    uint64_t byte_count;
    if (!bp_report_file_has(reader->evidence.report, path, &byte_count)) {
        return false;
    }
    if (byte_count > *reader->left_bytes) {
        bp_find_as(&reader->evidence, BP_DIAGNOSIS_NOT_READ, entry,
                   "not read: its {} bytes are over the limit", BP_ARGUMENTS(BP_COUNT(byte_count)));
        return false;
    }
    *reader->left_bytes -= byte_count;
    return true;
}

/* A failure costs the entry; only a lack of memory costs the report. */
static bugpack_status keep_failure(bp_process_reader *reader, const char *entry,
                                   bugpack_status status, const bugpack_error *failure,
                                   bugpack_error *error) {
    if (status == BUGPACK_ERR_NO_MEMORY) {
        return bp_fail_memory(error, "read a report");
    }
    if (status != BUGPACK_OK) {
        bp_find_as(&reader->evidence, BP_DIAGNOSIS_NOT_READ, entry, "cannot be read: {}",
                   BP_ARGUMENTS(BP_TEXT(failure->message)));
    }
    return BUGPACK_OK;
}

/* The busiest threads are known before what they do: that is also the order of the documents. The
 * last one, the stacks, is not read in brief. */
static const struct {
    const char *entry;
    size_t place; /* in bp_evidence; the document without its lists, SIZE_MAX for lists alone */
    bp_json_tree_list lists[3];
    void (*end)(bp_evidence *evidence);
} documents[] = {
    {"runtime-metrics.json",
     offsetof(bp_evidence, metrics),
     {{"threads", bp_evidence_take_measured, false}},
     bp_evidence_end_measured},
    {"process.json", offsetof(bp_evidence, process), {{NULL, NULL, false}}, NULL},
    {"threads.json",
     offsetof(bp_evidence, waits),
     {{"deadlocks", bp_evidence_take_deadlock, false}, {"threads", bp_evidence_take_listed, false}},
     bp_evidence_end_listed},
    {"files.json",
     offsetof(bp_evidence, files_rest),
     {{"files", bp_evidence_take_file, false}},
     NULL},
    {"heap-state.json", offsetof(bp_evidence, heap), {{NULL, NULL, false}}, NULL},
    {"thread-heap.json", offsetof(bp_evidence, thread_heap), {{NULL, NULL, false}}, NULL},
    {"disconnect-cause.json", offsetof(bp_evidence, disconnect), {{NULL, NULL, false}}, NULL},
    {"hang.json", offsetof(bp_evidence, hang), {{NULL, NULL, false}}, NULL},
    {"crash.json", offsetof(bp_evidence, crash), {{NULL, NULL, false}}, NULL},
    {"system.json", offsetof(bp_evidence, system), {{NULL, NULL, false}}, NULL},
    {"stacks.json", SIZE_MAX, {{"threads", bp_evidence_take_stack, false}}, NULL}};
enum { document_count = sizeof documents / sizeof documents[0] };

static bugpack_status read_document(bp_process_reader *reader, size_t index, bugpack_error *error) {
    const char *entry = documents[index].entry;
    bugpack_error failure = BUGPACK_ERROR_INIT;
    bp_json_tree *rest = NULL;
    bugpack_status status = BUGPACK_OK;
    char path[128];
    (void)snprintf(path, sizeof path, "%s%s", reader->evidence.folder, entry);
    if (may_read(reader, entry, path)) {
        status = bp_report_file_each(reader->evidence.report, path, documents[index].lists,
                                     &reader->evidence,
                                     documents[index].place != SIZE_MAX ? &rest : NULL, &failure);
    }
    size_t memory_bytes = bp_json_tree_memory(rest);
    if (rest != NULL && memory_bytes <= reader->evidence.left_bytes) {
        reader->evidence.left_bytes -= memory_bytes;
        memcpy((char *)&reader->evidence + documents[index].place, &rest, sizeof rest);
    } else if (rest != NULL) {
        bp_json_tree_free(rest);
        bp_find_as(&reader->evidence, BP_DIAGNOSIS_NOT_READ, entry,
                   "not judged: with the other documents it would take too much memory",
                   BP_ARGUMENTS(BP_END));
    }
    if (documents[index].end != NULL) {
        documents[index].end(&reader->evidence);
    }
    return keep_failure(reader, entry, status, &failure, error);
}

static bugpack_status read_machine(bp_process_reader *reader, bugpack_error *error) {
    static const char entry[] = "host-threads.json";
    bugpack_error failure = BUGPACK_ERROR_INIT;
    if (!may_read(reader, entry, entry)) {
        return BUGPACK_OK;
    }
    const bp_json_tree *collector = bp_json_tree_object(reader->evidence.metadata, "collector");
    reader->machine = bp_machine_new(bp_json_tree_uint_or(collector, "pid", 0));
    if (reader->machine == NULL) {
        return bp_fail_memory(error, "read a report");
    }
    bugpack_status status = bp_report_file_each(reader->evidence.report, entry, bp_machine_lists,
                                                reader->machine, NULL, &failure);
    if (status == BUGPACK_OK) {
        status = bp_machine_end(reader->machine, &failure);
    }
    if (status != BUGPACK_OK) {
        free(reader->machine);
        reader->machine = NULL;
    }
    return keep_failure(reader, entry, status, &failure, error);
}

/* Shares of a part of it would be wrong. */
static bugpack_status end_profile(bp_process_reader *reader, bool is_whole, bugpack_error *error) {
    const char *entry = line_entries[line_entry_count - 1].name;
    bp_call_tree *profile = &reader->profile;
    if (!is_whole) {
        bp_call_tree_release(profile);
    }
    if (profile->bad_line_count > 0) {
        bp_find_as(&reader->evidence, BP_DIAGNOSIS_NOT_READ, entry,
                   "{} of its {} lines are malformed, and left out",
                   BP_ARGUMENTS(BP_COUNT(profile->bad_line_count), BP_COUNT(profile->line_count)));
    }
    if (profile->left_samples > 0) {
        bp_find_as(&reader->evidence, BP_DIAGNOSIS_NOT_READ, entry,
                   "{} samples are left out: it has too many different frames",
                   BP_ARGUMENTS(BP_COUNT(profile->left_samples)));
    }
    reader->evidence.profile = profile;
    return bp_call_tree_end(profile) == BUGPACK_OK ? BUGPACK_OK
                                                   : bp_fail_memory(error, "read a report");
}

static bool is_first(const bp_process_reader *reader) {
    return reader->evidence.folder[0] == '\0';
}

/* For a further process reads the profile alone. */
static bugpack_status read_lines(bp_process_reader *reader, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK, entry_status = BUGPACK_OK;
    for (size_t i = is_first(reader) ? 0 : line_entry_count - 1;
         status == BUGPACK_OK && i < line_entry_count; i++) {
        const char *name = line_entries[i].name;
        bugpack_error failure = BUGPACK_ERROR_INIT;
        char path[128];
        (void)snprintf(path, sizeof path, "%s%s", reader->evidence.folder, name);
        entry_status = may_read(reader, name, path)
                           ? bp_report_lines(reader->evidence.report, path, UINT64_MAX,
                                             line_entries[i].take, reader, &failure)
                           : BUGPACK_OK;
        status = keep_failure(reader, name, entry_status, &failure, error);
    }
    return status == BUGPACK_OK ? end_profile(reader, entry_status == BUGPACK_OK, error) : status;
}

/* A bp_sink for a bp_buffer: keeps the end. */
static bugpack_status keep_tail(void *context, const void *bytes, size_t byte_count) {
    bp_buffer *tail = context;
    const char *next = bytes;
    if (byte_count > BP_READER_TAIL_BYTES) {
        next += byte_count - BP_READER_TAIL_BYTES;
        byte_count = BP_READER_TAIL_BYTES;
    }
    if (tail->size + byte_count > BP_READER_TAIL_BYTES) {
        size_t kept = BP_READER_TAIL_BYTES - byte_count;
        memmove(tail->data, tail->data + tail->size - kept, kept);
        tail->size = kept;
    }
    return bp_buffer_append(tail, next, byte_count);
}

/* Finds the recent errors in the end of a text log. */
static void find_log_errors(bp_process_reader *reader, const char *entry, const bp_buffer *tail) {
    bp_evidence *evidence = &reader->evidence;
    const bp_line_clock clock = {.until_ns = evidence->ended_wall_ns};
    const char *at = bp_buffer_text(tail), *end = at + tail->size, *next, *last = NULL;
    const char *condition = "";
    size_t count = 0, last_bytes = 0;
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
                         bp_evidence_is_recent(evidence, time.wall_ns);
        if (is_recent && bp_line_level(at + used, length - used) >= BUGPACK_LEVEL_ERROR) {
            count++;
            condition =
                time.lacks_zone ? " (its times have no zone, and were read as UTC)" : condition;
            last = at + used;
            last_bytes = length - used;
        }
    }
    if (count > 0) {
        char line[BP_SENTENCE_TEXT_BYTES];
        bp_utf8_copy_ends(line, sizeof line, last, last_bytes);
        bp_find_as(evidence, BP_DIAGNOSIS_LOG_ERRORS, entry,
                   "{}{} error{|s} in the {} before the trigger{[ and the {} after it]}{}, the "
                   "last: {}",
                   BP_ARGUMENTS(BP_TEXT(tail->size == BP_READER_TAIL_BYTES ? "at least " : ""),
                                BP_COUNT(count), BP_NUMBER(BP_EVIDENCE_RECENT_SECS, 0, " s"),
                                bp_evidence_rest(evidence), BP_TEXT(condition), BP_TEXT(line)));
    }
}

/* The ends of the log files, where there is no ring: the first is kept, in all errors are found. */
static bugpack_status read_log_files(bp_process_reader *reader, bugpack_error *error) {
    const bp_report_file *report = reader->evidence.report;
    bugpack_status status = BUGPACK_OK;
    if (bp_report_file_has(report, "logs.jsonl", NULL)) {
        return BUGPACK_OK;
    }
    for (size_t i = 0; status == BUGPACK_OK && i < bp_report_file_count(report); i++) {
        const char *name = bp_report_file_name(report, i);
        bugpack_error failure = BUGPACK_ERROR_INIT;
        bp_buffer tail;
        if (strncmp(name, "logs/", 5) != 0 || !may_read(reader, name, name)) {
            continue;
        }
        bp_buffer_init(&tail, BP_READER_TAIL_BYTES);
        status = bp_report_file_stream(report, name, UINT64_MAX, keep_tail, &tail, &failure);
        status = keep_failure(reader, name, status, &failure, error);
        find_log_errors(reader, name, &tail);
        if (reader->log_name[0] == '\0') {
            bp_utf8_copy(reader->log_name, sizeof reader->log_name, name);
            reader->log_tail = tail;
        } else {
            bp_buffer_release(&tail);
        }
    }
    return status;
}

/* Runs the diagnoses of diagnose/findings.h: once for each process, as soon as all is read of it.
 */

/* Its findings are made while entries are read. */
void bp_diagnose_none(bp_evidence *evidence) {
    (void)evidence;
}

enum { PROCESS = false, REPORT = true };
#define DIAGNOSIS_FUNCTION(constant, id, severity, function, scope, ...)                           \
    [BP_DIAGNOSIS_##constant] = {bp_diagnose_##function, scope},
static const struct {
    bp_diagnose_function *run;
    bool is_of_report; /* and not of each process */
} functions[] = {BP_DIAGNOSES(DIAGNOSIS_FUNCTION)};
#undef DIAGNOSIS_FUNCTION

static void diagnose(bp_evidence *evidence) {
    for (size_t i = 0; i < BP_DIAGNOSIS_COUNT; i++) {
        if (evidence->folder[0] == '\0' || !functions[i].is_of_report) {
            evidence->running = (bp_diagnosis)i;
            functions[i].run(evidence);
        }
    }
}

static uint64_t count_findings(const bp_evidence *evidence) {
    return evidence->findings->count + bp_findings_other_count(evidence->findings);
}

static bool has_thread_of_interest(const bp_evidence *evidence) {
    for (size_t i = 0; i < evidence->thread_count; i++) {
        if (bp_thread_is_interesting(&evidence->threads[i])) {
            return true;
        }
    }
    return false;
}

bugpack_status bp_process_read(bp_process_reader *reader, bool is_brief, bugpack_error *error) {
    static bugpack_status (*const steps[])(bp_process_reader * reader, bugpack_error * error) = {
        read_machine, read_lines, read_log_files};
    bp_evidence *evidence = &reader->evidence;
    const bp_json_tree *end = bp_json_tree_object(evidence->metadata, "exit");
    uint64_t finding_count = count_findings(evidence);
    bugpack_status status = BUGPACK_OK;
    reader->wants_output = end != NULL && bp_json_tree_uint_or(end, "status", 1) != 0;
    for (size_t i = 0; status == BUGPACK_OK && i < document_count - 1; i++) {
        status = read_document(reader, i, error);
    }
    reader->is_interesting = is_first(reader) || has_thread_of_interest(evidence);
    if (status == BUGPACK_OK && !is_brief && reader->is_interesting) {
        status = read_document(reader, document_count - 1, error);
        for (size_t i = 0; status == BUGPACK_OK && i < sizeof steps / sizeof steps[0]; i++) {
            bool is_for_all = steps[i] == read_lines;
            status = is_for_all || is_first(reader) ? steps[i](reader, error) : BUGPACK_OK;
        }
    }
    bool lacks_names = evidence->metrics != NULL && !bp_thread_names_list(&reader->names, evidence);
    if (status == BUGPACK_OK && (lacks_names || evidence->lacks_memory)) {
        status = bp_fail_memory(error, "read a report");
    }
    for (size_t i = 0; i < reader->names.count; i++) {
        const bp_threads_of_name *name = &reader->names.rows[i];
        if (name->count > evidence->common_count) {
            evidence->common_count = name->count;
            evidence->common_name = name->name;
        }
    }
    evidence->samples = reader->samples;
    evidence->sample_count = reader->sample_count;
    if (status == BUGPACK_OK) {
        diagnose(evidence);
    }
    reader->is_interesting |= count_findings(evidence) > finding_count;
    return status;
}

uint64_t bp_reader_first_record(const bp_process_reader *reader) {
    return reader->record_count > BP_READER_RECORD_MAX ? reader->record_count - BP_READER_RECORD_MAX
                                                       : 0;
}

void bp_process_release(bp_process_reader *reader) {
    bp_evidence_release(&reader->evidence);
    free(reader->names.rows);
    bp_call_tree_release(&reader->profile);
    bp_buffer_release(&reader->log_tail);
    free(reader->samples);
    free(reader->machine);
    *reader = (bp_process_reader){.samples = NULL};
}
