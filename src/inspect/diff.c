#include "inspect/diff.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "base/utf8.h"
#include "inspect/call_tree.h"
#include "inspect/json_lines.h"
#include "model/heap_state.h"
#include "json/pick.h"

/* --- one side: a report, or one artefact of one as a file of its own ----------------------- */

/* The limit for one artefact: a capture of some 100,000 threads. */
static const size_t document_max_bytes = (size_t)256 << 20;

static const char profile_name[] = "profile.folded";

const char *bp_diff_artefact_name(bp_diff_artefact artefact) {
    static const char *const names[] = {[BP_DIFF_HOST] = "host-threads.json",
                                        [BP_DIFF_METRICS] = "runtime-metrics.json",
                                        [BP_DIFF_HEAP] = "heap-state.json"};
    return names[artefact];
}

/* Whether an object has a key of a heap state, or none at all: such a state is all unknown. */
static bool is_heap_state(const bp_json_pick *root, const bp_json_pick *keys, size_t key_count) {
    if (!bp_json_token_is(&root->token, "{")) {
        return false;
    }
    bool is_it = root->token.text[1 + strspn(root->token.text + 1, " \t\r\n")] == '}';
    for (size_t i = 0; i < key_count; i++) {
        is_it = is_it || keys[i].token.byte_count > 0;
    }
    return is_it;
}

/* Finds what a document is by keys that only it has. */
static bugpack_status find_kind(bp_diff_side *side, bugpack_error *error) {
    enum { THREADS, SUMMARY, PROCESS, ROOT, ALLOCATOR, NUMBERS };
    bp_json_pick picks[NUMBERS + BP_HEAP_NUMBER_COUNT] = {{.path = "threads"},
                                                          {.path = "summary"},
                                                          {.path = "process"},
                                                          {.path = ""},
                                                          {.path = "allocator"}};
    bugpack_error detail = BUGPACK_ERROR_INIT;
    for (size_t i = 0; i < BP_HEAP_NUMBER_COUNT; i++) {
        picks[NUMBERS + i].path = bp_heap_number_keys[i];
    }
    bugpack_status status = bp_json_pick_all(bp_buffer_text(&side->document), side->document.size,
                                             picks, NUMBERS + BP_HEAP_NUMBER_COUNT, &detail);
    if (status == BUGPACK_ERR_CORRUPT) {
        return bp_fail(error, status, "\"%s\" is neither a report nor JSON: %s", side->path,
                       detail.message);
    }
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "%s", detail.message);
    }
    bool has_threads = bp_json_token_is(&picks[THREADS].token, "[");
    if (has_threads && bp_json_token_is(&picks[SUMMARY].token, "{")) {
        side->kind = BP_DIFF_HOST;
    } else if (has_threads && bp_json_token_is(&picks[PROCESS].token, "{")) {
        side->kind = BP_DIFF_METRICS;
    } else if (!has_threads &&
               is_heap_state(&picks[ROOT], picks + ALLOCATOR, 1 + BP_HEAP_NUMBER_COUNT)) {
        side->kind = BP_DIFF_HEAP;
    } else {
        return bp_fail(error, BUGPACK_ERR_CORRUPT,
                       "\"%s\" is neither a report nor a host-threads.json, runtime-metrics.json "
                       "or heap-state.json",
                       side->path);
    }
    return BUGPACK_OK;
}

/* A damaged report still begins like one, and is then refused as a zip. */
static bool begins_as_zip(int fd) {
    char begin[4];
    return bp_file_read_range(fd, begin, sizeof begin, 0) == sizeof begin &&
           memcmp(begin, "PK", 2) == 0;
}

static void explain_absence(const bp_diff_side *side, const char *name,
                            bp_diff_presence *presence) {
    char text[2 * sizeof presence->reason];
    bp_report_line line;
    if (bp_report_file_line(side->report, name, &line)) {
        (void)snprintf(text, sizeof text, "%s%s%s", line.status, line.reason[0] != '\0' ? ": " : "",
                       line.reason);
        bp_utf8_copy(presence->reason, sizeof presence->reason, text);
    }
}

