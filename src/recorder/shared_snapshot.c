#include "recorder/shared_snapshot.h"

#include <stdlib.h>

#include "model/metrics.h"

bp_shared_snapshot *bp_shared_snapshot_new(bp_task_snapshot *snapshot) {
    bp_shared_snapshot *kept = calloc(1, sizeof *kept);
    if (kept == NULL) {
        return NULL;
    }
    atomic_init(&kept->reference_count, 1);
    kept->snapshot = *snapshot;
    *snapshot = (bp_task_snapshot){0};
    bp_task_snapshot *mine = &kept->snapshot;
    if (mine->thread_count > 0) {
        /* The list had room to grow, up to as much again. */
        void *fitting = realloc(mine->threads, mine->thread_count * sizeof *mine->threads);
        mine->threads = fitting != NULL ? fitting : mine->threads;
    }
    bp_metrics_sort_threads(mine);
    return kept;
}

bp_shared_snapshot *bp_shared_snapshot_retain(bp_shared_snapshot *kept) {
    atomic_fetch_add_explicit(&kept->reference_count, 1, memory_order_relaxed);
    return kept;
}

void bp_shared_snapshot_release(bp_shared_snapshot *kept) {
    if (kept != NULL &&
        atomic_fetch_sub_explicit(&kept->reference_count, 1, memory_order_acq_rel) == 1) {
        bp_task_snapshot_release(&kept->snapshot);
        free(kept);
    }
}
