#include "inspect/host_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "inspect/host_sums.h"

void bp_host_diff_release(bp_host_diff *diff) {
    free(diff->rows);
    free(diff->names);
    *diff = (bp_host_diff){NULL, 0, NULL};
}

static int64_t subtract(uint64_t after, uint64_t before) {
    if (after >= before) {
        return after - before > INT64_MAX ? INT64_MAX : (int64_t)(after - before);
    }
    return before - after > INT64_MAX ? INT64_MIN : -(int64_t)(before - after);
}

static uint64_t size_of(int64_t delta) {
    return delta < 0 ? (uint64_t) - (delta + 1) + 1 : (uint64_t)delta;
}

/* Largest change first; names are in one allocation, so they can be compared without a context. */
static int compare_rows(const void *one, const void *other) {
    const bp_host_row *left = one;
    const bp_host_row *right = other;
    uint64_t left_size = size_of(left->delta);
    uint64_t right_size = size_of(right->delta);
    if (left_size != right_size) {
        return left_size > right_size ? -1 : 1;
    }
    return strcmp(left->name, right->name);
}

/* `before` or `after` is NULL where the capture has no such name. */
static void fill_row(bp_host_row *row, const bp_host_sum *before, const bp_host_sum *after) {
    row->threads_before = before != NULL ? before->thread_count : 0;
    row->threads_after = after != NULL ? after->thread_count : 0;
    row->before = before != NULL ? before->sum : 0;
    row->after = after != NULL ? after->sum : 0;
    row->is_measured_before = before != NULL && before->is_measured;
    row->is_measured_after = after != NULL && after->is_measured;
    row->delta = subtract(row->after, row->before);
    row->has_percent = row->before > 0;
    if (row->has_percent) {
        double share = 100.0 * ((double)row->after - (double)row->before) / (double)row->before;
        double hundredths = share * 100.0 + (share < 0 ? -0.5 : 0.5);
        row->percent =
            hundredths > -1e15 && hundredths < 1e15 ? (double)(int64_t)hundredths / 100.0 : share;
    }
}

/* Steps through both lists of ascending names at once. */
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