/* Which artefacts are there, and why the others are not. */
static void look(bp_diff_side *side) {
    for (bp_diff_artefact artefact = 0; artefact < BP_DIFF_ARTEFACT_COUNT; artefact++) {
        const char *name = bp_diff_artefact_name(artefact);
        bp_diff_presence *presence = &side->presence[artefact];
        presence->is_there = side->report != NULL ? bp_report_file_has(side->report, name, NULL)
                                                  : side->kind == artefact;
        if (side->report != NULL && !presence->is_there) {
            explain_absence(side, name, presence);
        }
    }
}

/*
 * Opens a file. What begins as a zip is a report; anything else must be an artefact that can be
 * compared, which its keys show. The side is to be released whatever is returned.
 */
static bugpack_status open_side(bp_diff_side *side, const char *path, bugpack_error *error) {
    int fd;
    *side = (bp_diff_side){.path = path, .facts = {"", "", ""}};
    bp_buffer_init(&side->document, document_max_bytes);
    bugpack_status status = bp_report_input_open(path, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (begins_as_zip(fd)) {
        status = bp_report_file_take(fd, path, &side->report, error);
        if (status == BUGPACK_OK) {
            side->facts = bp_report_file_facts(side->report);
            look(side);
            bp_report_file_drop_manifest(side->report); /* it has told the reasons */
            return BUGPACK_OK;
        }
    } else {
        status = bp_file_read_fd(fd, path, &side->document, error);
        status = status == BUGPACK_OK ? find_kind(side, error) : status;
        look(side);
    }
    (void)close(fd);
    return status;
}

static void release_side(bp_diff_side *side) {
    bp_report_file_close(side->report);
    bp_buffer_release(&side->document);
}

/* Moves an artefact, once, into a buffer, which is to be released whatever is returned. Without one
 * it is empty. */
static bugpack_status take_artefact(bp_diff_side *side, bp_diff_artefact artefact,
                                    bp_buffer *ret_text, bugpack_error *error) {
    bp_buffer_init(ret_text, BP_JSON_DIFF_SIDE_BYTES);
    if (!side->presence[artefact].is_there) {
        return BUGPACK_OK;
    }
    if (side->report != NULL) {
        return bp_report_file_read(side->report, bp_diff_artefact_name(artefact), ret_text, error);
    }
    bp_buffer_move(ret_text, &side->document);
    return BUGPACK_OK;
}

/* Pieces, since what reads them keeps what is behind the last whole token. */
static bugpack_status give_document(const bp_buffer *document, bp_sink *sink, void *sink_context) {
    static const size_t piece_bytes = (size_t)256 << 10;
    bugpack_status status = BUGPACK_OK;
    size_t byte_count;
    for (size_t at = 0; status == BUGPACK_OK && at < document->size; at += byte_count) {
        byte_count = document->size - at < piece_bytes ? document->size - at : piece_bytes;
        status = sink(sink_context, bp_buffer_text(document) + at, byte_count);
    }
    return status;
}

/* Gives the host-threads.json that is there, which is too long to be held. */
static bugpack_status give_host(const void *context, bp_sink *sink, void *sink_context,
                                bugpack_error *error) {
    const bp_diff_side *side = context;
    return side->report == NULL
               ? give_document(&side->document, sink, sink_context)
               : bp_report_file_stream(side->report, bp_diff_artefact_name(BP_DIFF_HOST),
                                       document_max_bytes, sink, sink_context, error);
}

/* The failure `detail` in what an artefact holds, whose sentence names the artefact and the path.
 */
static bugpack_status explain(const char *path, bp_diff_artefact artefact,
                              const bugpack_error *detail, bugpack_error *error) {
    return detail->status == BUGPACK_ERR_CORRUPT
               ? bp_fail(error, detail->status, "%s of \"%s\": %s", bp_diff_artefact_name(artefact),
                         path, detail->message)
               : bp_fail(error, detail->status, "%s", detail->message);
}

static bugpack_status read_heap(const bp_buffer *text, const char *path,
                                bugpack_heap_state *ret_state, bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_heap_state_parse(bp_buffer_text(text), text->size, ret_state, &detail);
    return status == BUGPACK_OK ? status : explain(path, BP_DIFF_HEAP, &detail, error);
}

bugpack_status bp_diff_read_heap_file(const char *path, bugpack_heap_state *ret_state,
                                      bugpack_error *error) {
    bp_diff_side side;
    bp_buffer text;
    bp_buffer_init(&text, 0);
    bugpack_status status = open_side(&side, path, error);
    if (status == BUGPACK_OK) {
        status = take_artefact(&side, BP_DIFF_HEAP, &text, error);
    }
    const bp_diff_presence *presence = &side.presence[BP_DIFF_HEAP];
    if (status == BUGPACK_OK && !presence->is_there) {
        status = bp_fail(error, BUGPACK_ERR_CORRUPT, "no heap-state.json in \"%s\"%s%s", path,
                         presence->reason[0] != '\0' ? ": " : "", presence->reason);
    }
    if (status == BUGPACK_OK) {
        status = read_heap(&text, path, ret_state, error);
    }
    bp_buffer_release(&text);
    release_side(&side);
    return status;
}

/* --- what two reports are of, and in which members their documents differ ----------------- */

static const size_t process_tree_bytes = (size_t)16 << 20;

static const bp_json_diff_rule rules[] = {
    {"metadata.json", "app platform tags exit", "", false},
    {"manifest.json", "triggers", "first last reports written", false},
    {"process.json", "", "pid parent_pid started_at address state", false},
    {"session.json", "", "", false},
    {"channel-state.json", "", "", false},
    {"system.json", "distribution kernel cpus container swap cgroups pressure", "", false}};

static bp_diff_same compare_texts(const char *before, const char *after) {
    if (before == NULL || after == NULL || before[0] == '\0' || after[0] == '\0') {
        return BP_SAME_UNKNOWN;
    }
    return strcmp(before, after) == 0 ? BP_SAME_YES : BP_SAME_NO;
}

static const bp_json_tree *metadata_of(const bp_diff_side *side) {
    return side->report != NULL ? bp_report_file_metadata(side->report) : NULL;
}

/* From the metadata: all but the build, which compare_documents completes. */
static bp_diff_relation relate(const bp_diff_side *before, const bp_diff_side *after) {
    const bp_json_tree *one = metadata_of(before), *other = metadata_of(after);
    const bp_json_tree *old_app = bp_json_tree_object(one, "app");
    const bp_json_tree *new_app = bp_json_tree_object(other, "app");
    uint64_t pids[2];
    bp_diff_relation relation = {.program =
                                     compare_texts(before->facts.app_name, after->facts.app_name),
                                 .build = compare_texts(bp_json_tree_text(old_app, "build_id"),
                                                        bp_json_tree_text(new_app, "build_id")),
                                 .session = compare_texts(bp_json_tree_text(one, "session_id"),
                                                          bp_json_tree_text(other, "session_id"))};
    if (relation.build == BP_SAME_UNKNOWN &&
        compare_texts(bp_json_tree_text(old_app, "version"),
                      bp_json_tree_text(new_app, "version")) == BP_SAME_NO) {
        relation.build = BP_SAME_NO;
    }
    /* Each report that is taken from outside has a session of its own. */
    if (bp_json_tree_uint(one, "pid", &pids[0]) && bp_json_tree_uint(other, "pid", &pids[1]) &&
        pids[0] == pids[1] &&
        compare_texts(bp_json_tree_text(one, "started_at"),
                      bp_json_tree_text(other, "started_at")) == BP_SAME_YES) {
        relation.session = BP_SAME_YES;
    }
    return relation;
}

/* The build id of the executable among the loaded objects; NULL for none. */
static const char *find_build_id(const bp_json_tree *process) {
    const char *executable = bp_json_tree_text(process, "executable");
    const bp_json_tree *row = bp_json_tree_rows(process, "loaded_objects");
    while (row != NULL && executable != NULL &&
           strcmp(bp_json_tree_text_or(row, "path", ""), executable) != 0) {
        row = bp_json_tree_next(row);
    }
    return row != NULL && executable != NULL ? bp_json_tree_text(row, "build_id") : NULL;
}

static void relate_builds(const bp_buffer texts[2], bp_diff_relation *relation) {
    char ids[2][256] = {"", ""};
    for (size_t i = 0; i < 2; i++) { /* one tree at a time */
        bp_json_tree *tree = NULL;
        (void)bp_json_tree_read_within(bp_buffer_text(&texts[i]), texts[i].size, process_tree_bytes,
                                       &tree, NULL);
        const char *id = find_build_id(tree);
        (void)snprintf(ids[i], sizeof ids[i], "%s", id != NULL ? id : "");
        bp_json_tree_free(tree);
    }
    if (relation->build == BP_SAME_UNKNOWN) {
        relation->build = compare_texts(ids[0], ids[1]);
    }
}

/* A document that only one side has. */
static bugpack_status add_entry(const char *entry, bool is_before, bp_json_differences *list,
                                bugpack_error *error) {
    static const bp_json_token present = {BP_JSON_SCALAR, "\"present\"", 9};
    static const bp_buffer no_path = {0};
    return bp_json_differences_add(list, entry, &no_path, is_before ? &present : NULL,
                                   is_before ? NULL : &present)
               ? BUGPACK_OK
               : bp_fail_memory(error, "compare two reports");
}

static bugpack_status compare_document(const bp_diff_side *sides[2], const bp_json_diff_rule *rule,
                                       bp_diff_relation *relation, bp_json_differences *list,
                                       bugpack_error *error) {
    bp_buffer texts[2];
    bool is_there[2];
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < 2; i++) {
        bp_buffer_init(&texts[i], BP_JSON_DIFF_SIDE_BYTES);
        is_there[i] = bp_report_file_has(sides[i]->report, rule->entry, NULL);
    }
    if (is_there[0] != is_there[1]) {
        return add_entry(rule->entry, is_there[0], list, error);
    }
    for (size_t i = 0; i < 2 && is_there[i] && status == BUGPACK_OK; i++) {
        status = bp_report_file_read(sides[i]->report, rule->entry, &texts[i], error);
    }
    if (is_there[0] && status == BUGPACK_OK) {
        status = bp_json_diff(&texts[0], &texts[1], rule, list, error);
    }
    if (is_there[0] && status == BUGPACK_OK && strcmp(rule->entry, "process.json") == 0) {
        relate_builds(texts, relation);
    }
    bp_buffer_release(&texts[0]);
    bp_buffer_release(&texts[1]);
    return status;
}

