#include "report/queue_private.h"

/* The queue that the calling thread works for; NULL for others. */
static _Thread_local const bp_job_queue *own_queue;

void bp_job_queue_own_thread(const bp_job_queue *queue) {
    own_queue = queue;
}

bool bp_job_queue_is_own_thread(const bp_job_queue *queue) {
    return own_queue != NULL && (queue == NULL || own_queue == queue);
}
