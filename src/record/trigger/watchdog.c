/*
 * Watchdogs: a thread that does not beat for its limit is reported while it hangs.
 *
 * A beat stores the time, and the monitor looks at the stores. It adds up the time without a beat
 * itself, between two looks at most a quarter more than it meant to sleep: while it could not run,
 * nobody could.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/log.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "model/disconnect.h"
#include "platform/thread.h"
#include "recorder/recorder.h"
#include "trigger/occasions.h"
#include "trigger/trigger.h"

static const size_t json_limit_bytes = 64 << 10;
/* The monitor looks this often in a limit, and within these bounds. */
static const uint64_t looks_per_limit = 4;
static const uint64_t look_min_ns = 20 * BP_NS_PER_MS, look_max_ns = BP_NS_PER_SEC;

struct bugpack_watchdog {
    /* Of the watched thread, and read by the monitor. Times are of the monotonic clock. */
    _Atomic(uint64_t) beat_ns; /* the last beat; 0: paused */
    _Atomic(uint64_t) tid;     /* whose it was */
    _Atomic(uint64_t) back_ns; /* the first beat after a hang */
    atomic_bool is_hung;       /* set by the monitor, and by the first beat cleared */

    bugpack_session *session;
    bugpack_watchdog *next;
    uint64_t limit_ns;
    char name[BUGPACK_CHANNEL_MAX_BYTES + 1];

    /* Of the monitor, under the lock of the list. */
    uint64_t seen_ns;   /* the beat after which `silent_ns` is */
    uint64_t silent_ns; /* without a beat, as far as it counts */
    uint64_t hung_ns;   /* the last beat before the hang that is under way; 0: none is */
    uint64_t hang_count, ticket /* of the report of the last hang; 0: none */;
};

struct watchdogs {
    bp_occasions base;
    bp_lock lock; /* of what follows, and of the list's members where they say so */
    bugpack_watchdog *first;
    size_t count;
    uint64_t looked_ns, pause_ns; /* the last look, and how long the monitor meant to sleep then */
};

/* One hang: begun, or over. */
struct hang {
    struct watchdogs *owner;
    bugpack_watchdog *watchdog; /* only compared: it may be gone */
    bp_hang model;
    uint64_t beat_ns, duration_ns, ticket;
};