/* One that only one side has is a row with an empty path. */
static bugpack_status compare_documents(const bp_diff_side *before, const bp_diff_side *after,
                                        bp_diff_relation *relation, bp_json_differences *list,
                                        bugpack_error *error) {
    const bp_diff_side *sides[2] = {before, after};
    bugpack_status status = BUGPACK_OK;
    if (before->report == NULL || after->report == NULL) {
        return BUGPACK_OK;
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && status == BUGPACK_OK; i++) {
        status = compare_document(sides, &rules[i], relation, list, error);
    }
    return status;
}

static bugpack_status compare_threads(const bp_buffer *before, const bp_buffer *after,
                                      const bp_diff_relation *relation, bp_json_differences *list,
                                      bugpack_error *error) {
    bool is_one_process = relation->session == BP_SAME_YES;
    /* cpu_percent tells of the same. */
#define OVER_WINDOW                                                                                \
    "cpu_ms born_in_window age_ms user_ms system_ms voluntary_switches involuntary_switches"
    const bp_json_diff_rule rule = {"runtime-metrics.json", "threads",
                                    is_one_process ? OVER_WINDOW : "tid " OVER_WINDOW,
                                    !is_one_process};
#undef OVER_WINDOW
    return bp_json_diff(before, after, &rule, list, error);
}

