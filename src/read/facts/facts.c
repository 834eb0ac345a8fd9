#include "facts/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "entries/frames.h"
#include "facts/group.h"
#include "facts/screen_facts.h"
#include "facts/signature_facts.h"
#include "model/entry.h"
#include "model/metadata.h"

enum { process_max = 512, deep_max = 64 }; /* the second: with stacks and profile */

/* Memory for the trees of a process until they are judged. */
static const size_t trees_max_bytes = (size_t)40 << 20;

double bp_sample_cpu(const bp_sample *sample) {
    return sample->cpu_percent_100 / 100.0;
}

double bp_sample_memory(const bp_sample *sample) {
    return sample->has_rss ? (double)sample->rss_kb / 1024 : -1;
}

/* --- the document ------------------------------------------------------------------------- */

static void make_time(bp_json_maker *maker, const char *key, uint64_t wall_ns) {
    char text[BP_CLOCK_ISO_BYTES] = "";
    if (wall_ns != 0) {
        bp_clock_format_iso(wall_ns, text);
    }
    bp_json_make_known_text(maker, key, text);
}

/* Members that have the same name here as in the document they are from. */
static void copy_texts(bp_json_maker *maker, const bp_json_tree *from, const char *const *keys) {
    for (; *keys != NULL; keys++) {
        bp_json_make_text(maker, *keys, bp_json_tree_text(from, *keys));
    }
}

static void copy_number(bp_json_maker *maker, const bp_json_tree *from, const char *key,
                        unsigned decimals) {
    double value = 0;
    bool is_known = bp_json_tree_number(from, key, &value);
    bp_json_make_number(maker, key, is_known, value, decimals);
}

static void copy_uint(bp_json_maker *maker, const bp_json_tree *from, const char *key) {
    uint64_t value = 0;
    bool is_known = bp_json_tree_uint(from, key, &value);
    bp_json_make_uint(maker, key, is_known, value);
}

/* The subject of the report in words: its kind, or the exit status of a process that did not
 * crash; and a description that says more. */
static void make_kind(bp_json_maker *maker, const bp_json_tree *metadata) {
    const char *description = bp_json_tree_text_or(metadata, "description", "");
    char kind[48];
    uint64_t status;
    bp_utf8_copy(kind, sizeof kind, bp_json_tree_text_or(metadata, "report_type", "report"));
    const bp_json_tree *end = bp_json_tree_object(metadata, "exit");
    if (bp_json_tree_text(end, "not_executed") != NULL) {
        bp_utf8_copy(kind, sizeof kind, "not executed");
    } else if (bp_json_tree_uint(end, "status", &status)) {
        (void)snprintf(kind, sizeof kind, "exited with status %" PRIu64, status);
    }
    bp_json_make_text(maker, "kind", kind);
    bp_json_make_known_text(maker, "says", strcmp(description, kind) != 0 ? description : "");
}

/* The name in process.json, or else in metadata.json, for the first process of a report. */
static const char *process_name(const bp_evidence *evidence, char out[64]) {
    const char *name = evidence->process == NULL && evidence->folder[0] == '\0'
                           ? bp_json_tree_text(evidence->metadata, "process_name")
                           : bp_json_tree_text(evidence->process, "name");
    bp_utf8_copy(out, 64, name);
    return out;
}

