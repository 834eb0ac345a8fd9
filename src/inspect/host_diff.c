#include "inspect/host_diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "inspect/host_sums.h"

void bp_host_diff_release(bp_host_diff *diff) {
    free(diff->rows);
    free(diff->names);
    *diff = (bp_host_diff){NULL, 0, NULL};
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

/* Merges both lists of ascending names. */
static bugpack_status join(const bp_host_sums *before, const bp_host_sums *after,
                           bp_host_diff *ret_diff, bugpack_error *error) {
    const char *names_before = bp_buffer_text(&before->names);
    const char *names_after = bp_buffer_text(&after->names);
    bp_host_diff diff = {NULL, 0, NULL};
    diff.rows = calloc(before->count + after->count + 1, sizeof *diff.rows);
    diff.names = malloc(before->names.size + after->names.size + 1);
    if (diff.rows == NULL || diff.names == NULL) {
        bp_host_diff_release(&diff);
        return bp_fail_memory(error, "compare two captures");
    }
    memcpy(diff.names, names_before, before->names.size);
    memcpy(diff.names + before->names.size, names_after, after->names.size);
    for (size_t i = 0, j = 0; i < before->count || j < after->count;) {
        int order = i == before->count  ? 1
                    : j == after->count ? -1
                                        : strcmp(names_before + before->items[i].name,
                                                 names_after + after->items[j].name);
        bp_host_row *row = &diff.rows[diff.row_count++];
        row->name = order <= 0 ? diff.names + before->items[i].name
                               : diff.names + before->names.size + after->items[j].name;
        fill_row(row, order <= 0 ? &before->items[i] : NULL, order >= 0 ? &after->items[j] : NULL);
        i += order <= 0 ? 1 : 0;
        j += order >= 0 ? 1 : 0;
    }
    qsort(diff.rows, diff.row_count, sizeof *diff.rows, compare_rows);
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