/* --- where the CPU time went ---------------------------------------------------------------- */

static bugpack_status add_stack(void *context, const char *line, size_t line_bytes) {
    return bp_call_tree_add(context, line, line_bytes);
}

/* To be released whatever is returned. */
static bugpack_status read_profile(const bp_diff_side *side, bp_call_tree *ret_profile,
                                   bugpack_error *error) {
    bp_line_stream lines;
    bp_line_stream_init(&lines, add_stack, ret_profile);
    bugpack_status status = bp_report_file_stream(side->report, profile_name, document_max_bytes,
                                                  bp_line_stream_write, &lines, error);
    bp_line_stream_release(&lines);
    return status == BUGPACK_OK && bp_call_tree_end(ret_profile) != BUGPACK_OK
               ? bp_fail_memory(error, "compare two reports")
               : status;
}

/* A row where the share of a function itself differs by five points, and by more than three
 * standard deviations of what chance makes of so many samples; and is larger on this side. */
static bugpack_status compare_share(const bp_call_tree profiles[2], size_t larger,
                                    const char *function, bp_json_differences *list,
                                    bugpack_error *error) {
    static const double points_min = 0.05, deviations_min = 3;
    double shares[2], counts[2], total = 0;
    char texts[2][24];
    bp_json_token tokens[2];
    for (size_t i = 0; i < 2; i++) {
        counts[i] = (double)bp_call_tree_samples(&profiles[i]);
        shares[i] = (double)bp_call_tree_self(&profiles[i], function) / counts[i];
        total += shares[i] * counts[i];
        int length = snprintf(texts[i], sizeof texts[i], "%.1f", 100 * shares[i]);
        tokens[i] = (bp_json_token){BP_JSON_SCALAR, texts[i], (size_t)length};
    }
    double share = total / (counts[0] + counts[1]), change = shares[1] - shares[0];
    double variance = share * (1 - share) * (1 / counts[0] + 1 / counts[1]);
    if (shares[larger] - shares[1 - larger] < points_min ||
        change * change < deviations_min * deviations_min * variance) {
        return BUGPACK_OK;
    }
    bp_buffer path;
    bp_buffer_init(&path, BP_CALL_TREE_LABEL_BYTES + sizeof "functions[].self_percent");
    char label[BP_CALL_TREE_LABEL_BYTES];
    bp_utf8_copy(label, sizeof label, function);
    (void)bp_buffer_printf(&path, "functions[%s].self_percent", label);
    bool has_room = path.status == BUGPACK_OK &&
                    bp_json_differences_add(list, profile_name, &path, &tokens[0], &tokens[1]);
    bp_buffer_release(&path);
    return has_room ? BUGPACK_OK : bp_fail_memory(error, "compare two reports");
}

