/*
 * Auto-snapshots: a report every so often into a directory that holds the newest ones.
 *
 * The first comes after a full interval. At most one is under way, so a slow disk delays the next
 * one and does not bunch them: one that is not done when the next is due is followed by a full
 * interval. Times are of the monotonic clock.
 */
#include <stdatomic.h>

#include "base/clock.h"
#include "recorder/recorder.h"
#include "trigger/occasions.h"
#include "trigger/trigger.h"

static const uint64_t notify_interval_ns = 300 * BP_NS_PER_SEC;

struct auto_snapshot {
    bp_occasions base;
    uint64_t interval_ns;
    uint64_t notified_ns;      /* of the last failure; 0: never. The worker's */
    _Atomic(uint64_t) due_ns;  /* of the next one; UINT64_MAX: one is under way */
    uint64_t under_way_due_ns; /* when that one was due */
};

static bugpack_status open_trigger(const bp_report_context *context, void **ret_self,
                                   bugpack_error *error) {
    const bp_occasions_rule rule = {.kind = BP_REPORT_AUTO_SNAPSHOT, .has_no_keys = true};
    uint64_t interval_ns = context->config->auto_snapshot.interval_ns;
    if (interval_ns == 0) {
        return BUGPACK_OK;
    }
    struct auto_snapshot *self = bp_occasions_new(sizeof *self, context, &rule, error);
    if (self == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    self->interval_ns = interval_ns;
    atomic_init(&self->due_ns, bp_clock_monotonic_ns() + interval_ns);
    *ret_self = self;
    return BUGPACK_OK;
}

static void close_trigger(void *context) {
    struct auto_snapshot *self = context;
    bp_occasions_free(&self->base);
}

/* One has ended, or could not be begun. */
static void end(struct auto_snapshot *self, bugpack_status status) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t next_ns = self->under_way_due_ns + self->interval_ns;
    bp_occasions_end(&self->base, "", 0, status);
    atomic_store(&self->due_ns, next_ns >= now_ns ? next_ns : now_ns + self->interval_ns);
}

static void settled(const bp_job *job, const bugpack_report_result *result) {
    struct auto_snapshot *self = job->payload;
    bool has_failed = result->status != BUGPACK_OK && result->status != BUGPACK_ERR_CANCELLED;
    uint64_t now_ns = bp_clock_monotonic_ns();
    end(self, result->status);
    if (has_failed &&
        (self->notified_ns == 0 || now_ns - self->notified_ns >= notify_interval_ns)) {
        self->notified_ns = now_ns;
        bp_note_notify(self->base.context->recorder, BUGPACK_LEVEL_WARN,
                       "an auto-snapshot could not be written: %s", result->error.message);
    }
    bp_monitor_wake(self->base.context->monitor);
}

static const bp_job_type job_type = {.kind = BP_REPORT_AUTO_SNAPSHOT, .settled = settled};

static uint64_t tick(void *context, uint64_t now_ns) {
    struct auto_snapshot *self = context;
    const bp_report_context *report = self->base.context;
    uint64_t due_ns = atomic_load(&self->due_ns), suppressed_count;
    if (now_ns < due_ns) {
        return due_ns;
    }
    self->under_way_due_ns = due_ns;
    atomic_store(&self->due_ns, UINT64_MAX);
    (void)bp_occasions_begin(&self->base, "", &suppressed_count);
    bugpack_status status = BUGPACK_ERR_NO_MEMORY;
    bp_job *job = bp_job_new(report, &job_type, 0);
    if (job != NULL) {
        job->payload = self;
        job->dir = &report->config->auto_snapshot.dir;
        status = bp_job_queue_submit(self->base.context->jobs, job, NULL, NULL);
    }
    if (status != BUGPACK_OK) {
        end(self, status);
    }
    return atomic_load(&self->due_ns);
}

const bp_trigger bp_trigger_auto_snapshot = {.open = open_trigger,
                                             .note = bp_occasions_note,
                                             .list = bp_occasions_list,
                                             .tick = tick,
                                             .close = close_trigger};
