/*
 * Conditions: a report when something becomes true of the process, or is logged.
 *
 * The monitor looks once a second: at the process as a whole, which costs no more for a thousand
 * threads than for one, and at what was logged. The metrics history keeps what it saw: of another
 * process, whose threads are sampled less often, also where all conditions are about the log. A
 * process with its descendants is looked at with each sample of the metrics history, which has
 * their sums.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "model/condition.h"
#include "recorder/recorder.h"
#include "trigger/occasions.h"
#include "trigger/trigger.h"

/* The bytes of the log that are searched before other tasks of the monitor have their turn. */
static const size_t log_piece_bytes = (size_t)256 << 10;

typedef struct watched {
    bp_condition *condition;
    uint64_t from_ns; /* what was logged before is not looked at */
    bool has_matched; /* in this look at the log, of which one match counts. The monitor's */
} watched;

struct conditions {
    bp_occasions base;
    bp_lock lock;                          /* of adding one */
    watched items[BUGPACK_CONDITIONS_MAX]; /* each is written before it is counted */
    atomic_size_t count;
    _Atomic(bp_task *) task;  /* NULL: not needed */
    atomic_bool looks_itself; /* and not with the history */
    atomic_uint needs;        /* of all */
    atomic_bool is_stopped;
    atomic_bool is_active; /* something was printed or logged since the last sample */
    atomic_bool has_added; /* a condition that nobody has looked at */

    bp_condition_callback *_Atomic callback; /* of the command; NULL: none */
    void *callback_context;

    /* Of the monitor. */
    bp_ring_follower follower;
    uint64_t next_log_ns, next_sample_ns;
    uint64_t sample_due_ns; /* of the history */
    bool has_told_loss;
};

struct truth {
    struct conditions *owner;
    bp_condition_truth model;
    uint64_t suppressed_count;
    char key[BUGPACK_CHANNEL_MAX_BYTES + 1];
};