static void make_report(bp_json_maker *maker, const bp_process_reader *reader,
                        const char *report_path) {
    static const char *const keys[] = {"report_id",  "session_id", "report_type", "session_end",
                                       "gap_key",    "channel",    "description", "triggered_at",
                                       "started_at", "machine",    NULL};
    static const char *const of_platform[] = {"os", "arch", "kernel", NULL};
    const bp_json_tree *metadata = reader->evidence.metadata;
    const bp_json_tree *app = bp_json_tree_object(metadata, "app");
    const char *end = bp_json_tree_text_or(metadata, "session_end", "");
    uint64_t pid = 0;
    char name[64], signal[BP_SIGNAL_BYTES];
    bp_buffer path;
    bp_json_make_object(maker, "report");
    bp_buffer_init(&path, SIZE_MAX / 4); /* it can be opened, in valid UTF-8 */
    maker->lacks_memory |= bp_utf8_encode(&path, report_path, strlen(report_path)) != BUGPACK_OK;
    bp_json_make_text(maker, "path", bp_buffer_text(&path));
    bp_buffer_release(&path);
    bp_json_make_text(maker, "app", bp_json_tree_text(app, "name"));
    bp_json_make_text(maker, "version", bp_json_tree_text(app, "version"));
    bp_json_make_text(maker, "build_id", bp_json_tree_text(app, "build_id"));
    copy_texts(maker, metadata, keys);
    copy_uint(maker, metadata, "pid");
    bp_json_make_known_text(maker, "process", process_name(&reader->evidence, name));
    bp_json_make_end(maker);
    copy_texts(maker, bp_json_tree_object(metadata, "platform"), of_platform);
    make_kind(maker, metadata);
    bp_json_make_text(maker, "timestamp", bp_json_tree_text(metadata, "timestamp"));
    /* The process that captured the machine is not one of the report. */
    const bp_json_tree *collector = bp_json_tree_object(metadata, "collector");
    bp_json_make_flag(maker, "is_process",
                      bp_json_tree_uint(metadata, "pid", &pid) &&
                          pid != bp_json_tree_uint_or(collector, "pid", 0));
    (void)bp_exit_signal(metadata, signal);
    bp_json_make_known_text(maker, "signal", signal);
    /* Recovered from a process that no handler saw end: it was triggered when it was last known to
     * run. */
    bp_json_make_flag(maker, "died_unseen",
                      strcmp(end, "died") == 0 && bp_json_tree_object(metadata, "exit") == NULL &&
                          !bp_report_file_has(reader->evidence.report, "crash.json", NULL));
}

static void make_unsearched(bp_json_maker *maker, const bp_json_tree *manifest) {
    bp_json_make_bool(maker, "complete", bp_json_tree_is_true(manifest, "complete"));
    bp_json_make_bool(maker, "redacted", bp_json_tree_is_true(manifest, "redacted"));
    bp_json_make_array(maker, "not_searched");
    BP_JSON_EACH (line, bp_json_tree_rows(manifest, "artefacts")) {
        if (bp_json_tree_is_true(line, "not_searched")) {
            bp_json_make_text(maker, NULL, bp_json_tree_text_or(line, "name", ""));
        }
    }
    bp_json_make_end(maker);
}

/* A report that waited behind another one looks at threads late, while its CPU and records are of
 * the trigger. */
static void make_delay(bp_json_maker *maker, const bp_evidence *evidence) {
    BP_JSON_EACH (line, bp_json_tree_rows(evidence->manifest, "artefacts")) {
        uint64_t seen_ns = 0, asked_ns = evidence->triggered_wall_ns;
        bool is_late = strcmp(bp_json_tree_text_or(line, "name", ""), "threads.json") == 0 &&
                       bp_clock_parse(bp_json_tree_text_or(line, "captured_at", ""), &seen_ns) &&
                       asked_ns != 0 && seen_ns > asked_ns + BP_NS_PER_SEC;
        bp_json_make_number(maker, "late_secs", is_late, (double)(seen_ns - asked_ns) / 1e9, 1);
    }
}

static void make_use(bp_json_maker *maker, const bp_evidence *evidence) {
    const bp_json_tree *process = bp_json_tree_object(evidence->metrics, "process");
    double percent;
    copy_number(maker, process, "cpu_percent", 2);
    bp_json_make_uint(maker, "thread_count", bp_json_tree_number(process, "cpu_percent", &percent),
                      evidence->measured_count);
    copy_uint(maker, process, "rss_kb");
}

static void make_process(bp_json_maker *maker, const bp_evidence *evidence) {
    const bp_json_tree *process = bp_json_tree_object(evidence->metrics, "process");
    uint64_t limit = bp_limit(evidence->process, "Max open files", "soft");
    double percent, rss_kb;
    bool is_measured = bp_json_tree_number(process, "cpu_percent", &percent);
    bp_json_make_object(maker, "process");
    bp_json_make_number(maker, "sample_window_ms", is_measured, evidence->window_ms, 3);
    make_use(maker, evidence);
    copy_number(maker, process, "uptime_secs", 3);
    copy_uint(maker, evidence->process, "open_files");
    bp_json_make_uint(maker, "open_files_limit", limit > 0, limit);
    bp_json_make_end(maker);
    bool has_rate = is_measured && evidence->window_ms >= BP_EVIDENCE_RATE_WINDOW_MS;
    bp_json_make_flag(maker, "has_rate", has_rate);
    bp_json_make_flag(maker, "has_use",
                      has_rate || bp_json_tree_number(process, "rss_kb", &rss_kb));
}

