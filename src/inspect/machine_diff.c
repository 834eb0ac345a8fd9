#include "inspect/machine_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/machine_threads.h"

/* What has become of a thread. */
typedef enum thread_fate { FATE_IN_BOTH, FATE_ENDED, FATE_BORN, FATE_UNCLEAR } thread_fate;

typedef struct pairing {
    const char *name;
    thread_fate fate;
    const bp_machine_reading *before, *after; /* NULL where it is not */
} pairing;

/* How the values of a group's threads make one, and what counts as a change of it. */
typedef enum counter_kind {
    KIND_TOTAL,  /* counts from the start of a thread; added up */
    KIND_LEVEL,  /* holds now, such as memory; added up */
    KIND_MAXIMUM /* the largest so far; never added up */
} counter_kind;

static counter_kind kind_of(bp_machine_counter counter) {
    static const char suffix[] = "_max_ns";
    const char *key = bp_machine_counter_key(counter);
    size_t length = strlen(key);
    if (bp_machine_counter_group(counter) == BP_MACHINE_MEMORY) {
        return KIND_LEVEL;
    }
    return length >= sizeof suffix && strcmp(key + length - (sizeof suffix - 1), suffix) == 0
               ? KIND_MAXIMUM
               : KIND_TOTAL;
}

/* Finds a counter by its name in the JSON. */
static bool find_counter(const char *counter, bp_machine_counter *ret_counter) {
    for (size_t i = 0; i < BP_MACHINE_COUNTER_COUNT; i++) {
        const char *group = bp_machine_group_name(bp_machine_counter_group((bp_machine_counter)i));
        size_t group_bytes = strlen(group);
        if (strncmp(counter, group, group_bytes) == 0 && counter[group_bytes] == '.' &&
            strcmp(counter + group_bytes + 1, bp_machine_counter_key((bp_machine_counter)i)) == 0) {
            *ret_counter = (bp_machine_counter)i;
            return true;
        }
    }
    return false;
}

bool bp_machine_diff_has_counter(const char *counter) {
    bp_machine_counter found;
    return find_counter(counter, &found);
}

bool bp_machine_diff_name_counter(size_t index, char *out, size_t out_bytes) {
    if (index >= BP_MACHINE_COUNTER_COUNT) {
        return false;
    }
    bp_machine_counter counter = (bp_machine_counter)index;
    (void)snprintf(out, out_bytes, "%s.%s",
                   bp_machine_group_name(bp_machine_counter_group(counter)),
                   bp_machine_counter_key(counter));
    return true;
}

bool bp_machine_row_is_changed(const bp_machine_row *row) {
    return (row->change.has_delta && row->change.delta != 0) || row->ended.measured_count > 0 ||
           row->born.measured_count > 0;
}

bool bp_machine_row_is_unknown(const bp_machine_row *row) {
    return !row->change.has_delta && row->not_compared_count > 0 &&
           row->ended.measured_count == 0 && row->born.measured_count == 0;
}

void bp_machine_diff_release(bp_machine_diff *diff) {
    free(diff->rows);
    bp_buffer_release(&diff->names_before);
    bp_buffer_release(&diff->names_after);
    bp_buffer_release(&diff->groups_before);
    bp_buffer_release(&diff->groups_after);
    *diff = (bp_machine_diff){.rows = NULL};
}

static uint64_t merge(uint64_t one, uint64_t other, bool is_maximum) {
    if (is_maximum) {
        return one > other ? one : other;
    }
    return other > UINT64_MAX - one ? UINT64_MAX : one + other;
}

static const char *name_of(const bp_captured_host *capture, const bp_machine_reading *thread) {
    return bp_buffer_text(&capture->names) + thread->name_offset;
}

/* Captures without a boot id are of different boots if the machine's age fell while time passed. */
static bool are_same_boot(const bp_captured_host *before, const bp_captured_host *after) {
    if (before->boot_id[0] != '\0' && after->boot_id[0] != '\0') {
        return strcmp(before->boot_id, after->boot_id) == 0;
    }
    return !before->has_uptime || !after->has_uptime ||
           after->uptime_ticks >= before->uptime_ticks ||
           strcmp(before->captured_at, after->captured_at) >= 0;
}

static bool are_swapped(const bp_captured_host *before, const bp_captured_host *after) {
    return before->has_uptime && after->has_uptime && after->uptime_ticks < before->uptime_ticks;
}

