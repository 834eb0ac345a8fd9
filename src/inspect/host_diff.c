#include "inspect/host_diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "inspect/host_sums.h"

void bp_host_diff_release(bp_host_diff *diff) {
    free(diff->rows);
    bp_buffer_release(&diff->names_before);
    bp_buffer_release(&diff->names_after);
    *diff = (bp_host_diff){.rows = NULL};
}

/* Largest change first, then by name. */
static int compare_rows(const void *one, const void *other) {
    const bp_host_row *left = one;
    const bp_host_row *right = other;
    int order = bp_change_compare(&left->change, &right->change);
    return order != 0 ? order : strcmp(left->name, right->name);
}

/* `before` or `after` is NULL where the capture has no such name: its sum is known to be 0. */
static void fill_row(bp_host_row *row, const bp_host_sum *before, const bp_host_sum *after) {
    row->threads_before = before != NULL ? before->thread_count : 0;
    row->threads_after = after != NULL ? after->thread_count : 0;
    row->change.before = before != NULL ? before->sum : 0;
    row->change.after = after != NULL ? after->sum : 0;
    row->change.is_known_before = before == NULL || before->is_measured;
    row->change.is_known_after = after == NULL || after->is_measured;
    bp_change_complete(&row->change);
}

/* Merges both lists of ascending names, and takes the names over. */
static bugpack_status join(bp_host_sums *before, bp_host_sums *after, bp_host_diff *ret_diff,
                           bugpack_error *error) {
    bp_host_diff diff = {.rows = calloc(before->count + after->count + 1, sizeof *diff.rows)};
    if (diff.rows == NULL) {
        return bp_fail_memory(error, "compare two captures");
    }
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        int order = i == before->count  ? 1
                    : j == after->count ? -1
                                        : strcmp(before->items[i].name, after->items[j].name);
        bp_host_row *row = &diff.rows[diff.row_count++];
        row->name = order <= 0 ? before->items[i].name : after->items[j].name;
        fill_row(row, order <= 0 ? &before->items[i] : NULL, order >= 0 ? &after->items[j] : NULL);
        i += order <= 0;
        j += order >= 0;
    }
    qsort(diff.rows, diff.row_count, sizeof *diff.rows, compare_rows);
    bp_buffer_move(&diff.names_before, &before->names);
    bp_buffer_move(&diff.names_after, &after->names);
    *ret_diff = diff;
    return BUGPACK_OK;
}

static bugpack_status read_side(const char *side, const void *text, size_t text_bytes,
                                bp_host_key key, const char *counter, bp_host_sums *sums,
                                bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_host_sums_read(text, text_bytes, key, counter, sums, &detail);
    if (status == BUGPACK_ERR_CORRUPT) {
        return bp_fail(error, status, "the capture of %s: %s", side, detail.message);
    }
    if (status != BUGPACK_OK && error != NULL) {
        *error = detail;
    }
    return status;
}

bugpack_status bp_host_diff_compute(const void *before, size_t before_bytes, const void *after,
                                    size_t after_bytes, bp_host_key key, const char *counter,
                                    bp_host_diff *ret_diff, bugpack_error *error) {
    bp_host_sums sums_before = {NULL, 0, 0, {0}};
    bp_host_sums sums_after = {NULL, 0, 0, {0}};
    bugpack_status status =
        read_side("before", before, before_bytes, key, counter, &sums_before, error);
    if (status == BUGPACK_OK) {
        status = read_side("after", after, after_bytes, key, counter, &sums_after, error);
    }
    if (status == BUGPACK_OK) {
        status = join(&sums_before, &sums_after, ret_diff, error);
    }
    bp_host_sums_release(&sums_before);
    bp_host_sums_release(&sums_after);
    return status;
}
