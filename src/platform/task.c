#include "platform/task.h"

#include <stdlib.h>

void bp_task_snapshot_release(bp_task_snapshot *snapshot) {
    free(snapshot->threads);
    *snapshot = (bp_task_snapshot){0};
}
