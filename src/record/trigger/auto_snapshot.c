
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "recorder/recorder.h"
#include "trigger/trigger.h"

static const uint64_t notify_interval_ns = 300 * BP_NS_PER_SEC;

struct auto_snapshot {
    bp_trigger_context context;
    uint64_t interval_ns;
    uint64_t notified_ns; /* of the last failure; 0: never. The worker's */
    bp_lock lock;         /* of what follows */
    uint64_t due_ns;      /* when the next one is due, or the one that is under way was */
    bool is_under_way;
    bp_trigger_entry entry;
};

uint64_t bp_auto_snapshot_next(uint64_t due_ns, uint64_t done_ns, uint64_t interval_ns) {
    uint64_t next_ns = due_ns + interval_ns;
    return next_ns >= done_ns ? next_ns : done_ns + interval_ns;
}

bool bp_auto_snapshot_may_notify(uint64_t notified_ns, uint64_t now_ns) {
    return notified_ns == 0 || now_ns - notified_ns >= notify_interval_ns;
}

static bugpack_status open_trigger(const bp_trigger_context *context, void **ret_self,
                                   bugpack_error *error) {
    uint64_t interval_ns = context->report->config->auto_snapshot.interval_ns;
    if (interval_ns == 0) {
        return BUGPACK_OK;
    }
    struct auto_snapshot *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return bp_fail_memory(error, "prepare auto-snapshots");
    }
    bp_lock_init(&self->lock, BP_LOCK_AUTO_SNAPSHOT);
    self->context = *context;
    self->interval_ns = interval_ns;
    self->due_ns = bp_clock_monotonic_ns() + self->interval_ns;
    self->entry.kind = BP_REPORT_AUTO_SNAPSHOT;
    *ret_self = self;
    return BUGPACK_OK;
}

static void close_trigger(void *context) {
    struct auto_snapshot *self = context;
    bp_lock_destroy(&self->lock);
    free(self);
}

/* One has ended, or could not be begun; `reason` is NULL when it was written. */
static void note_end(struct auto_snapshot *self, const char *reason) {
    bp_lock_acquire(&self->lock);
    self->is_under_way = false;
    self->due_ns = bp_auto_snapshot_next(self->due_ns, bp_clock_monotonic_ns(), self->interval_ns);
    if (reason == NULL) {
        self->entry.written_count++;
    } else {
        self->entry.reason = reason;
    }
    bp_lock_release(&self->lock);
}

static void settled(const bp_job *job, const bugpack_report_result *result) {
    struct auto_snapshot *self = job->payload;
    bool is_cancelled = result->status == BUGPACK_ERR_CANCELLED;
    const char *reason = is_cancelled ? "one was cancelled" : "one could not be written";
    bool is_written = result->status == BUGPACK_OK;
    note_end(self, is_written ? NULL : reason);
    uint64_t now_ns = bp_clock_monotonic_ns();
    if (!is_written && !is_cancelled && bp_auto_snapshot_may_notify(self->notified_ns, now_ns)) {
        self->notified_ns = now_ns;
        bp_note_notify(self->context.report->recorder, BUGPACK_LEVEL_WARN,
                       "an auto-snapshot could not be written: %s", result->error.message);
    }
    bp_monitor_wake(self->context.monitor);
}

static const bp_job_type job_type = {.kind = BP_REPORT_AUTO_SNAPSHOT, .settled = settled};

/* Whether one is to be taken now; then it is under way. */
static bool begin(struct auto_snapshot *self, uint64_t now_ns) {
    bp_lock_acquire(&self->lock);
    bool is_due = !self->is_under_way && now_ns >= self->due_ns;
    if (is_due) {
        self->is_under_way = true;
        self->entry.count++;
        self->entry.last_wall_ns = bp_clock_wall_ns();
        if (self->entry.count == 1) {
            self->entry.first_wall_ns = self->entry.last_wall_ns;
        }
    }
    bp_lock_release(&self->lock);
    return is_due;
}

static uint64_t tick(void *context, uint64_t now_ns) {
    struct auto_snapshot *self = context;
    if (begin(self, now_ns)) {
        bp_job *job = bp_job_new(self->context.report, &job_type, 0);
        if (job != NULL) {
            job->payload = self;
            job->dir = &self->context.report->config->auto_snapshot.dir;
        }
        if (job == NULL || bp_job_queue_submit(self->context.jobs, job, NULL, NULL) != BUGPACK_OK) {
            note_end(self, "too many reports waited");
        }
    }
    bp_lock_acquire(&self->lock);
    uint64_t next_ns = self->is_under_way ? UINT64_MAX : self->due_ns;
    bp_lock_release(&self->lock);
    return next_ns;
}

static bp_trigger_note *note(void *context) {
    struct auto_snapshot *self = context;
    bp_trigger_note *made = bp_trigger_note_new(1);
    if (made != NULL) {
        bp_lock_acquire(&self->lock);
        made->rows[0] = (bp_trigger_tally){self->entry.count, self->entry.last_wall_ns};
        bp_lock_release(&self->lock);
    }
    return made;
}

static bugpack_status list_entries(void *context, const bp_trigger_note *noted, const bp_job *job,
                                   bp_trigger_list *list, bugpack_error *error) {
    struct auto_snapshot *self = context;
    (void)job;
    (void)error;
    bp_lock_acquire(&self->lock);
    bp_trigger_entry entry = self->entry;
    bp_lock_release(&self->lock);
    if (entry.count > 0 && bp_trigger_note_apply(noted, 0, &entry)) {
        bp_trigger_list_add(list, &entry);
    }
    return BUGPACK_OK;
}

const bp_trigger bp_trigger_auto_snapshot = {
    .open = open_trigger, .note = note, .list = list_entries, .tick = tick, .close = close_trigger};