/* One whose share is larger by five points has five percent, as at most twenty can. */
static bugpack_status compare_profiles(const bp_diff_side *before, const bp_diff_side *after,
                                       bp_json_differences *list, bugpack_error *error) {
    enum { top_max = 20 };
    const bp_diff_side *sides[2] = {before, after};
    const bp_call_name *top[top_max];
    bp_call_tree profiles[2] = {{.node_count = 0}, {.node_count = 0}};
    bugpack_status status = BUGPACK_OK;
    bool is_there = true;
    for (size_t i = 0; i < 2; i++) {
        is_there = is_there && sides[i]->report != NULL &&
                   bp_report_file_has(sides[i]->report, profile_name, NULL);
    }
    for (size_t i = 0; i < 2 && is_there && status == BUGPACK_OK; i++) {
        status = read_profile(sides[i], &profiles[i], error);
        is_there = bp_call_tree_samples(&profiles[i]) > 0;
    }
    for (size_t i = 0; i < 2 && is_there && status == BUGPACK_OK; i++) {
        size_t count = bp_call_tree_top(&profiles[i], top, top_max);
        for (size_t at = 0; at < count && status == BUGPACK_OK; at++) {
            const char *function = bp_call_tree_text(&profiles[i], top[at]);
            status = compare_share(profiles, i, function, list, error);
        }
    }
    bp_call_tree_release(&profiles[0]);
    bp_call_tree_release(&profiles[1]);
    return status;
}