static void make_threads(bp_json_maker *maker, const bp_evidence *evidence, size_t most_count) {
    bp_json_make_array(maker, "busiest_threads");
    for (size_t i = 0; i < evidence->busiest_count && i < most_count; i++) {
        char frames[BP_FRAME_LIST_BYTES] = "";
        if (evidence->busiest[i]->stack != NULL) {
            bp_frames_print(evidence->busiest[i]->stack, evidence->finder, NULL, frames);
        }
        bp_json_make_object(maker, NULL);
        bp_make_thread(maker, evidence->busiest[i], frames);
        bp_json_make_end(maker);
    }
    bp_json_make_end(maker);
}

/* The functions of the heaviest path, innermost first, and the share of the first of them. */
static void make_heaviest_path(bp_json_maker *maker, const bp_call_tree *profile, uint32_t thread) {
    char label[BP_CALL_TREE_LABEL_BYTES];
    bp_call_path path;
    bp_call_tree_find_path(profile, thread, &path);
    double share = (double)path.samples / (double)profile->nodes[thread].samples;
    bp_json_make_array(maker, "path");
    for (size_t i = 0; i < path.count; i++) {
        bp_utf8_copy(label, sizeof label, bp_call_tree_node_name(profile, path.nodes[i]));
        bp_json_make_text(maker, NULL, label);
    }
    bp_json_make_end(maker);
    bp_json_make_number(maker, "share", path.count > 0, share, 4);
}

static void make_profile(bp_json_maker *maker, const bp_call_tree *profile,
                         const bp_json_tree *manifest) {
    const bp_json_tree *taken = bp_json_tree_object(manifest, "profile");
    uint64_t samples = bp_call_tree_samples(profile);
    char label[BP_CALL_TREE_LABEL_BYTES];
    uint64_t count = 0;
    if (samples == 0) {
        return;
    }
    bp_json_make_object(maker, "profile");
    bp_json_make_uint(maker, "samples", true, samples);
    copy_uint(maker, taken, "lost");
    copy_number(maker, taken, "window_ms", 3);
    bp_json_make_array(maker, "threads");
    for (uint32_t i = profile->nodes[0].first_child; i != 0; i = profile->nodes[i].next) {
        if (count++ >= BP_SCREEN_ROW_MAX) {
            break;
        }
        bp_utf8_copy(label, sizeof label, bp_call_tree_node_name(profile, i));
        bp_json_make_object(maker, NULL);
        bp_json_make_text(maker, "name", label);
        bp_json_make_uint(maker, "samples", true, profile->nodes[i].samples);
        make_heaviest_path(maker, profile, i);
        bp_json_make_end(maker);
    }
    bp_json_make_end(maker);
    bp_json_make_end(maker);
}

/* Adds a profile to that of all processes. */
static void add_stacks(bp_json_maker *maker, const bp_call_tree *profile, uint64_t pid,
                       bp_group_counts *counts) {
    uint64_t samples = bp_call_tree_samples(profile), count = 0;
    char label[BP_CALL_TREE_LABEL_BYTES], list[BP_FRAME_LIST_BYTES];
    bp_call_path path;
    counts->samples += samples;
    for (uint32_t i = samples > 0 ? profile->nodes[0].first_child : 0; i != 0;
         i = profile->nodes[i].next) {
        if (count++ >= BP_SCREEN_ROW_MAX) {
            counts->other_stacks++;
            continue;
        }
        bp_utf8_copy(label, sizeof label, bp_call_tree_node_name(profile, i));
        bp_call_tree_find_path(profile, i, &path);
        bp_call_tree_print_path(profile, &path, list);
        counts->other_stacks +=
            bp_make_group_stack(maker, label, pid, profile->nodes[i].samples,
                                (double)path.samples / (double)profile->nodes[i].samples, list);
    }
}

static void make_heap(bp_json_maker *maker, const bp_evidence *evidence) {
    char allocator[32];
    bp_utf8_copy(allocator, sizeof allocator, bp_json_tree_text(evidence->heap, "allocator"));
    bp_json_make_object(maker, "heap");
    bp_json_make_known_text(maker, "allocator", allocator);
    copy_uint(maker, evidence->heap, "allocated_bytes");
    copy_uint(maker, evidence->heap, "resident_bytes");
    bp_json_make_end(maker);
}