static bugpack_status open_trigger(const bp_report_context *context, void **ret_self,
                                   bugpack_error *error) {
    const bp_occasions_rule rule = {
        .kind = BP_REPORT_CONDITION,
        .rate = context->config->condition,
        .cooldown_reason = "a report of a condition was taken shortly before",
        .count_reason = "as many reports of conditions as condition_cap allows were taken"};
    struct conditions *self = bp_occasions_new(sizeof *self, context, &rule, error);
    if (self == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    bp_lock_init(&self->lock, BP_LOCK_CONDITIONS);
    *ret_self = self;
    return BUGPACK_OK;
}

/* Samples may come until the close. */
static void stop(void *context) {
    struct conditions *self = context;
    atomic_store(&self->is_stopped, true);
}

static void close_trigger(void *context) {
    struct conditions *self = context;
    for (size_t i = 0; i < self->count; i++) {
        bp_condition_free(self->items[i].condition);
    }
    bp_ring_follower_release(&self->follower);
    bp_task_close(self->task);
    bp_lock_destroy(&self->lock);
    bp_occasions_free(&self->base);
}

/* --- the report ------------------------------------------------------------------------------- */

static void describe(const bp_job *job, bp_metadata *metadata, bugpack_writer *writer) {
    const struct truth *truth = job->payload;
    (void)writer;
    metadata->condition = &truth->model;
}

static void settled(const bp_job *job, const bugpack_report_result *result) {
    const struct truth *truth = job->payload;
    bp_occasions_end(&truth->owner->base, truth->key, truth->suppressed_count, result->status);
}

static const bp_job_type job_type = {
    .kind = BP_REPORT_CONDITION, .is_limited = true, .describe = describe, .settled = settled};

static void begin(struct conditions *self, const bp_condition *condition,
                  const bp_condition_truth *found) {
    struct truth truth = {.owner = self, .model = *found};
    char value[BP_CONDITION_VALUE_BYTES];
    bp_condition_print_value(found, value);
    bp_utf8_copy(truth.key, sizeof truth.key, found->text);
    bp_note_log(self->base.context->recorder, BUGPACK_LEVEL_WARN, "condition \"%s\" is true: %s",
                found->text, value);
    bool has_report = bp_occasions_begin(&self->base, truth.key, &truth.suppressed_count);
    bp_condition_callback *callback = atomic_load(&self->callback);
    if (callback != NULL) {
        callback(found, has_report, self->callback_context);
    }
    if (!has_report) {
        return;
    }
    bugpack_status status = BUGPACK_ERR_NO_MEMORY;
    bp_job *job = bp_job_new(self->base.context, &job_type, sizeof truth);
    if (job != NULL) {
        struct truth *own = job->payload;
        *own = truth;
        job->key = own->key;
        job->name_detail = bp_condition_subject(condition);
        status = bp_job_queue_submit(self->base.context->jobs, job, NULL, NULL);
    }
    if (status != BUGPACK_OK) {
        bp_occasions_end(&self->base, truth.key, 0, status);
    }
}

/* --- what the monitor looks at ---------------------------------------------------------------- */

/* Our own records say that a condition is true: they neither make one true nor end a silence. */
static void look_at_line(void *context, const bp_log_text *line) {
    struct conditions *self = context;
    bp_condition_truth truth;
    if (line->channel_bytes == strlen(bp_note_channel) &&
        memcmp(line->channel, bp_note_channel, line->channel_bytes) == 0) {
        return;
    }
    atomic_store(&self->is_active, true);
    size_t count = atomic_load_explicit(&self->count, memory_order_acquire);
    for (size_t i = 0; i < count; i++) {
        watched *item = &self->items[i];
        if (!item->has_matched && line->monotonic_ns >= item->from_ns &&
            bp_condition_look_at_line(item->condition, line->message, line->message_bytes,
                                      line->sequence, &truth)) {
            item->has_matched = true;
            begin(self, item->condition, &truth);
        }
    }
}

/* True: there is more. */
static bool look_at_log(struct conditions *self) {
    bp_log_recorder *log = self->base.context->recorder->log;
    uint64_t lost_count = 0;
    bool is_rest = false;
    if (log == NULL || (atomic_load(&self->needs) & BP_CONDITION_NEEDS_LOG) == 0) {
        return false;
    }
    bool is_first = self->follower.sequence == 0;
    for (size_t i = 0; i < atomic_load(&self->count); i++) {
        self->items[i].has_matched = false;
    }
    bp_log_recorder_follow(log, &self->follower, log_piece_bytes, look_at_line, self, &lost_count,
                           &is_rest);
    if (lost_count > 0 && !is_first && !self->has_told_loss) {
        self->has_told_loss = true;
        bp_note_log(self->base.context->recorder, BUGPACK_LEVEL_WARN,
                    "conditions did not see at least %llu log records: they were overwritten "
                    "within a second",
                    (unsigned long long)lost_count);
    }
    return is_rest;
}

static void tell_end(struct conditions *self) {
    bp_condition_callback *callback = atomic_load(&self->callback);
    if (callback != NULL) {
        callback(NULL, false, self->callback_context);
    }
}

/* A host's own are counted for its conditions alone. */
static bp_known_uint count_files(struct conditions *self) {
    const bp_report_context *report = self->base.context;
    bp_task *task = atomic_load(&self->task);
    bp_known_uint count = {.known = false};
    bool is_wanted = report->config->target_pid != 0 ||
                     (atomic_load(&self->needs) & BP_CONDITION_NEEDS_FILES) != 0;
    if (is_wanted && task != NULL) {
        count.known = bp_task_count_files(task, &count.value, NULL) == BUGPACK_OK;
    }
    if (count.known && report->recorder->history != NULL) {
        bp_history_note_files(report->recorder->history, count.value);
    }
    return count;
}

/* Adds what only some conditions need, and asks all of them. */
static void look(struct conditions *self, bp_condition_sample *sample) {
    size_t count = atomic_load_explicit(&self->count, memory_order_acquire);
    bp_condition_truth truth;
    (void)look_at_log(self);
    if (self->base.context->config->target_pid == 0 &&
        bp_job_queue_has_worked(self->base.context->jobs)) {
        sample->is_shared = true; /* a report opens files and computes, not the host */
        sample->file_count.known = false;
    }
    sample->is_active = atomic_exchange(&self->is_active, false);
    for (size_t i = 0; i < count; i++) {
        if (bp_condition_look(self->items[i].condition, sample, &truth)) {
            begin(self, self->items[i].condition, &truth);
        }
    }
}

static void look_at_totals(struct conditions *self, uint64_t now_ns) {
    bp_task_totals totals;
    bugpack_status status = bp_task_read_totals(atomic_load(&self->task), &totals, NULL);
    bp_condition_sample sample = {.due_ns = self->next_sample_ns};
    self->next_sample_ns = now_ns + BP_NS_PER_SEC;
    if (status == BUGPACK_OK) {
        bp_history *history = self->base.context->recorder->history;
        sample.file_count = count_files(self);
        if (history != NULL) { /* first: a report of this look has it */
            bp_history_add_totals(history, &totals);
        }
        sample.taken_ns = totals.taken_ns;
        sample.cpu_ns = totals.cpu_ns;
        sample.rss_bytes = (bp_known_uint){totals.has_memory, totals.rss_bytes};
        sample.thread_count = (bp_known_uint){true, totals.thread_count};
        sample.state = totals.state;
        look(self, &sample);
    } else if (status == BUGPACK_ERR_NO_PROCESS) {
        self->next_sample_ns = UINT64_MAX;
        (void)look_at_log(self);
        tell_end(self);
    }
}

static uint64_t tick(void *context, uint64_t now_ns) {
    struct conditions *self = context;
    unsigned needs = atomic_load(&self->needs);
    uint64_t next_ns = UINT64_MAX;
    if ((needs & BP_CONDITION_NEEDS_SAMPLES) != 0 && atomic_load(&self->looks_itself)) {
        if (atomic_exchange(&self->has_added, false) || now_ns >= self->next_sample_ns) {
            look_at_totals(self, now_ns);
        }
        next_ns = self->next_sample_ns;
    }
    if ((needs & BP_CONDITION_NEEDS_LOG) != 0) {
        if (now_ns >= self->next_log_ns) {
            self->next_log_ns = look_at_log(self) ? now_ns : now_ns + BP_NS_PER_SEC;
        }
        next_ns = self->next_log_ns < next_ns ? self->next_log_ns : next_ns;
    }
    return next_ns;
}

void bp_conditions_expect(void *context, uint64_t due_ns) {
    struct conditions *self = context;
    self->sample_due_ns = due_ns;
}

void bp_conditions_look(void *context, const bp_task_snapshot *snapshot) {
    struct conditions *self = context;
    bp_task_totals totals;
    if (atomic_load(&self->is_stopped)) {
        return;
    }
    if (snapshot == NULL) {
        (void)look_at_log(self);
        tell_end(self);
        return;
    }
    if (atomic_load(&self->looks_itself) || atomic_load(&self->count) == 0) {
        return;
    }
    bp_condition_sample sample = {.taken_ns = snapshot->taken_ns,
                                  .due_ns = self->sample_due_ns,
                                  .cpu_ns = snapshot->process_cpu * snapshot->cpu_unit_ns +
                                            snapshot->extra_ns,
                                  .rss_bytes = {snapshot->has_memory, snapshot->rss_bytes},
                                  .thread_count = {true, snapshot->thread_count},
                                  .file_count = count_files(self)};
    if ((atomic_load(&self->needs) & BP_CONDITION_NEEDS_STATE) != 0 &&
        bp_task_read_totals(atomic_load(&self->task), &totals, NULL) == BUGPACK_OK) {
        sample.state = totals.state;
    }
    look(self, &sample);
}

/* --- adding one ------------------------------------------------------------------------------- */

void bp_conditions_note_output(void *context) {
    struct conditions *self = context;
    atomic_store_explicit(&self->is_active, true, memory_order_relaxed);
}

void bp_conditions_tell(void *context, bp_condition_callback *callback, void *callback_context) {
    struct conditions *self = context;
    self->callback_context = callback_context;
    atomic_store(&self->callback, callback);
}

/* Refuses a condition that the process cannot serve. `ret_looks_itself`: no history. */
static bugpack_status try_task(const struct conditions *self, const bp_condition *condition,
                               bp_task *task, bool *ret_looks_itself, bugpack_error *error) {
    const bp_report_context *report = self->base.context;
    unsigned needs = bp_condition_needs(condition);
    bp_task_totals totals;
    uint64_t count;
    bool has_totals = bp_task_read_totals(task, &totals, NULL) == BUGPACK_OK;
    *ret_looks_itself = has_totals && !report->config->with_descendants;
    if (!*ret_looks_itself && report->recorder->history == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "condition '%.80s' needs a session with a metrics history",
                       bp_condition_text(condition));
    }
    if ((needs & BP_CONDITION_NEEDS_STATE) != 0 && !has_totals) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the state of the process is not known");
    }
    return (needs & BP_CONDITION_NEEDS_FILES) != 0 ? bp_task_count_files(task, &count, error)
                                                   : BUGPACK_OK;
}

