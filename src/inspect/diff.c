#include "inspect/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "inspect/diff_source.h"

void bp_diff_release(bp_diff *diff) {
    bp_diff_side_release(&diff->before);
    bp_diff_side_release(&diff->after);
    bp_host_diff_release(&diff->host);
    memset(diff, 0, sizeof *diff);
}

const char *bp_diff_key_name(bp_host_key key) {
    return key == BP_HOST_BY_PROCESS ? "process" : key == BP_HOST_BY_CGROUP ? "cgroup" : "thread";
}

/* A counter that was not measured on both sides is not compared; each side without it says so. */
static void drop_unmeasured_host(bp_diff *diff) {
    const struct {
        bp_diff_side *side;
        size_t measured_count;
    } sides[] = {{&diff->before, diff->host.measured_before},
                 {&diff->after, diff->host.measured_after}};
    diff->has_host = true;
    for (size_t i = 0; i < 2; i++) {
        bp_diff_presence *presence = &sides[i].side->presence[BP_DIFF_HOST];
        if (sides[i].measured_count == 0) {
            diff->has_host = false;
            presence->is_there = false;
            presence->lacks_counter = true;
            (void)snprintf(presence->reason, sizeof presence->reason,
                           "%s was not measured for any thread", diff->counter);
        }
    }
}

static bugpack_status compare_host(bp_diff *diff, const bp_buffer *before, const bp_buffer *after,
                                   bugpack_error *error) {
    bugpack_status status =
        bp_host_diff_compute(bp_buffer_text(before), before->size, bp_buffer_text(after),
                             after->size, diff->key, diff->counter, &diff->host, error);
    if (status == BUGPACK_OK) {
        drop_unmeasured_host(diff);
    }
    return status;
}

static bugpack_status compare_metrics(bp_diff *diff, const bp_buffer *before,
                                      const bp_buffer *after, bugpack_error *error) {
    bp_diff_presence *presence_before = &diff->before.presence[BP_DIFF_METRICS];
    bp_diff_presence *presence_after = &diff->after.presence[BP_DIFF_METRICS];
    bp_diff_value old_values[BP_DIFF_FIGURE_COUNT], new_values[BP_DIFF_FIGURE_COUNT];
    bugpack_status status =
        bp_diff_read_metrics(before, diff->before.path, old_values, presence_before, error);
    if (status == BUGPACK_OK) {
        status = bp_diff_read_metrics(after, diff->after.path, new_values, presence_after, error);
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
    static compare_function *const compare[] = {[BP_DIFF_HOST] = compare_host,
                                                [BP_DIFF_METRICS] = compare_metrics,
                                                [BP_DIFF_HEAP] = compare_heap};
    bp_buffer before, after;
    bp_buffer_init(&after, 0);
    bugpack_status status = bp_diff_side_take(&diff->before, artefact, &before, error);
    if (status == BUGPACK_OK) {
        status = bp_diff_side_take(&diff->after, artefact, &after, error);
    }
    if (status == BUGPACK_OK && diff->before.presence[artefact].is_there &&
        diff->after.presence[artefact].is_there) {
        status = compare[artefact](diff, &before, &after, error);
    }
    bp_buffer_release(&before);
    bp_buffer_release(&after);
    return status;
}

bugpack_status bp_diff_compute(const char *before_path, const char *after_path, bp_host_key key,
                               const char *counter, bp_diff *ret_diff, bugpack_error *error) {
    bp_diff diff = {.key = key, .counter = counter};
    if (!bp_host_diff_has_counter(counter)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "there is no counter \"%s\"", counter);
    }
    bugpack_status status = bp_diff_side_open(&diff.before, before_path, error);
    if (status == BUGPACK_OK) {
        status = bp_diff_side_open(&diff.after, after_path, error);
    }
    for (int i = 0; i < BP_DIFF_ARTEFACT_COUNT && status == BUGPACK_OK; i++) {
        status = compare_artefact(&diff, (bp_diff_artefact)i, error);
    }
    if (status != BUGPACK_OK) {
        bp_diff_release(&diff);
        return status;
    }
    diff.has_any = diff.has_host || diff.has_metrics || diff.has_heap;
    *ret_diff = diff;
    return BUGPACK_OK;
}