static void make_triggers(bp_json_maker *maker, const bp_json_tree *manifest) {
    static const char *const keys[] = {"report_type", "key", "first", "last", "reason", NULL};
    bp_json_make_array(maker, "triggers");
    BP_JSON_EACH (row, bp_json_tree_rows(manifest, "triggers")) {
        bp_json_make_object(maker, NULL);
        copy_texts(maker, row, keys);
        bp_json_make_uint(maker, "count", true, bp_json_tree_uint_or(row, "count", 0));
        bp_json_make_uint(maker, "reports", true, bp_json_tree_uint_or(row, "reports", 0));
        bp_json_make_end(maker);
    }
    bp_json_make_end(maker);
}

static void make_record(bp_json_maker *maker, const bp_log_row *record) {
    bp_json_make_object(maker, NULL);
    make_time(maker, "time", record->wall_ns);
    bp_json_make_text(maker, "level", bp_level_name((uint8_t)record->level));
    bp_json_make_known_text(maker, "channel", record->channel);
    bp_json_make_text(maker, "message", record->message);
    bp_json_make_end(maker);
}

static void make_log(bp_json_maker *maker, const bp_process_reader *reader) {
    uint64_t count = reader->level_counts[0]; /* of records that have no level */
    bp_json_make_object(maker, "log");
    bp_json_make_object(maker, "counts");
    for (int level = BUGPACK_LEVEL_TRACE; level <= BUGPACK_LEVEL_FATAL; level++) {
        bp_json_make_uint(maker, bp_level_name((uint8_t)level), true, reader->level_counts[level]);
        count += reader->level_counts[level];
    }
    bp_json_make_end(maker);
    bp_json_make_array(maker, "newest_warnings");
    for (uint64_t i = bp_reader_first_record(reader); i < reader->record_count; i++) {
        make_record(maker, &reader->records[i % BP_READER_RECORD_MAX]);
    }
    bp_json_make_end(maker);
    bp_json_make_end(maker);
    bp_json_make_uint(maker, "log_count", true, count);
}

static void make_traffic(bp_json_maker *maker, const bp_process_reader *reader) {
    static const char *const ways[] = {"sent", "received"};
    bp_json_make_array(maker, "traffic");
    for (size_t i = 0; i < reader->channel_count; i++) {
        const bp_channel_row *channel = &reader->channels[i];
        /* Messages are not in the report, and the counts are lower bounds. */
        bool is_partial = channel->recorded_count > channel->messages[0] + channel->messages[1];
        bp_json_make_object(maker, NULL);
        bp_json_make_text(maker, "channel", channel->name);
        for (size_t way = 0; way < 2; way++) {
            bp_json_make_object(maker, ways[way]);
            bp_json_make_uint(maker, "messages", true, channel->messages[way]);
            bp_json_make_uint(maker, "bytes", true, channel->bytes[way]);
            bp_json_make_end(maker);
        }
        bp_json_make_flag(maker, "at_least", is_partial);
        bp_json_make_uint(maker, "recorded", is_partial, channel->recorded_count);
        make_time(maker, "last", channel->last_wall_ns);
        bp_json_make_end(maker);
    }
    bp_json_make_end(maker);
    bp_json_make_uint(maker, "other_messages", reader->other_message_count > 0,
                      reader->other_message_count);
}

/* The first process and each further one have these. */
static void make_member_of_group(bp_json_maker *maker, const bp_process_reader *reader) {
    const bp_evidence *evidence = &reader->evidence;
    char name[64], key[BP_REPORT_KEY_BYTES];
    bool is_named = evidence->process == NULL && evidence->folder[0] == '\0';
    uint64_t pid =
        bp_json_tree_uint_or(is_named ? evidence->metadata : evidence->process, "pid", 0);
    bp_json_make_known_text(maker, "name", process_name(evidence, name));
    bp_json_make_uint(maker, "pid", pid > 0, pid);
    bp_report_process_key(evidence->process, key);
    bp_json_make_known_text(maker, "process_key", key);
    bp_make_title(maker, evidence->process);
    make_use(maker, evidence);
}

