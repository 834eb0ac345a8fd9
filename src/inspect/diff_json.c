#include "inspect/diff.h"
#include "model/fields.h"
#include "model/heap_state.h"
#include "model/metadata.h"
#include "json/json.h"

static void add_side(bp_json *json, const char *key, const bp_diff_side *side) {
    bp_json_object_begin(json, key);
    bp_json_quote(json, false);
    bp_json_add_text(json, "path", side->path);
    bp_json_quote(json, true);
    bp_model_add_known_text(json, "report_id", side->facts.report_id);
    bp_model_add_known_text(json, "app", side->facts.app_name);
    bp_model_add_known_text(json, "timestamp", side->facts.timestamp);
    bp_json_object_end(json);
}

/* Ten to the power of `decimals`. */
static double scale_of(unsigned decimals) {
    double scale = 1;
    for (unsigned i = 0; i < decimals; i++) {
        scale *= 10;
    }
    return scale;
}

static void add_value(bp_json *json, const char *key, uint64_t value, unsigned decimals) {
    if (decimals == 0) {
        bp_json_add_uint(json, key, value);
    } else {
        bp_json_add_number(json, key, (double)value / scale_of(decimals), decimals);
    }
}

/* What is not known is left out. */
static void add_change(bp_json *json, const bp_change *change, unsigned decimals) {
    if (change->is_known_before) {
        add_value(json, "before", change->before, decimals);
    }
    if (change->is_known_after) {
        add_value(json, "after", change->after, decimals);
    }
    if (change->has_delta && decimals == 0) {
        bp_json_add_int(json, "delta", change->delta);
    } else if (change->has_delta) {
        bp_json_add_number(json, "delta", (double)change->delta / scale_of(decimals), decimals);
    }
    if (change->has_percent) {
        bp_json_add_number(json, "percent", change->percent, 2);
    }
}

static void add_rest(bp_json *json, const char *key, const bp_machine_rest *rest) {
    if (rest->measured_count > 0) {
        bp_json_add_uint(json, key, rest->value);
    }
}

static void add_host(bp_json *json, const char *key, const bp_diff *diff, size_t index,
                     size_t limit) {
    const bp_machine_diff *host = &diff->counters[index].host;
    size_t count = host->row_count < limit ? host->row_count : limit;
    bp_json_object_begin(json, key);
    bp_json_add_text(json, "by", bp_diff_key_name(diff->key));
    bp_json_add_text(json, "counter", diff->counters[index].name);
    bp_json_add_text(json, "aggregation", host->is_maximum ? "maximum" : "sum");
    bp_json_add_bool(json, "same_boot", host->is_same_boot);
    bp_json_add_bool(json, "complete", host->is_complete_before && host->is_complete_after);
    bp_json_add_uint(json, "group_count", host->row_count);
    bp_json_array_begin(json, "groups");
    for (size_t i = 0; i < count; i++) {
        const bp_machine_row *row = &host->rows[i];
        bp_json_object_begin(json, NULL);
        bp_json_add_text(json, "name", row->name);
        bp_json_add_uint(json, "threads_before", row->threads_before);
        bp_json_add_uint(json, "threads_after", row->threads_after);
        bp_json_add_uint(json, "threads_in_both", row->threads_in_both);
        bp_json_add_uint(json, "threads_ended", row->ended.count);
        bp_json_add_uint(json, "threads_born", row->born.count);
        bp_json_add_uint(json, "threads_not_compared", row->not_compared_count);
        add_change(json, &row->change, 0);
        add_rest(json, "ended", &row->ended);
        add_rest(json, "born", &row->born);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
    bp_json_object_end(json);
}

static void add_metrics(bp_json *json, const bp_diff *diff) {
    bp_json_object_begin(json, "runtime_metrics");
    for (size_t i = 0; i < BP_DIFF_FIGURE_COUNT; i++) {
        bp_json_object_begin(json, diff->figures[i].key);
        add_change(json, &diff->figures[i].change, diff->figures[i].decimals);
        bp_json_object_end(json);
    }
    bp_json_object_end(json);
}

static void add_heap_number(bp_json *json, const char *key, uint64_t before, uint64_t after) {
    bp_change change = {.before = before,
                        .after = after,
                        .is_known_before = before != BUGPACK_HEAP_UNKNOWN,
                        .is_known_after = after != BUGPACK_HEAP_UNKNOWN};
    bp_change_complete(&change);
    bp_json_object_begin(json, key);
    add_change(json, &change, 0);
    bp_json_object_end(json);
}

static void add_heap(bp_json *json, const bugpack_heap_state *before,
                     const bugpack_heap_state *after) {
    bp_json_object_begin(json, "heap_state");
    bp_json_object_begin(json, "allocator");
    bp_model_add_known_text(json, "before", before->allocator);
    bp_model_add_known_text(json, "after", after->allocator);
    bp_json_object_end(json);
    for (size_t i = 0; i < BP_HEAP_NUMBER_COUNT; i++) {
        add_heap_number(json, bp_heap_number_keys[i], bp_heap_number_get(before, i),
                        bp_heap_number_get(after, i));
    }
    bp_json_object_end(json);
}

static void add_absence(bp_json *json, const char *artefact, const char *side,
                        const bp_diff_presence *presence) {
    bp_json_object_begin(json, NULL);
    bp_json_add_text(json, "artefact", artefact);
    bp_json_add_text(json, "missing", side);
    bp_model_add_known_text(json, "reason", presence->reason);
    bp_json_object_end(json);
}

/* What only one side has. */
static void add_absences(bp_json *json, const bp_diff *diff) {
    bp_json_array_begin(json, "not_compared");
    for (int i = 0; i < BP_DIFF_ARTEFACT_COUNT; i++) {
        const bp_diff_presence *before = &diff->before.presence[i];
        const bp_diff_presence *after = &diff->after.presence[i];
        const char *name = bp_diff_artefact_name((bp_diff_artefact)i);
        if (!before->is_there && (after->is_there || before->reason[0] != '\0')) {
            add_absence(json, name, "before", before);
        }
        if (!after->is_there && (before->is_there || after->reason[0] != '\0')) {
            add_absence(json, name, "after", after);
        }
    }
    bp_json_array_end(json);
}

/* The counters after the first that were measured on both sides. */
static void add_further(bp_json *json, const bp_diff *diff, size_t limit) {
    if (diff->counter_count > 1) {
        bp_json_array_begin(json, "host_counters");
        for (size_t i = 1; i < diff->counter_count; i++) {
            if (diff->counters[i].is_compared) {
                add_host(json, NULL, diff, i, limit);
            }
        }
        bp_json_array_end(json);
    }
}

static void add_relation(bp_json *json, const bp_diff_relation *relation) {
    const struct {
        const char *key;
        bp_diff_same same;
    } rows[] = {{"same_program", relation->program},
                {"same_build", relation->build},
                {"same_session", relation->session}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].same != BP_SAME_UNKNOWN) {
            bp_json_add_bool(json, rows[i].key, rows[i].same == BP_SAME_YES);
        }
    }
}