/* Opens the process once more: the monitor may be reading the one that is open. The lock is held.
 */
static bugpack_status prepare(struct conditions *self, const bp_condition *condition,
                              bugpack_error *error) {
    const bp_report_context *report = self->base.context;
    bp_sampler *sampler = bp_subject_sampler(report->subject, NULL);
    bp_task *task = NULL;
    bool looks_itself = false;
    bool is_of_log = bp_condition_needs(condition) == BP_CONDITION_NEEDS_LOG;
    if (is_of_log && report->recorder->log == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "condition '%.80s' needs a session with a log",
                       bp_condition_text(condition));
    }
    bool is_rare = report->config->target_pid != 0 && report->config->history_interval_ms > 1000;
    if (is_of_log && (!is_rare || sampler == NULL)) {
        return BUGPACK_OK;
    }
    if (sampler == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "condition '%.80s' needs a session about a process",
                       bp_condition_text(condition));
    }
    bugpack_error *reason = is_of_log ? NULL : error; /* those samples are for the history alone */
    bugpack_status status = bp_task_clone(bp_sampler_task(sampler), &task, reason);
    if (status == BUGPACK_OK) {
        status = try_task(self, condition, task, &looks_itself, reason);
    }
    if (status == BUGPACK_OK && atomic_load(&self->task) == NULL) {
        atomic_store(&self->task, task);
        atomic_store(&self->looks_itself, looks_itself);
        task = NULL;
    }
    bp_task_close(task);
    return is_of_log ? BUGPACK_OK : status;
}