static void make_first_process(bp_json_maker *maker, const bp_process_reader *reader,
                               const char *report_path, bool is_brief) {
    const bp_json_tree *manifest = reader->evidence.manifest;
    bp_json_make_uint(maker, "schema", true, BP_SCHEMA_NUMBER);
    make_report(maker, reader, report_path);
    if (manifest != NULL) {
        make_unsearched(maker, manifest);
    }
    make_process(maker, &reader->evidence);
    make_threads(maker, &reader->evidence, is_brief ? 1 : SIZE_MAX);
    const bp_json_tree *search = bp_json_tree_object(reader->evidence.waits, "other_ends");
    bp_json_make_uint(maker, "searched", bp_json_tree_is_true(search, "cut"),
                      bp_json_tree_uint_or(search, "searched_processes", 0));
    make_heap(maker, &reader->evidence);
    make_triggers(maker, manifest);
    if (is_brief) {
        return;
    }
    make_delay(maker, &reader->evidence);
    make_profile(maker, &reader->profile, manifest);
    bp_json_make_flag(
        maker, "profile_without_kernel",
        bp_json_tree_is_true(bp_json_tree_object(manifest, "profile"), "without_kernel"));
    bp_make_end_of_process(maker, &reader->evidence);
    if (reader->machine != NULL) {
        bp_make_machine(maker, "machine", reader->machine, reader->evidence.system, false);
        bp_make_machine(maker, "machine_on_screen", reader->machine, reader->evidence.system, true);
    }
    make_log(maker, reader);
    make_traffic(maker, reader);
}

/* Adds a process, and its threads and profile to those of the report: a line of an index has
 * neither. */
static void make_member(bp_json_maker *maker, const bp_process_reader *reader, bool is_of_line,
                        bp_group_counts *counts) {
    const char *folder = reader->evidence.folder;
    bool is_first = folder[0] == '\0';
    bp_json_make_array(maker, is_first ? "first_process" : "further_processes");
    bp_json_make_object(maker, NULL);
    const bp_json_tree *process = maker->open[maker->depth];
    bp_json_make_known_text(maker, "folder", folder);
    make_member_of_group(maker, reader);
    if (!is_first) {
        make_profile(maker, &reader->profile, NULL);
    }
    bp_json_make_end(maker);
    bp_json_make_end(maker);
    bp_make_group_member(maker, process, reader->is_interesting);
    if (is_of_line) {
        return;
    }
    counts->other_threads += bp_make_threads(maker, &reader->evidence, reader->is_interesting);
    add_stacks(maker, &reader->profile,
               reader->evidence.is_of_group ? bp_json_tree_uint_or(process, "pid", 0) : 0, counts);
}

/* --- the report --------------------------------------------------------------------------- */

typedef struct report_reader {
    bp_deadlocks deadlocks;
    bp_database database;
    bp_json_maker maker;
    bp_process_reader further;
    bp_group_counts counts;
    size_t deep_count;            /* further processes whose stacks were wanted */
    bool is_of_group, is_of_line; /* the second: for a line of an index */
} report_reader;

/* Reads a process, and adds it to the document. Its evidence is released. */
static bugpack_status read_process(report_reader *reader, bp_facts *facts,
                                   bp_process_reader *process, const char *folder, bool is_brief,
                                   bugpack_error *error) {
    *process = (bp_process_reader){.left_bytes = &facts->left_bytes,
                                   .evidence = {.findings = &facts->findings,
                                                .report = facts->report,
                                                .folder = folder,
                                                .is_of_group = reader->is_of_group,
                                                .finder = &facts->finder,
                                                .metadata = facts->metadata,
                                                .manifest = facts->manifest,
                                                .triggered_wall_ns = facts->triggered_wall_ns,
                                                .ended_wall_ns = facts->ended_wall_ns,
                                                .left_bytes = trees_max_bytes}};
    bugpack_status status = bp_process_read(process, is_brief, error);
    if (process == &facts->first) {
        bp_sign_trigger(&process->evidence, &facts->signature);
        make_first_process(&reader->maker, process, facts->path, is_brief);
    }
    make_member(&reader->maker, process, reader->is_of_line, &reader->counts);
    bp_deadlocks_add(&reader->deadlocks, &process->evidence);
    bp_database_add(&reader->database, &process->evidence);
    bp_waits_add(&facts->waits, &process->evidence);
    bp_evidence_release(&process->evidence);
    return status;
}

/* The documents of the further processes of a report. */
static bugpack_status read_further(report_reader *reader, bp_facts *facts, bool is_brief,
                                   bugpack_error *error) {
    const char *last = "";
    char folder[96];
    size_t process_count = 0;
    bugpack_status status = BUGPACK_OK;
    bp_json_make_array(&reader->maker, "further_processes");
    bp_json_make_end(&reader->maker);
    for (size_t i = 0; status == BUGPACK_OK && i < bp_report_file_count(facts->report); i++) {
        const char *entry = bp_report_file_name(facts->report, i);
        size_t length = bp_entry_folder_bytes(entry);
        if (length == 0 || strncmp(entry, last, length) == 0) {
            continue; /* the entries of a process follow each other */
        }
        last = entry;
        if (length >= sizeof folder || process_count == process_max) {
            reader->counts.unread_processes++;
            continue;
        }
        memcpy(folder, entry, length);
        folder[length] = '\0';
        status = read_process(reader, facts, &reader->further, folder,
                              is_brief || reader->deep_count == deep_max, error);
        reader->deep_count += reader->further.is_interesting;
        bp_process_release(&reader->further);
        process_count++;
    }
    facts->unread_process_count = reader->counts.unread_processes;
    return status;
}

