#include "inspect/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "inspect/diff_source.h"

/* A comparison under way. */
typedef struct comparison {
    bp_diff_source before, after;
    bp_diff *diff;
    bugpack_error *error;
} comparison;

static void release_side(bp_diff_side *side) {
    free(side->path);
    free(side->report_id);
    free(side->app_name);
    free(side->timestamp);
}

void bp_diff_release(bp_diff *diff) {
    release_side(&diff->before);
    release_side(&diff->after);
    bp_host_diff_release(&diff->host);
    memset(diff, 0, sizeof *diff);
}

const char *bp_diff_key_name(bp_host_key key) {
    return key == BP_HOST_BY_PROCESS ? "process" : key == BP_HOST_BY_CGROUP ? "cgroup" : "thread";
}

static bugpack_status name_side(const bp_diff_source *source, bp_diff_side *side,
                                bugpack_error *error) {
    bp_report_facts facts = {"", "", "", ""};
    if (source->report != NULL) {
        facts = bp_report_file_facts(source->report);
    }
    side->path = strdup(source->path);
    side->report_id = strdup(facts.report_id);
    side->app_name = strdup(facts.app_name);
    side->timestamp = strdup(facts.timestamp);
    return side->path == NULL || side->report_id == NULL || side->app_name == NULL ||
                   side->timestamp == NULL
               ? bp_fail_memory(error, "compare two reports")
               : BUGPACK_OK;
}

/* A counter that was measured in neither capture is not compared; both sides say why. */
static void drop_unknown_host(bp_diff *diff) {
    for (size_t i = 0; i < diff->host.row_count; i++) {
        if (diff->host.rows[i].change.has_delta) {
            diff->has_host = true;
            return;
        }
    }
    bp_diff_presence *sides[] = {&diff->before.presence[BP_DIFF_HOST],
                                 &diff->after.presence[BP_DIFF_HOST]};
    for (size_t i = 0; i < 2; i++) {
        sides[i]->is_there = false;
        (void)snprintf(sides[i]->reason, sizeof sides[i]->reason,
                       "%s was not measured in both captures", diff->counter);
    }
}

static bugpack_status compare_host(comparison *state, const bp_buffer *before,
                                   const bp_buffer *after) {
    bp_diff *diff = state->diff;
    bugpack_status status =
        bp_host_diff_compute(bp_buffer_text(before), before->size, bp_buffer_text(after),
                             after->size, diff->key, diff->counter, &diff->host, state->error);
    if (status == BUGPACK_OK) {
        drop_unknown_host(diff);
    }
    return status;
}

static bugpack_status compare_metrics(comparison *state, const bp_buffer *before,
                                      const bp_buffer *after) {
    bp_diff *diff = state->diff;
    bp_diff_presence *presence_before = &diff->before.presence[BP_DIFF_METRICS];
    bp_diff_presence *presence_after = &diff->after.presence[BP_DIFF_METRICS];
    bp_diff_value old_values[BP_DIFF_FIGURE_COUNT], new_values[BP_DIFF_FIGURE_COUNT];
    bugpack_status status =
        bp_diff_read_metrics(before, state->before.path, old_values, presence_before, state->error);
    if (status == BUGPACK_OK) {
        status = bp_diff_read_metrics(after, state->after.path, new_values, presence_after,
                                      state->error);
    }
    if (status != BUGPACK_OK || !presence_before->is_there || !presence_after->is_there) {
        return status;
    }
    memcpy(diff->figures, bp_diff_figures, sizeof diff->figures);
    for (size_t i = 0; i < BP_DIFF_FIGURE_COUNT; i++) {
        bp_change *change = &diff->figures[i].change;
        change->before = old_values[i].value;
        change->after = new_values[i].value;
        change->is_known_before = old_values[i].is_known;
        change->is_known_after = new_values[i].is_known;
        bp_change_complete(change);
    }
    diff->has_metrics = true;
    return BUGPACK_OK;
}

static bugpack_status compare_heap(comparison *state, const bp_buffer *before,
                                   const bp_buffer *after) {
    bp_diff *diff = state->diff;
    bugpack_status status =
        bp_diff_read_heap(before, state->before.path, &diff->heap_before, state->error);
    if (status == BUGPACK_OK) {
        status = bp_diff_read_heap(after, state->after.path, &diff->heap_after, state->error);
    }
    diff->has_heap = status == BUGPACK_OK;
    return status;
}

/* Compares one artefact where both sides have it. */
static bugpack_status compare_artefact(comparison *state, bp_diff_artefact artefact) {
    static bugpack_status (*const compare[])(comparison *, const bp_buffer *, const bp_buffer *) = {
        [BP_DIFF_HOST] = compare_host,
        [BP_DIFF_METRICS] = compare_metrics,
        [BP_DIFF_HEAP] = compare_heap};
    bp_diff_presence *presence_before = &state->diff->before.presence[artefact];
    bp_diff_presence *presence_after = &state->diff->after.presence[artefact];
    bp_buffer before, after;
    bp_buffer_init(&after, 0);
    bugpack_status status =
        bp_diff_source_take(&state->before, artefact, &before, presence_before, state->error);
    if (status == BUGPACK_OK) {
        status = bp_diff_source_take(&state->after, artefact, &after, presence_after, state->error);
    }
    if (status == BUGPACK_OK && presence_before->is_there && presence_after->is_there) {
        status = compare[artefact](state, &before, &after);
    }
    bp_buffer_release(&before);
    bp_buffer_release(&after);
    return status;
}

static bugpack_status compare_all(comparison *state) {
    bugpack_status status = name_side(&state->before, &state->diff->before, state->error);
    status =
        status == BUGPACK_OK ? name_side(&state->after, &state->diff->after, state->error) : status;
    for (int i = 0; i < BP_DIFF_ARTEFACT_COUNT && status == BUGPACK_OK; i++) {
        status = compare_artefact(state, (bp_diff_artefact)i);
    }
    state->diff->has_any =
        state->diff->has_host || state->diff->has_metrics || state->diff->has_heap;
    return status;
}

bugpack_status bp_diff_compute(const char *before_path, const char *after_path, bp_host_key key,
                               const char *counter, bp_diff *ret_diff, bugpack_error *error) {
    bp_diff diff = {.key = key, .counter = counter};
    comparison state = {.diff = &diff, .error = error};
    if (!bp_host_diff_has_counter(counter)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "there is no counter \"%s\"", counter);
    }
    bugpack_status status = bp_diff_source_open(before_path, &state.before, error);
    if (status == BUGPACK_OK) {
        status = bp_diff_source_open(after_path, &state.after, error);
    }
    if (status == BUGPACK_OK) {
        status = compare_all(&state);
    }
    bp_diff_source_release(&state.before);
    bp_diff_source_release(&state.after);
    if (status != BUGPACK_OK) {
        bp_diff_release(&diff);
        return status;
    }
    *ret_diff = diff;
    return BUGPACK_OK;
}
