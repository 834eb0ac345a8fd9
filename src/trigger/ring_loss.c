/*
 * Tells the host that a ring lost its file while the session ran. The monitor notices it, but must
 * not wait for the host: the worker calls.
 */
#include <stdlib.h>

#include "base/status.h"
#include "recorder/recorder.h"
#include "trigger/trigger.h"

typedef struct loss {
    bp_recorder *recorder;
    char reason[200];
} loss;

static void run(bp_job *job, bp_runner *runner) {
    (void)runner;
    const loss *found = job->payload;
    bp_note_log(found->recorder, BUGPACK_LEVEL_WARN,
                "a ring is in memory and does not survive a crash: another program opened its "
                "file, and it has no new one: %s",
                found->reason);
}

static void free_payload(bp_job *job) {
    free(job->payload);
}

static const bp_job_type job_type = {.run = run, .free = free_payload};

static bugpack_status open_trigger(const bp_trigger_context *context, void **ret_self,
                                   bugpack_error *error) {
    bp_trigger_context *self = malloc(sizeof *self);
    if (self == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    *self = *context;
    *ret_self = self;
    return BUGPACK_OK;
}

/* Without memory the manifest alone says so. */
static uint64_t tick(void *self, uint64_t now_ns) {
    const bp_trigger_context *context = self;
    loss found = {.recorder = context->report->recorder};
    (void)now_ns;
    if (!bp_rings_take_loss(found.recorder->rings, found.reason, sizeof found.reason)) {
        return UINT64_MAX;
    }
    loss *payload = malloc(sizeof *payload);
    bp_job *job =
        payload == NULL ? NULL : bp_job_new(context->report, &job_type, BP_REPORT_CRASH, payload);
    if (job == NULL) {
        free(payload);
        return UINT64_MAX;
    }
    *payload = found;
    job->yields = true; /* no bound of the queue refuses it */
    (void)bp_job_queue_submit(context->jobs, job, NULL, NULL);
    return UINT64_MAX;
}

const bp_trigger bp_trigger_ring_loss = {.open = open_trigger, .tick = tick, .close = free};