static bool has_further(const bp_report_file *report) {
    for (size_t i = 0; i < bp_report_file_count(report); i++) {
        if (bp_entry_folder_bytes(bp_report_file_name(report, i)) > 0) {
            return true;
        }
    }
    return false;
}

/* A window of its own begins at the trigger; that of a metrics history ends there. */
static void find_end(bp_facts *facts) {
    enum { window_max_secs = 600 };
    uint64_t end_ns = 0;
    const bp_json_tree *line = bp_report_file_line(facts->report, "runtime-metrics.json");
    const char *end = bp_json_tree_text(bp_json_tree_object(line, "covers"), "to");
    if (end != NULL) {
        (void)bp_clock_parse(end, &end_ns);
    }
    facts->ended_wall_ns = facts->triggered_wall_ns;
    if (end_ns > facts->triggered_wall_ns &&
        end_ns - facts->triggered_wall_ns <= window_max_secs * BP_NS_PER_SEC) {
        facts->ended_wall_ns = end_ns;
    }
}

static void make_signature(bp_json_maker *maker, bp_facts *facts) {
    bp_signature *signature = &facts->signature;
    if (signature->text[0] == '\0') {
        bp_sign_findings(facts->report, &facts->findings, facts->left_bytes, signature);
    }
    bp_json_make_known_text(maker, "signature", signature->text);
    bp_json_make_flag(maker, "weak_signature", signature->text[0] != '\0' && signature->is_weak);
}

static bugpack_status read_report(bp_facts *facts, bool is_brief, bugpack_error *error) {
    report_reader reader = {.is_of_group = has_further(facts->report), .is_of_line = is_brief};
    const char *triggered = bp_json_tree_text(facts->metadata, "triggered_at");
    if (triggered != NULL) {
        (void)bp_clock_parse(triggered, &facts->triggered_wall_ns);
    }
    find_end(facts);
    bp_json_maker_begin(&reader.maker);
    facts->document = reader.maker.root;
    bugpack_status status = read_process(&reader, facts, &facts->first, "", is_brief, error);
    if (status == BUGPACK_OK) {
        status = read_further(&reader, facts, is_brief, error);
    }
    bp_make_group(&reader.maker, &reader.counts);
    bp_waits_end(&facts->waits);
    bp_evidence whole = {.findings = &facts->findings, .report = facts->report, .folder = ""};
    bp_database_find(&reader.database, &whole);
    bp_findings_sort(&facts->findings);
    bp_make_deadlocks(&reader.maker, &reader.deadlocks);
    make_signature(&reader.maker, facts);
    return status == BUGPACK_OK && reader.maker.lacks_memory
               ? bp_fail_memory(error, "read a report")
               : status;
}

bugpack_status bp_facts_open(const char *path, uint64_t max_bytes, bool is_brief,
                             bp_frame_finder finder, bp_facts **ret_facts, bugpack_error *error) {
    bp_facts *facts = calloc(1, sizeof *facts);
    if (facts == NULL) {
        if (finder.free != NULL) {
            finder.free(finder.self);
        }
        return bp_fail_memory(error, "read a report");
    }
    facts->path = path;
    facts->finder = finder;
    facts->left_bytes = max_bytes;
    bugpack_status status = bp_report_file_open_any(path, &facts->report, error);
    if (status == BUGPACK_OK) {
        facts->metadata = bp_report_file_metadata(facts->report);
        facts->manifest = bp_report_file_manifest(facts->report);
        status = read_report(facts, is_brief, error);
    }
    if (status != BUGPACK_OK) {
        bp_facts_close(facts);
        return status;
    }
    *ret_facts = facts;
    return BUGPACK_OK;
}

void bp_facts_close(bp_facts *facts) {
    if (facts == NULL) {
        return;
    }
    if (facts->finder.free != NULL) {
        facts->finder.free(facts->finder.self);
    }
    bp_json_tree_free(facts->document);
    bp_process_release(&facts->first);
    bp_report_file_close(facts->report);
    free(facts);
}