/* A thread that is only in the first capture. Without its start it may be in the other as well. */
static thread_fate fate_of_missing(const bp_machine_reading *thread, const bp_captured_host *before,
                                   const bp_captured_host *after, bool is_same_boot) {
    if (!is_same_boot) {
        return FATE_ENDED;
    }
    return thread->identity.has_start && after->is_complete && !are_swapped(before, after)
               ? FATE_ENDED
               : FATE_UNCLEAR;
}

/*
 * A thread that is only in the second. If it is older than the first capture, that one missed it;
 * one tick is the difference that rounding can make.
 */
static thread_fate fate_of_new(const bp_machine_reading *thread, const bp_captured_host *before,
                               const bp_captured_host *after, bool is_same_boot) {
    if (!is_same_boot) {
        return FATE_BORN;
    }
    bool is_newer = !before->has_uptime || thread->identity.start_ticks >= before->uptime_ticks ||
                    before->uptime_ticks - thread->identity.start_ticks == 1;
    return thread->identity.has_start && is_newer && !are_swapped(before, after) ? FATE_BORN
                                                                                 : FATE_UNCLEAR;
}

/* Pairs the threads of both captures, ascending by identity. Returns how many there are. */
static size_t pair_threads(const bp_captured_host *before, const bp_captured_host *after,
                           bool is_same_boot, pairing *pairs) {
    size_t count = 0;
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        const bp_machine_reading *old_thread = i < before->count ? &before->threads[i] : NULL;
        const bp_machine_reading *new_thread = j < after->count ? &after->threads[j] : NULL;
        int order = old_thread == NULL ? 1
                    : new_thread == NULL
                        ? -1
                        : bp_captured_id_compare(&old_thread->identity, &new_thread->identity);
        pairing *pair = &pairs[count++];
        if (order == 0 && is_same_boot && old_thread->identity.has_start) {
            *pair = (pairing){name_of(after, new_thread), FATE_IN_BOTH, old_thread, new_thread};
            i++;
            j++;
        } else if (order <= 0) {
            *pair = (pairing){name_of(before, old_thread),
                              fate_of_missing(old_thread, before, after, is_same_boot), old_thread,
                              NULL};
            i++;
        } else {
            *pair =
                (pairing){name_of(after, new_thread),
                          fate_of_new(new_thread, before, after, is_same_boot), NULL, new_thread};
            j++;
        }
    }
    return count;
}

static void add_rest(bp_machine_row *row, bp_machine_rest *rest, const bp_machine_reading *thread,
                     bool is_maximum) {
    rest->count++;
    if (thread->is_measured) {
        rest->value = merge(rest->value, thread->value, is_maximum);
        rest->measured_count++;
    } else {
        row->not_compared_count += thread->is_expected;
    }
}

static void add_pair(bp_machine_row *row, const pairing *pair, bool is_maximum) {
    const bp_machine_reading *before = pair->before, *after = pair->after;
    bp_change *change = &row->change;
    row->threads_before += before != NULL;
    row->threads_after += after != NULL;
    switch (pair->fate) {
    case FATE_IN_BOTH:
        row->threads_in_both++;
        if (before->is_measured && after->is_measured) {
            change->before = merge(change->before, before->value, is_maximum);
            change->after = merge(change->after, after->value, is_maximum);
            change->is_known_before = change->is_known_after = true;
        } else {
            row->not_compared_count += after->is_expected;
        }
        break;
    case FATE_ENDED:
        add_rest(row, &row->ended, before, is_maximum);
        break;
    case FATE_BORN:
        add_rest(row, &row->born, after, is_maximum);
        break;
    case FATE_UNCLEAR:
        row->not_compared_count += (before != NULL ? before : after)->is_expected;
        break;
    }
}

static int compare_pairs(const void *one, const void *other) {
    return strcmp(((const pairing *)one)->name, ((const pairing *)other)->name);
}

/* Makes a row for each name. */
static void fold(pairing *pairs, size_t pair_count, bp_machine_diff *diff) {
    if (pair_count > 0) {
        qsort(pairs, pair_count, sizeof *pairs, compare_pairs);
    }
    for (size_t i = 0; i < pair_count; i++) {
        if (i == 0 || strcmp(pairs[i].name, pairs[i - 1].name) != 0) {
            diff->rows[diff->row_count++] = (bp_machine_row){.name = pairs[i].name};
        }
        add_pair(&diff->rows[diff->row_count - 1], &pairs[i], diff->is_maximum);
    }
    for (size_t i = 0; i < diff->row_count; i++) {
        bp_change_complete(&diff->rows[i].change);
    }
}