/* --- the artefacts with numbers in them --------------------------------------------------- */

void bp_diff_release(bp_diff *diff) {
    release_side(&diff->before);
    release_side(&diff->after);
    for (size_t i = 0; i < diff->counter_count; i++) {
        bp_machine_diff_release(&diff->counters[i].host);
    }
    bp_json_differences_release(&diff->changes);
    memset(diff, 0, sizeof *diff);
}

const char *bp_diff_key_name(bp_machine_key key) {
    static const char *const names[] = {[BP_MACHINE_BY_PROCESS] = "process",
                                        [BP_MACHINE_BY_CGROUP] = "cgroup",
                                        [BP_MACHINE_BY_THREAD] = "thread"};
    return names[key];
}

/* A counter that was not measured on both sides is not compared; each side without it says so. */
static void explain_unmeasured(bp_diff_side *side, const bp_diff_counter *counter,
                               size_t measured_count) {
    bp_diff_presence *presence = &side->presence[BP_DIFF_HOST];
    if (measured_count == 0) {
        presence->is_there = false;
        presence->lacks_counter = true;
        (void)snprintf(presence->reason, sizeof presence->reason,
                       "%s was not measured for any thread", counter->name);
    }
}

/* Each counter reads both captures again: threads take less memory one counter at a time. */
static bugpack_status compare_host(bp_diff *diff, bugpack_error *error) {
    static const bp_json_diff_rule rule = {"host-threads.json", "cgroups pressure", "", false};
    const bp_giver before = {.give = give_host, .context = &diff->before};
    const bp_giver after = {.give = give_host, .context = &diff->after};
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < diff->counter_count && status == BUGPACK_OK; i++) {
        bp_diff_counter *counter = &diff->counters[i];
        bp_machine_diff *host = &counter->host;
        status = bp_machine_diff_compute(&before, &after, diff->key, counter->name, host, error);
        counter->is_compared =
            status == BUGPACK_OK && host->measured_before > 0 && host->measured_after > 0;
        if (status == BUGPACK_OK && i == 0) {
            diff->has_host = counter->is_compared;
            explain_unmeasured(&diff->before, counter, host->measured_before);
            explain_unmeasured(&diff->after, counter, host->measured_after);
            status = bp_json_diff(&host->groups_before, &host->groups_after, &rule, &diff->changes,
                                  error);
        }
        bp_buffer_release(&host->groups_before);
        bp_buffer_release(&host->groups_after);
    }
    return status;
}

static bugpack_status refuse(const char *path, const char *key, const char *expected,
                             bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_CORRUPT, "%s of \"%s\": \"%s\" is not %s",
                   bp_diff_artefact_name(BP_DIFF_METRICS), path, key, expected);
}

/* Reads a runtime-metrics.json. If it says why it has no numbers, its presence becomes false with
 * that reason. CORRUPT for one that is neither, and for numbers that are none; NO_MEMORY. */
