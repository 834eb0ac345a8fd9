#include "inspect/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/heap_state.h"

void bp_diff_release(bp_diff *diff) {
    bp_diff_side_release(&diff->before);
    bp_diff_side_release(&diff->after);
    bp_machine_diff_release(&diff->host);
    for (size_t i = 0; i < diff->further_count; i++) {
        bp_machine_diff_release(&diff->further[i].host);
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

/* Each counter reads both captures again: threads take less memory one counter at a time. */
static bugpack_status compare_host(bp_diff *diff, bugpack_error *error) {
    const bp_giver before = bp_diff_side_host(&diff->before);
    const bp_giver after = bp_diff_side_host(&diff->after);
    bugpack_status status =
        bp_machine_diff_compute(&before, &after, diff->key, diff->counter, &diff->host, error);
    if (status == BUGPACK_OK) {
        drop_unmeasured_host(diff);
        status = bp_diff_cgroups(&diff->host.groups_before, &diff->host.groups_after,
                                 &diff->changes, error);
    }
    for (size_t i = 0; i < diff->further_count && status == BUGPACK_OK; i++) {
        bp_diff_counter *further = &diff->further[i];
        status = bp_machine_diff_compute(&before, &after, diff->key, further->name, &further->host,
                                         error);
        bp_buffer_release(&further->host.groups_before);
        bp_buffer_release(&further->host.groups_after);
        further->is_compared = status == BUGPACK_OK && further->host.measured_before > 0 &&
                               further->host.measured_after > 0;
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
    return bp_diff_threads(before, after, &diff->relation, &diff->changes, error);
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
    char name[sizeof diff->counter];
    size_t count = 0, length;
    for (const char *at = counters;; at += length + 1, count++) {
        length = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : 0, at);
        if (!bp_machine_diff_has_counter(name)) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "there is no counter \"%.*s\"", (int)length,
                           at);
        }
        if (count == BP_DIFF_COUNTER_MAX) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "there are over %d counters",
                           BP_DIFF_COUNTER_MAX);
        }
        memcpy(count == 0 ? diff->counter : diff->further[count - 1].name, name, sizeof name);
        if (at[length] == '\0') {
            diff->further_count = count;
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
        diff.relation = bp_diff_relate(&diff.before, &diff.after);
        status = bp_diff_documents(&diff.before, &diff.after, &diff.relation, &diff.changes, error);
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
    is_equal &= !diff->has_host || !has_changed_rows(&diff->host);
    for (size_t i = 0; i < diff->further_count; i++) {
        is_equal &= !diff->further[i].is_compared || !has_changed_rows(&diff->further[i].host);
    }
    for (size_t i = 0; diff->has_heap && i < BP_HEAP_NUMBER_COUNT; i++) {
        is_equal &=
            bp_heap_number_get(&diff->heap_before, i) == bp_heap_number_get(&diff->heap_after, i);
    }
    return is_equal && (!diff->has_heap ||
                        strcmp(diff->heap_before.allocator, diff->heap_after.allocator) == 0);
}

bp_diff bp_diff_with_counter(const bp_diff *diff, size_t further_index) {
    const bp_diff_counter *further = &diff->further[further_index];
    bp_diff other = *diff;
    other.host = further->host;
    memcpy(other.counter, further->name, sizeof other.counter);
    return other;
}