static uint64_t distance(uint64_t one, uint64_t other) {
    return one > other ? one - other : other - one;
}

/*
 * By how much a group changed. What was born counted from 0. What ended had counted before: a level
 * falls by it, a total or a maximum does not.
 */
static uint64_t weight_of(const bp_machine_row *row, counter_kind kind) {
    const bp_change *change = &row->change;
    if (kind == KIND_LEVEL) {
        return distance(merge(change->before, row->ended.value, false),
                        merge(change->after, row->born.value, false));
    }
    return merge(distance(change->before, change->after), row->born.value, kind == KIND_MAXIMUM);
}

/* Largest change first, then what changed at all, then what is known, then by name. */
static int compare_rows(const void *one, const void *other) {
    const bp_machine_row *left = one, *right = other;
    bool is_left_changed = bp_machine_row_is_changed(left);
    bool is_left_unknown = bp_machine_row_is_unknown(left);
    if (left->weight != right->weight) {
        return left->weight > right->weight ? -1 : 1;
    }
    if (is_left_changed != bp_machine_row_is_changed(right)) {
        return is_left_changed ? -1 : 1;
    }
    if (is_left_unknown != bp_machine_row_is_unknown(right)) {
        return is_left_unknown ? 1 : -1;
    }
    return strcmp(left->name, right->name);
}

/* Fills in the rows, and takes the names over. */
static bugpack_status join(bp_captured_host *before, bp_captured_host *after,
                           bp_machine_counter counter, bp_machine_diff *ret_diff,
                           bugpack_error *error) {
    counter_kind kind = kind_of(counter);
    bp_machine_diff diff = {.is_maximum = kind == KIND_MAXIMUM,
                            .is_same_boot = are_same_boot(before, after),
                            .is_complete_before = before->is_complete,
                            .is_complete_after = after->is_complete,
                            .measured_before = before->measured_count,
                            .measured_after = after->measured_count};
    size_t pair_max = before->count + after->count;
    pairing *pairs = calloc(pair_max + 1, sizeof *pairs);
    diff.rows = calloc(pair_max + 1, sizeof *diff.rows);
    if (pairs == NULL || diff.rows == NULL) {
        free(pairs);
        free(diff.rows);
        return bp_fail_memory(error, "compare two captures");
    }
    fold(pairs, pair_threads(before, after, diff.is_same_boot, pairs), &diff);
    free(pairs);
    for (size_t i = 0; i < diff.row_count; i++) {
        diff.rows[i].weight = weight_of(&diff.rows[i], kind);
    }
    qsort(diff.rows, diff.row_count, sizeof *diff.rows, compare_rows);
    bp_buffer_move(&diff.names_before, &before->names);
    bp_buffer_move(&diff.names_after, &after->names);
    bp_buffer_move(&diff.groups_before, &before->groups);
    bp_buffer_move(&diff.groups_after, &after->groups);
    *ret_diff = diff;
    return BUGPACK_OK;
}

static bugpack_status read_side(const char *side, const bp_giver *text, bp_machine_key key,
                                bp_machine_counter counter, bp_captured_host *capture,
                                bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_captured_host_read(text, key, counter, capture, &detail);
    if (status == BUGPACK_ERR_CORRUPT) {
        return bp_fail(error, status, "the capture of %s: %s", side, detail.message);
    }
    if (status != BUGPACK_OK && error != NULL) {
        *error = detail;
    }
    return status;
}

bugpack_status bp_machine_diff_compute(const bp_giver *before, const bp_giver *after,
                                       bp_machine_key key, const char *counter,
                                       bp_machine_diff *ret_diff, bugpack_error *error) {
    bp_captured_host old_capture = {.threads = NULL}, new_capture = {.threads = NULL};
    bp_machine_counter found;
    if (!find_counter(counter, &found)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "there is no counter \"%s\"", counter);
    }
    bugpack_status status = read_side("before", before, key, found, &old_capture, error);
    if (status == BUGPACK_OK) {
        status = read_side("after", after, key, found, &new_capture, error);
    }
    if (status == BUGPACK_OK) {
        status = join(&old_capture, &new_capture, found, ret_diff, error);
    }
    bp_captured_host_release(&old_capture);
    bp_captured_host_release(&new_capture);
    return status;
}
