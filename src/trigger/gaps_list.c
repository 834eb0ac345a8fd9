#include "trigger/gaps_private.h"

#include <stdlib.h>

#include "base/status.h"

/* Why a occurrence of a key that is still open led to no report. */
static const char *open_reason(const bp_gaps *gaps, const bp_gap *gap) {
    switch ((bp_gap_hold)atomic_load_explicit(&gap->hold, memory_order_relaxed)) {
    case BP_GAP_HELD_OFF:
        return "pedantic mode was off";
    case BP_GAP_HELD_BY_CAP:
        return gaps->cap_reason;
    case BP_GAP_HELD_BY_CHANNEL_CAP:
        return gaps->channel_cap_reason;
    case BP_GAP_HELD_BY_NOTHING:
        break;
    }
    return atomic_load_explicit(&gap->try_count, memory_order_relaxed) > 0
               ? "its report could not be written; the next occurrence tries again"
               : "its report was not begun";
}

const char *bp_gap_reason(const bp_gaps *gaps, const bp_gap *gap) {
    switch ((bp_gap_state)atomic_load_explicit(&gap->state, memory_order_relaxed)) {
    case BP_GAP_OPEN:
        return open_reason(gaps, gap);
    case BP_GAP_PENDING:
        return "its report is on its way";
    case BP_GAP_WRITTEN:
        return "";
    case BP_GAP_IGNORED:
        return "it is to be ignored";
    case BP_GAP_GIVEN_UP:
        return "its report could not be written, and its tries are used up";
    }
    return "";
}

static uint64_t sum(const bp_gaps *gaps, size_t index, uint64_t *ret_last_wall_ns) {
    uint64_t count = 0;
    uint64_t last = 0;
    for (size_t shard = 0; shard < bp_gap_shard_count; shard++) {
        const bp_gap_cell *cell = &gaps->cells[shard][index];
        uint64_t cell_last = atomic_load_explicit(&cell->last_wall_ns, memory_order_relaxed);
        count += atomic_load_explicit(&cell->count, memory_order_relaxed);
        last = cell_last > last ? cell_last : last;
    }
    *ret_last_wall_ns = last;
    return count;
}

void bp_gaps_count(bp_gaps *gaps, bp_gaps_totals *ret_totals) {
    uint32_t distinct = atomic_load_explicit(&gaps->gap_count, memory_order_acquire);
    uint64_t sights = 0;
    uint64_t last = 0;
    for (uint32_t i = 0; i < distinct; i++) {
        sights += sum(gaps, i, &last);
    }
    (void)pthread_mutex_lock(&gaps->mutex);
    *ret_totals = (bp_gaps_totals){.written_count = gaps->written_count,
                                   .pending_count = gaps->pending_count,
                                   .distinct_count = distinct,
                                   .occurrence_count = sights};
    (void)pthread_mutex_unlock(&gaps->mutex);
}

bugpack_status bp_gaps_list(bp_gaps *gaps, const bp_gap *writing, bp_pedantic_gap **ret_rows,
                            size_t *ret_count, bugpack_error *error) {
    uint32_t count = atomic_load_explicit(&gaps->gap_count, memory_order_acquire);
    bp_pedantic_gap *rows = NULL;
    if (count > 0) {
        rows = calloc(count, sizeof *rows);
        if (rows == NULL) {
            return bp_fail_memory(error, "list the gaps");
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const bp_gap *gap = &gaps->gaps[i];
        uint64_t last = 0;
        uint64_t sights = sum(gaps, i, &last);
        bool is_written = gap == writing ||
                          atomic_load_explicit(&gap->state, memory_order_relaxed) == BP_GAP_WRITTEN;
        /* A row is there an instant before its first occurrence is counted, and the clock of sights
         * has a coarser tick than the one of the first. */
        rows[i] =
            (bp_pedantic_gap){.key = gap->text,
                              .channel = gap->text,
                              .channel_bytes = gap->channel_bytes,
                              .count = sights > 0 ? sights : 1,
                              .first_wall_ns = gap->first_wall_ns,
                              .last_wall_ns = last > gap->first_wall_ns ? last : gap->first_wall_ns,
                              .is_written = is_written,
                              .reason = is_written ? "" : bp_gap_reason(gaps, gap)};
    }
    *ret_rows = rows;
    *ret_count = count;
    return BUGPACK_OK;
}