static bugpack_status open_trigger(const bp_report_context *context, void **ret_self,
                                   bugpack_error *error) {
    const bp_occasions_rule rule = {.kind = BP_REPORT_HANG,
                                    .rate = context->config->hang,
                                    .cooldown_reason = "a hang report was taken shortly before",
                                    .count_reason =
                                        "as many hang reports as hang_cap allows were taken"};
    struct watchdogs *self = bp_occasions_new(sizeof *self, context, &rule, error);
    if (self == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    bp_lock_init(&self->lock, BP_LOCK_WATCHDOGS);
    *ret_self = self;
    return BUGPACK_OK;
}

/* Beats may have come until now. */
static void free_trigger(void *context) {
    struct watchdogs *self = context;
    while (self->first != NULL) {
        bugpack_watchdog *next = self->first->next;
        free(self->first);
        self->first = next;
    }
    bp_lock_destroy(&self->lock);
    bp_occasions_free(&self->base);
}

/* --- what a thread does ----------------------------------------------------------------------- */

bugpack_session *bp_watchdog_session(const bugpack_watchdog *watchdog) {
    return watchdog->session;
}

static void set_beat(bugpack_watchdog *watchdog, uint64_t beat_ns) {
    if (atomic_load_explicit(&watchdog->is_hung, memory_order_relaxed)) {
        atomic_store_explicit(&watchdog->back_ns, bp_clock_monotonic_ns(), memory_order_relaxed);
        atomic_store_explicit(&watchdog->is_hung, false, memory_order_relaxed);
    }
    atomic_store_explicit(&watchdog->tid, bp_thread_id(), memory_order_relaxed);
    atomic_store_explicit(&watchdog->beat_ns, beat_ns, memory_order_release);
}

void bugpack_watchdog_beat(bugpack_watchdog *watchdog) {
    if (watchdog != NULL) {
        set_beat(watchdog, bp_clock_monotonic_tick_ns());
    }
}

void bugpack_watchdog_pause(bugpack_watchdog *watchdog) {
    if (watchdog != NULL) {
        set_beat(watchdog, 0);
    }
}

/* --- what becomes of a hang ------------------------------------------------------------------- */

static bugpack_status add_entries(bp_job *job, bp_bundle *bundle, bugpack_error *error) {
    const struct hang *hang = job->payload;
    bugpack_writer writer;
    bp_writer_init(&writer, json_limit_bytes);
    bp_instant began = bp_clock_now();
    bugpack_status status = bp_hang_print(&hang->model, &writer.content, error);
    bp_writer_stamp(&writer, began);
    writer.line.captured_wall_ns = job->triggered.wall_ns;
    return bp_bundle_put(bundle, "hang.json", status, &writer, error);
}

static void settled(const bp_job *job, const bugpack_report_result *result) {
    const struct hang *hang = job->payload;
    bp_occasions_end(&hang->owner->base, hang->model.watchdog, hang->model.suppressed_count,
                     result->status);
}

static const bp_job_type report_type = {
    .kind = BP_REPORT_HANG, .is_limited = true, .add_entries = add_entries, .settled = settled};

/* A copy of the hang is the job's. NULL without memory. */
static bp_job *new_job(const struct hang *hang, const bp_job_type *type) {
    bp_job *job = bp_job_new(hang->owner->base.context, type, sizeof *hang);
    if (job != NULL) {
        *(struct hang *)job->payload = *hang;
    }
    return job;
}

static void begin(struct hang *hang) {
    struct watchdogs *self = hang->owner;
    uint64_t ticket = 0;
    bp_thread_name_of(hang->model.tid, hang->model.thread);
    bp_note_log(self->base.context->recorder, BUGPACK_LEVEL_WARN,
                "watchdog \"%s\": thread %llu \"%s\" has not beaten for %.1f s",
                hang->model.watchdog, (unsigned long long)hang->model.tid, hang->model.thread,
                (double)hang->model.silent_ns / (double)BP_NS_PER_SEC);
    if (bp_occasions_begin(&self->base, hang->model.watchdog, &hang->model.suppressed_count)) {
        bugpack_status status = BUGPACK_ERR_NO_MEMORY;
        bp_job *job = new_job(hang, &report_type);
        if (job != NULL) {
            struct hang *own = job->payload;
            own->model.seen = job->triggered;
            job->key = job->name_detail = own->model.watchdog;
            status = bp_job_queue_submit(self->base.context->jobs, job, &ticket, NULL);
        }
        if (status != BUGPACK_OK) {
            bp_occasions_end(&self->base, hang->model.watchdog, 0, status);
        }
    }
    bp_lock_acquire(&self->lock);
    for (bugpack_watchdog *at = self->first; at != NULL; at = at->next) {
        if (at == hang->watchdog && at->hung_ns == hang->beat_ns) {
            at->ticket = ticket;
        }
    }
    bp_lock_release(&self->lock);
}

/* Worker. */
static void tell_end(bp_job *job, bp_runner *runner) {
    const struct hang *hang = job->payload;
    (void)runner;
    bp_events_post_hang_end(hang->owner->base.context->events, hang->model.watchdog, hang->ticket,
                            hang->duration_ns / BP_NS_PER_MS);
}

static const bp_job_type end_type = {.run = tell_end};

static void end(const struct hang *hang) {
    struct watchdogs *self = hang->owner;
    bp_occasions_note_duration(&self->base, hang->model.watchdog, hang->duration_ns);
    bp_note_log(self->base.context->recorder, BUGPACK_LEVEL_WARN,
                "watchdog \"%s\": it beats again, after %.1f s", hang->model.watchdog,
                (double)hang->duration_ns / (double)BP_NS_PER_SEC);
    bp_job *job = new_job(hang, &end_type);
    if (job == NULL ||
        bp_job_queue_submit(self->base.context->jobs, job, NULL, NULL) != BUGPACK_OK) {
        bp_note_diagnose(self->base.context->recorder, BUGPACK_LEVEL_WARN,
                         "the end of a hang of watchdog \"%s\" could not be told",
                         hang->model.watchdog);
    }
}

/* --- what the monitor does -------------------------------------------------------------------- */

static void describe(struct watchdogs *self, bugpack_watchdog *watchdog, struct hang *ret_hang) {
    *ret_hang = (struct hang){.owner = self,
                              .watchdog = watchdog,
                              .beat_ns = watchdog->hung_ns,
                              .ticket = watchdog->ticket,
                              .model = {.tid = atomic_load(&watchdog->tid),
                                        .limit_ns = watchdog->limit_ns,
                                        .silent_ns = watchdog->silent_ns,
                                        .last_beat_ns = watchdog->hung_ns,
                                        .number = watchdog->hang_count}};
    (void)snprintf(ret_hang->model.watchdog, sizeof ret_hang->model.watchdog, "%s", watchdog->name);
}

/* The hang that is under way is over at `back_ns`. The lock is held. */
static void take_end(struct watchdogs *self, bugpack_watchdog *watchdog, uint64_t back_ns,
                     struct hang *ret_hang) {
    describe(self, watchdog, ret_hang);
    ret_hang->duration_ns = back_ns > watchdog->hung_ns ? back_ns - watchdog->hung_ns : 1;
    watchdog->hung_ns = 0;
    atomic_store(&watchdog->is_hung, false);
}

/*
 * Takes note of what happened in the `passed_ns` since the last look, which is as much as counts.
 * True: a hang has begun or, as its `duration_ns` says, is over. The lock is held.
 */
static bool look(struct watchdogs *self, bugpack_watchdog *watchdog, uint64_t now_ns,
                 uint64_t passed_ns, struct hang *ret_hang) {
    uint64_t beat_ns = atomic_load_explicit(&watchdog->beat_ns, memory_order_acquire);
    if (beat_ns != watchdog->seen_ns) {
        uint64_t since_ns = now_ns > beat_ns ? now_ns - beat_ns : 0;
        watchdog->seen_ns = beat_ns;
        watchdog->silent_ns = since_ns < passed_ns ? since_ns : passed_ns;
        if (watchdog->hung_ns != 0) {
            uint64_t back_ns = atomic_load(&watchdog->back_ns);
            if (back_ns <= watchdog->hung_ns) { /* it came while the hang was being noticed */
                back_ns = beat_ns != 0 ? beat_ns : now_ns;
            }
            take_end(self, watchdog, back_ns, ret_hang);
            return true;
        }
    } else {
        watchdog->silent_ns += passed_ns;
    }
    if (beat_ns == 0 || watchdog->hung_ns != 0 || watchdog->silent_ns < watchdog->limit_ns) {
        return false;
    }
    if (bp_thread_is_traced(atomic_load(&watchdog->tid))) {
        watchdog->silent_ns = 0;
        return false;
    }
    watchdog->hung_ns = beat_ns;
    watchdog->hang_count++;
    watchdog->ticket = 0;
    atomic_store(&watchdog->is_hung, true);
    describe(self, watchdog, ret_hang);
    return true;
}

/* The time that the monitor may sleep. The lock is held. */
static uint64_t find_pause(const struct watchdogs *self) {
    uint64_t pause_ns = UINT64_MAX;
    for (const bugpack_watchdog *at = self->first; at != NULL; at = at->next) {
        uint64_t part_ns = at->limit_ns / looks_per_limit;
        uint64_t left_ns = at->limit_ns > at->silent_ns ? at->limit_ns - at->silent_ns : part_ns;
        part_ns = left_ns < part_ns ? left_ns : part_ns;
        part_ns = part_ns < look_max_ns ? part_ns : look_max_ns;
        part_ns = part_ns > look_min_ns ? part_ns : look_min_ns;
        pause_ns = part_ns < pause_ns ? part_ns : pause_ns;
    }
    return pause_ns;
}

static uint64_t tick(void *context, uint64_t now_ns) {
    struct watchdogs *self = context;
    struct hang hangs[BUGPACK_WATCHDOGS_MAX];
    size_t hang_count = 0;
    bp_lock_acquire(&self->lock);
    uint64_t passed_ns = now_ns > self->looked_ns ? now_ns - self->looked_ns : 0;
    uint64_t most_ns = self->pause_ns + (self->pause_ns < UINT64_MAX / 2 ? self->pause_ns / 4 : 0);
    passed_ns = passed_ns < most_ns ? passed_ns : most_ns;
    for (bugpack_watchdog *at = self->first; at != NULL; at = at->next) {
        hang_count += look(self, at, now_ns, passed_ns, &hangs[hang_count]);
    }
    self->looked_ns = now_ns;
    self->pause_ns = find_pause(self);
    uint64_t next_ns = self->first == NULL ? UINT64_MAX : now_ns + self->pause_ns;
    bp_lock_release(&self->lock);
    for (size_t i = 0; i < hang_count; i++) {
        if (hangs[i].duration_ns > 0) {
            end(&hangs[i]);
        } else {
            begin(&hangs[i]);
        }
    }
    return next_ns;
}

/* --- opening and closing ---------------------------------------------------------------------- */

bugpack_status bp_watchdog_open(void *context, bugpack_session *session, const char *name,
                                uint64_t limit_ms, bugpack_watchdog **ret_watchdog,
                                bugpack_error *error) {
    struct watchdogs *self = context;
    const bp_config *config = self->base.context->config;
    bugpack_status status = bp_check_text("name", name, 1, BUGPACK_CHANNEL_MAX_BYTES, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (ret_watchdog == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "ret_watchdog is NULL");
    }
    if (limit_ms < BUGPACK_WATCHDOG_LIMIT_MIN_MS || limit_ms > BUGPACK_WATCHDOG_LIMIT_MAX_MS) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "limit_ms must be %d to %d, is %" PRIu64,
                       BUGPACK_WATCHDOG_LIMIT_MIN_MS, BUGPACK_WATCHDOG_LIMIT_MAX_MS, limit_ms);
    }
    if (config->target_pid != 0 || config->without_process) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "cannot open a watchdog: the session is not about this process");
    }
    bugpack_watchdog *watchdog = calloc(1, sizeof *watchdog);
    if (watchdog == NULL) {
        return bp_fail_memory(error, "open a watchdog");
    }
    watchdog->session = session;
    watchdog->limit_ns = limit_ms * BP_NS_PER_MS;
    memcpy(watchdog->name, name, strlen(name));
    bugpack_watchdog_beat(watchdog);
    bp_lock_acquire(&self->lock);
    bool has_room = self->count < BUGPACK_WATCHDOGS_MAX;
    if (has_room) {
        watchdog->next = self->first;
        self->first = watchdog;
        self->count++;
    }
    bp_lock_release(&self->lock);
    if (!has_room) {
        free(watchdog);
        return bp_fail(error, BUGPACK_ERR_LIMIT, "%u watchdogs are open already",
                       (unsigned)BUGPACK_WATCHDOGS_MAX);
    }
    bp_monitor_wake(self->base.context->monitor);
    *ret_watchdog = watchdog;
    return BUGPACK_OK;
}

void bp_watchdog_close(void *context, bugpack_watchdog *watchdog) {
    struct watchdogs *self = context;
    struct hang hang = {.duration_ns = 0};
    bp_lock_acquire(&self->lock);
    bugpack_watchdog **at = &self->first;
    while (*at != NULL && *at != watchdog) {
        at = &(*at)->next;
    }
    bool is_ours = *at != NULL;
    if (is_ours) {
        *at = watchdog->next;
        self->count--;
        if (watchdog->hung_ns != 0) {
            take_end(self, watchdog, bp_clock_monotonic_ns(), &hang);
        }
    }
    bp_lock_release(&self->lock);
    if (hang.duration_ns > 0) {
        end(&hang);
    }
    if (is_ours) {
        free(watchdog);
    }
}

const bp_trigger bp_trigger_watchdog = {.open = open_trigger,
                                        .note = bp_occasions_note,
                                        .list = bp_occasions_list,
                                        .tick = tick,
                                        .free = free_trigger};