static bugpack_status read_metrics(bp_diff *diff, bool is_after, const bp_buffer *text,
                                   bugpack_error *error) {
    enum { PROCESS = BP_DIFF_FIGURE_COUNT, AVAILABLE, REASON, PICKS };
    bp_json_pick picks[PICKS] = {{.path = "process.cpu_percent"}, {.path = "process.rss_kb"},
                                 {.path = "process.vm_size_kb"},  {.path = "process"},
                                 {.path = "available"},           {.path = "reason"}};
    bp_diff_side *side = is_after ? &diff->after : &diff->before;
    bp_diff_presence *presence = &side->presence[BP_DIFF_METRICS];
    bugpack_error detail = BUGPACK_ERROR_INIT;
    if (bp_json_pick_all(bp_buffer_text(text), text->size, picks, PICKS, &detail) != BUGPACK_OK) {
        return explain(side->path, BP_DIFF_METRICS, &detail, error);
    }
    if (bp_json_token_is(&picks[AVAILABLE].token, "false")) {
        bp_json_line_text(&picks[REASON].token, presence->reason, sizeof presence->reason);
        presence->is_there = false;
        return BUGPACK_OK;
    }
    if (!bp_json_token_is(&picks[PROCESS].token, "{")) {
        return refuse(side->path, "process", "an object", error);
    }
    for (size_t i = 0; i < BP_DIFF_FIGURE_COUNT; i++) {
        bp_diff_figure *figure = &diff->figures[i];
        bp_change *change = &figure->change;
        bool *is_known = is_after ? &change->is_known_after : &change->is_known_before;
        *is_known = picks[i].token.byte_count > 0;
        if (*is_known && !bp_json_token_fixed(&picks[i].token, figure->decimals,
                                              is_after ? &change->after : &change->before)) {
            return refuse(side->path, figure->key, "a number of the range it can have", error);
        }
        bp_change_complete(change);
    }
    return BUGPACK_OK;
}

static bugpack_status compare_metrics(bp_diff *diff, const bp_buffer *before,
                                      const bp_buffer *after, bugpack_error *error) {
    static const bp_diff_figure figures[BP_DIFF_FIGURE_COUNT] = {
        {.key = "cpu_percent", .decimals = 2}, {.key = "rss_kb"}, {.key = "vm_size_kb"}};
    memcpy(diff->figures, figures, sizeof figures);
    bugpack_status status = read_metrics(diff, false, before, error);
    if (status == BUGPACK_OK) {
        status = read_metrics(diff, true, after, error);
    }
    diff->has_metrics = status == BUGPACK_OK && diff->before.presence[BP_DIFF_METRICS].is_there &&
                        diff->after.presence[BP_DIFF_METRICS].is_there;
    return diff->has_metrics
               ? compare_threads(before, after, &diff->relation, &diff->changes, error)
               : status;
}

static bugpack_status compare_heap(bp_diff *diff, const bp_buffer *before, const bp_buffer *after,
                                   bugpack_error *error) {
    bugpack_status status = read_heap(before, diff->before.path, &diff->heap_before, error);
    if (status == BUGPACK_OK) {
        status = read_heap(after, diff->after.path, &diff->heap_after, error);
    }
    diff->has_heap = status == BUGPACK_OK;
    return status;
}

typedef bugpack_status compare_function(bp_diff *, const bp_buffer *before, const bp_buffer *after,
                                        bugpack_error *);

/* Compares one artefact where both sides have it. */
static bugpack_status compare_artefact(bp_diff *diff, bp_diff_artefact artefact,
                                       bugpack_error *error) {
    static compare_function *const compare[] = {
        [BP_DIFF_METRICS] = compare_metrics, [BP_DIFF_HEAP] = compare_heap};
    if (!diff->before.presence[artefact].is_there || !diff->after.presence[artefact].is_there) {
        return BUGPACK_OK;
    }
    if (artefact == BP_DIFF_HOST) {
        return compare_host(diff, error);
    }
    bp_buffer before, after;
    bp_buffer_init(&after, 0);
    bugpack_status status = take_artefact(&diff->before, artefact, &before, error);
    if (status == BUGPACK_OK) {
        status = take_artefact(&diff->after, artefact, &after, error);
    }
    if (status == BUGPACK_OK) {
        status = compare[artefact](diff, &before, &after, error);
    }
    bp_buffer_release(&before);
    bp_buffer_release(&after);
    return status;
}

