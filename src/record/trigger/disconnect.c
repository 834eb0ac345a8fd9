
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "model/disconnect.h"
#include "trigger/occasions.h"
#include "trigger/trigger.h"

enum { text_max_bytes = 4096, late_max_count = 64 };

/* A loss that came so long before the trigger is of another time. */
static const uint64_t late_max_age_ns = 10 * BP_NS_PER_SEC;

/* Channels of disconnect-cause.json, for which the limit has room. */
static const size_t channel_max_count = 2000, json_limit_bytes = (size_t)1 << 20;

struct disconnects {
    bp_occasions base;
    bp_lock lock; /* of what follows */
    size_t late_count;
    bp_loss late[late_max_count]; /* without a report of their own; their strings are ours */
};

struct cause {
    struct disconnects *disconnects;
    bp_disconnect model; /* the strings of its first loss are ours */
    bp_channel_activity *channels;
    bp_loss late[late_max_count];
    const char *late_channels[late_max_count];
};

static bugpack_status open_trigger(const bp_report_context *context, void **ret_self,
                                   bugpack_error *error) {
    const bp_occasions_rule rule = {
        .kind = BP_REPORT_DISCONNECT,
        .rate = context->config->disconnect,
        .cooldown_reason = "a disconnect report was taken shortly before",
        .count_reason = "as many disconnect reports as disconnect_cap allows were taken"};
    struct disconnects *disconnects = bp_occasions_new(sizeof *disconnects, context, &rule, error);
    if (disconnects == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    bp_lock_init(&disconnects->lock, BP_LOCK_OCCASIONS);
    *ret_self = disconnects;
    return BUGPACK_OK;
}

static void free_loss(bp_loss *loss) {
    free((char *)(uintptr_t)loss->channel);
    free((char *)(uintptr_t)loss->error_text);
    free((char *)(uintptr_t)loss->error_kind);
    *loss = (bp_loss){.channel = NULL};
}

static void close_trigger(void *self) {
    struct disconnects *disconnects = self;
    for (size_t i = 0; i < disconnects->late_count; i++) {
        free_loss(&disconnects->late[i]);
    }
    bp_lock_destroy(&disconnects->lock);
    bp_occasions_free(&disconnects->base);
}

/* A text of which a hostile peer may have chosen the length. */
static bool copy_cut(const char *text, const char **ret_copy) {
    *ret_copy = text == NULL ? NULL : strndup(text, text_max_bytes);
    return text == NULL || *ret_copy != NULL;
}

static bool copy_loss(const bp_loss *given, bp_instant at, bp_loss *ret_loss) {
    *ret_loss = (bp_loss){.keepalive_fired = given->keepalive_fired, .at = at};
    if (copy_cut(given->channel, &ret_loss->channel) &&
        copy_cut(given->error_text, &ret_loss->error_text) &&
        copy_cut(given->error_kind, &ret_loss->error_kind)) {
        return true;
    }
    free_loss(ret_loss);
    return false;
}

/* Keeps one that has no report of its own for the next that is written, the newest of too many. */
static void add_latecomer(struct disconnects *disconnects, const bp_loss *given) {
    bp_loss loss, dropped = {.channel = NULL};
    if (!copy_loss(given, bp_clock_now(), &loss)) {
        return;
    }
    bp_lock_acquire(&disconnects->lock);
    if (disconnects->late_count == late_max_count) {
        dropped = disconnects->late[0];
        disconnects->late_count--;
        memmove(disconnects->late, disconnects->late + 1,
                disconnects->late_count * sizeof disconnects->late[0]);
    }
    disconnects->late[disconnects->late_count++] = loss;
    bp_lock_release(&disconnects->lock);
    free_loss(&dropped);
}

static void take_latecomers(bp_job *job) {
    struct cause *cause = job->payload;
    struct disconnects *disconnects = cause->disconnects;
    size_t count = 0;
    bp_lock_acquire(&disconnects->lock);
    for (size_t i = 0; i < disconnects->late_count; i++) {
        bp_loss *loss = &disconnects->late[i];
        if (loss->at.monotonic_ns + late_max_age_ns < job->triggered.monotonic_ns) {
            free_loss(loss);
        } else {
            cause->late_channels[count] = loss->channel;
            cause->late[count++] = *loss;
        }
    }
    disconnects->late_count = 0;
    bp_lock_release(&disconnects->lock);
    cause->model.others = cause->late;
    cause->model.other_count = job->traffic.other_count = count;
    job->traffic.others = cause->late_channels;
}

/* The channels in the order of their opening, the newest if there are too many. False without
 * memory. */
static bool look_at_channels(bp_recorder *recorder, struct cause *cause) {
    bp_channel_list list;
    if (bp_channels_hold(&recorder->channels, &list, NULL) != BUGPACK_OK) {
        return false;
    }
    size_t count = list.count < channel_max_count ? list.count : channel_max_count;
    cause->channels = calloc(count + 1, sizeof cause->channels[0]);
    for (size_t i = 0; cause->channels != NULL && i < count; i++) {
        const bp_channel_item *item = list.items[list.count - count + i];
        bp_channel_activity *activity = &cause->channels[i];
        bp_traffic_totals totals;
        bp_traffic_count(item->traffic, &totals);
        (void)snprintf(activity->name, sizeof activity->name, "%s",
                       bp_traffic_identity_of(item->traffic)->name);
        activity->is_closed = item->is_closed;
        memcpy(activity->message_count, totals.message_count, sizeof totals.message_count);
        memcpy(activity->byte_count, totals.byte_count, sizeof totals.byte_count);
        memcpy(activity->last_ns, totals.last_ns, sizeof totals.last_ns);
    }
    bp_channels_unhold(&recorder->channels, &list);
    cause->model.channels = cause->channels;
    cause->model.channel_count = count;
    return cause->channels != NULL;
}

static bugpack_status add_entries(bp_job *job, bp_bundle *bundle, bugpack_error *error) {
    const struct cause *cause = job->payload;
    bugpack_writer writer;
    bp_writer_init(&writer, json_limit_bytes);
    bp_instant began = bp_clock_now();
    bugpack_status status = bp_disconnect_print(&cause->model, &writer.content, error);
    bp_writer_stamp(&writer, began);
    writer.line.captured_wall_ns = job->triggered.wall_ns;
    return bp_bundle_put(bundle, "disconnect-cause.json", status, &writer, error);
}

static void settled(const bp_job *job, const bugpack_report_result *result) {
    const struct cause *cause = job->payload;
    bp_occasions_end(&cause->disconnects->base, cause->model.first.channel,
                     cause->model.suppressed_count, result->status);
}

static void free_payload(bp_job *job) {
    struct cause *cause = job->payload;
    free_loss(&cause->model.first);
    for (size_t i = 0; i < cause->model.other_count; i++) {
        free_loss(&cause->late[i]);
    }
    free(cause->channels);
}

static const bp_job_type job_type = {.kind = BP_REPORT_DISCONNECT,
                                     .take_latecomers = take_latecomers,
                                     .add_entries = add_entries,
                                     .settled = settled,
                                     .free = free_payload};

bugpack_status bp_disconnect_see(void *self, const bp_loss *given, bugpack_error *error) {
    struct disconnects *disconnects = self;
    const bp_report_context *report = disconnects->base.context;
    uint64_t suppressed_count = 0;
    if (!bp_occasions_begin(&disconnects->base, given->channel, &suppressed_count)) {
        add_latecomer(disconnects, given);
        return bp_fail(error, BUGPACK_ERR_BUSY,
                       "no disconnect report was taken: another one is under way or was just "
                       "written, or limits.disconnect_cap is reached");
    }
    bugpack_status status = BUGPACK_OK;
    bp_job *job = bp_job_new(report, &job_type, sizeof(struct cause));
    struct cause *cause = job != NULL ? job->payload : NULL;
    if (cause != NULL && copy_loss(given, job->triggered, &cause->model.first) &&
        look_at_channels(report->recorder, cause)) {
        cause->disconnects = disconnects;
        cause->model.cooldown_ms = report->config->disconnect.cooldown_ms;
        cause->model.suppressed_count = suppressed_count;
        job->channel = job->key = job->name_detail = cause->model.first.channel;
        job->traffic.only = job->channel;
        status = bp_job_queue_submit(disconnects->base.context->jobs, job, NULL, error);
    } else {
        status = bp_fail_memory(error, "take a disconnect report");
        bp_job_free(job);
    }
    if (status != BUGPACK_OK) {
        bp_occasions_end(&disconnects->base, given->channel, 0, status);
    }
    return status;
}

const bp_trigger bp_trigger_disconnect = {.open = open_trigger,
                                          .note = bp_occasions_note,
                                          .list = bp_occasions_list,
                                          .close = close_trigger};