static bugpack_status add(struct conditions *self, bp_condition *condition, bugpack_error *error) {
    size_t count = atomic_load(&self->count);
    if (count == BUGPACK_CONDITIONS_MAX) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "the session has %d conditions already",
                       BUGPACK_CONDITIONS_MAX);
    }
    bugpack_status status = prepare(self, condition, error);
    if (status == BUGPACK_OK) {
        self->items[count] = (watched){condition, bp_clock_monotonic_ns(), false};
        atomic_store_explicit(&self->count, count + 1, memory_order_release);
        unsigned needs = bp_condition_needs(condition);
        needs |= atomic_load(&self->looks_itself) ? BP_CONDITION_NEEDS_SAMPLES : 0;
        (void)atomic_fetch_or(&self->needs, needs);
        atomic_store(&self->has_added, true);
    }
    return status;
}

bugpack_status bp_conditions_add(void *context, const char *text, bugpack_error *error) {
    struct conditions *self = context;
    bp_condition *condition = NULL;
    bugpack_status status = bp_condition_new(text, &condition, error);
    if (status == BUGPACK_OK) {
        bp_lock_acquire(&self->lock);
        status = add(self, condition, error);
        bp_lock_release(&self->lock);
    }
    if (status != BUGPACK_OK) {
        bp_condition_free(condition);
        return status;
    }
    bp_monitor_wake(self->base.context->monitor);
    return BUGPACK_OK;
}

const bp_trigger bp_trigger_condition = {.open = open_trigger,
                                         .note = bp_occasions_note,
                                         .list = bp_occasions_list,
                                         .tick = tick,
                                         .stop = stop,
                                         .close = close_trigger};
