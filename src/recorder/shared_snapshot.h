/*
 * A snapshot that several threads read, and the last one frees.
 */
#ifndef BP_RECORDER_KEPT_SNAPSHOT_H
#define BP_RECORDER_KEPT_SNAPSHOT_H

#include <stdatomic.h>

#include "platform/task.h"

/* Never changed once it is shared: its threads are sorted, so computing with it only reads. */
typedef struct bp_shared_snapshot {
    atomic_uint reference_count;
    bp_task_snapshot snapshot;
} bp_shared_snapshot;

/* Moves the snapshot in, which is empty afterwards. NULL without memory; then it is as it was. */
bp_shared_snapshot *bp_shared_snapshot_new(bp_task_snapshot *snapshot);
bp_shared_snapshot *bp_shared_snapshot_retain(bp_shared_snapshot *kept);
void bp_shared_snapshot_release(bp_shared_snapshot *kept);

#endif