/* Divides the names of counters. */
static bugpack_status set_counters(bp_diff *diff, const char *counters, bugpack_error *error) {
    char name[sizeof diff->counters[0].name];
    size_t length;
    for (const char *at = counters;; at += length + 1) {
        length = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : 0, at);
        if (!bp_machine_diff_has_counter(name)) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "there is no counter \"%.*s\"", (int)length,
                           at);
        }
        if (diff->counter_count == BP_DIFF_COUNTER_MAX) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "there are over %d counters",
                           BP_DIFF_COUNTER_MAX);
        }
        memcpy(diff->counters[diff->counter_count++].name, name, sizeof name);
        if (at[length] == '\0') {
            return BUGPACK_OK;
        }
    }
}

/* Two reports that have none of the artefacts, as of processes that died, have their documents. */
static bool are_alike(const bp_diff *diff) {
    bool have_none = diff->before.report != NULL && diff->after.report != NULL;
    for (int i = 0; i < BP_DIFF_ARTEFACT_COUNT; i++) {
        const bp_diff_presence *before = &diff->before.presence[i];
        const bp_diff_presence *after = &diff->after.presence[i];
        have_none &= !before->is_there && !after->is_there && !before->lacks_counter &&
                     !after->lacks_counter;
    }
    return have_none;
}

bugpack_status bp_diff_compute(const char *before_path, const char *after_path, bp_machine_key key,
                               const char *counters, bp_diff *ret_diff, bugpack_error *error) {
    bp_diff diff = {.key = key};
    bp_json_differences_init(&diff.changes);
    bugpack_status status = set_counters(&diff, counters, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = open_side(&diff.before, before_path, error);
    if (status == BUGPACK_OK) {
        status = open_side(&diff.after, after_path, error);
    }
    if (status == BUGPACK_OK) {
        diff.relation = relate(&diff.before, &diff.after);
        status = compare_documents(&diff.before, &diff.after, &diff.relation, &diff.changes, error);
    }
    if (status == BUGPACK_OK) {
        status = compare_profiles(&diff.before, &diff.after, &diff.changes, error);
    }
    for (int i = 0; i < BP_DIFF_ARTEFACT_COUNT && status == BUGPACK_OK; i++) {
        status = compare_artefact(&diff, (bp_diff_artefact)i, error);
    }
    if (status != BUGPACK_OK) {
        bp_diff_release(&diff);
        return status;
    }
    diff.has_any = diff.has_host || diff.has_metrics || diff.has_heap || are_alike(&diff);
    *ret_diff = diff;
    return BUGPACK_OK;
}

static bool has_changed_rows(const bp_machine_diff *host) {
    size_t i = 0;
    while (i < host->row_count && !bp_machine_row_is_changed(&host->rows[i])) {
        i++;
    }
    return i < host->row_count;
}

bool bp_diff_is_equal(const bp_diff *diff) {
    bool is_equal = diff->changes.count == diff->changes.redacted_count && !diff->changes.is_cut;
    for (int i = 0; i < BP_DIFF_ARTEFACT_COUNT; i++) {
        is_equal &= diff->before.presence[i].is_there == diff->after.presence[i].is_there ||
                    diff->before.report == NULL || diff->after.report == NULL;
    }
    for (size_t i = 0; diff->has_metrics && i < BP_DIFF_FIGURE_COUNT; i++) {
        const bp_change *change = &diff->figures[i].change;
        is_equal &=
            change->is_known_before == change->is_known_after && change->before == change->after;
    }
    for (size_t i = 0; i < diff->counter_count; i++) {
        is_equal &= !diff->counters[i].is_compared || !has_changed_rows(&diff->counters[i].host);
    }
    for (size_t i = 0; diff->has_heap && i < BP_HEAP_NUMBER_COUNT; i++) {
        is_equal &=
            bp_heap_number_get(&diff->heap_before, i) == bp_heap_number_get(&diff->heap_after, i);
    }
    return is_equal && (!diff->has_heap ||
                        strcmp(diff->heap_before.allocator, diff->heap_after.allocator) == 0);
}
