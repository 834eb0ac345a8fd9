#include "inspect/diff_documents.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "inspect/json_diff.h"

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

bp_diff_relation bp_diff_relate(const bp_diff_side *before, const bp_diff_side *after) {
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

bugpack_status bp_diff_documents(const bp_diff_side *before, const bp_diff_side *after,
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

bugpack_status bp_diff_threads(const bp_buffer *before, const bp_buffer *after,
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

bugpack_status bp_diff_cgroups(const bp_buffer *before, const bp_buffer *after,
                               bp_json_differences *list, bugpack_error *error) {
    static const bp_json_diff_rule rule = {"host-threads.json", "cgroups pressure", "", false};
    return bp_json_diff(before, after, &rule, list, error);
}