static void add_changes(bp_json *json, const bp_json_differences *list) {
    const char *texts = bp_buffer_text(&list->texts);
    bp_json_add_bool(json, "changes_complete", !list->is_cut);
    bp_json_array_begin(json, "changes");
    for (size_t i = 0; i < list->count; i++) {
        const bp_json_difference *row = &list->rows[i];
        bp_json_object_begin(json, NULL);
        bp_json_add_text(json, "entry", row->entry);
        bp_json_add_text(json, "path", texts + row->path);
        if (row->is_redacted) {
            bp_json_add_bool(json, "redacted", true);
        } else if (row->is_number) {
            add_change(json, &row->change, row->decimals);
        } else {
            if (row->has_before) {
                bp_json_add_raw(json, "before", texts + row->before);
            }
            if (row->has_after) {
                bp_json_add_raw(json, "after", texts + row->after);
            }
        }
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

bugpack_status bp_diff_json(const bp_diff *diff, size_t limit, char **ret_text, size_t *ret_bytes,
                            bugpack_error *error) {
    bp_buffer out;
    bp_buffer_init(&out, SIZE_MAX / 4);
    bp_json json;
    bp_json_begin(&json, &out);
    bp_json_add_int(&json, "schema", BP_SCHEMA_NUMBER);
    add_side(&json, "before", &diff->before);
    add_side(&json, "after", &diff->after);
    bp_json_add_bool(&json, "equal", bp_diff_is_equal(diff));
    add_relation(&json, &diff->relation);
    if (diff->has_host) {
        add_host(&json, "host_threads", diff, 0, limit);
    }
    add_further(&json, diff, limit);
    if (diff->has_metrics) {
        add_metrics(&json, diff);
    }
    if (diff->has_heap) {
        add_heap(&json, &diff->heap_before, &diff->heap_after);
    }
    add_changes(&json, &diff->changes);
    add_absences(&json, diff);
    bugpack_status status = bp_json_finish(&json, error);
    if (status != BUGPACK_OK) {
        bp_buffer_release(&out);
        return status;
    }
    *ret_text = out.data;
    *ret_bytes = out.size;
    return BUGPACK_OK;
}
