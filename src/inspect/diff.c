#include "inspect/diff.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "inspect/json_lines.h"
#include "model/heap_state.h"
#include "json/pick.h"

/* --- what two reports are of, and in which members their documents differ ----------------- */

static const size_t document_max_bytes = BP_JSON_DIFF_SIDE_BYTES;
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
    const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(process, "loaded_objects"));
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
        bp_buffer_init(&texts[i], document_max_bytes);
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

/* --- the artefacts with numbers in them --------------------------------------------------- */

void bp_diff_release(bp_diff *diff) {
    bp_diff_side_release(&diff->before);
    bp_diff_side_release(&diff->after);
    for (size_t i = 0; i < diff->counter_count; i++) {
        bp_machine_diff_release(&diff->counters[i].host);
    }
    bp_json_differences_release(&diff->changes);
    memset(diff, 0, sizeof *diff);
}

const char *bp_diff_key_name(bp_machine_key key) {
    return key == BP_MACHINE_BY_PROCESS  ? "process"
           : key == BP_MACHINE_BY_CGROUP ? "cgroup"
                                         : "thread";
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
    const bp_giver before = bp_diff_side_host(&diff->before);
    const bp_giver after = bp_diff_side_host(&diff->after);
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
        return bp_diff_explain(side->path, BP_DIFF_METRICS, &detail, error);
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
    bugpack_status status = bp_diff_read_heap(before, diff->before.path, &diff->heap_before, error);
    if (status == BUGPACK_OK) {
        status = bp_diff_read_heap(after, diff->after.path, &diff->heap_after, error);
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
    bugpack_status status = bp_diff_side_take(&diff->before, artefact, &before, error);
    if (status == BUGPACK_OK) {
        status = bp_diff_side_take(&diff->after, artefact, &after, error);
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
    status = bp_diff_side_open(&diff.before, before_path, error);
    if (status == BUGPACK_OK) {
        status = bp_diff_side_open(&diff.after, after_path, error);
    }
    if (status == BUGPACK_OK) {
        diff.relation = relate(&diff.before, &diff.after);
        status = compare_documents(&diff.before, &diff.after, &diff.relation, &diff.changes, error);
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
