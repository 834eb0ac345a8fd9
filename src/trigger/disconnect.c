
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "model/disconnect.h"
#include "trigger/trigger.h"

/* Rows of the manifest: one for each of the first names, and one for all further ones. */
enum { row_max_count = 64 + 1, text_max_bytes = 4096 };

/* Channels of disconnect-cause.json, for which the limit has room. */
static const size_t channel_max_count = 2000, json_limit_bytes = (size_t)1 << 20;
static const char cooldown_reason[] = "a disconnect report was taken shortly before";
static const char busy_reason[] = "too many reports waited";
static const char failed_reason[] = "a report could not be written";
static const char cancelled_reason[] = "a report was cancelled";

/* What the disconnects of one channel came to. */
struct row {
    char channel[BUGPACK_CHANNEL_MAX_BYTES + 1]; /* "" for the row of all further names */
    bp_trigger_entry entry;
};

struct disconnects {
    bp_trigger_context context;
    bp_lock lock; /* of what follows */
    unsigned pending_count;
    bool was_written;
    uint64_t written_ns;       /* monotonic: when the last report was written */
    uint64_t suppressed_count; /* that no written report lists */
    size_t row_count;
    struct row rows[row_max_count];
};

struct cause {
    struct disconnects *disconnects;
    bp_disconnect model;
    char *texts[3]; /* its strings */
    bp_channel_activity *channels;
};

static bugpack_status open_trigger(const bp_trigger_context *context, void **ret_self,
                                   bugpack_error *error) {
    struct disconnects *disconnects = calloc(1, sizeof *disconnects);
    if (disconnects == NULL || !bp_lock_init(&disconnects->lock, BP_LOCK_DISCONNECTS)) {
        free(disconnects);
        return bp_fail_memory(error, "open a session");
    }
    disconnects->context = *context;
    *ret_self = disconnects;
    return BUGPACK_OK;
}

static void close_trigger(void *self) {
    struct disconnects *disconnects = self;
    bp_lock_destroy(&disconnects->lock);
    free(disconnects);
}

static bp_trigger_note *note(void *self) {
    struct disconnects *disconnects = self;
    bp_lock_acquire(&disconnects->lock);
    size_t row_count = disconnects->row_count; /* rows are only ever added */
    bp_lock_release(&disconnects->lock);
    bp_trigger_note *made = bp_trigger_note_new(row_count);
    if (made != NULL && row_count > 0) {
        bp_lock_acquire(&disconnects->lock);
        for (size_t i = 0; i < made->count; i++) {
            const bp_trigger_entry *entry = &disconnects->rows[i].entry;
            made->rows[i] = (bp_trigger_tally){entry->count, entry->last_wall_ns};
        }
        bp_lock_release(&disconnects->lock);
    }
    return made;
}

static bugpack_status list_entries(void *self, const bp_trigger_note *noted, const bp_job *job,
                                   bp_trigger_list *list, bugpack_error *error) {
    struct disconnects *disconnects = self;
    (void)job;
    (void)error;
    bp_lock_acquire(&disconnects->lock);
    for (size_t i = 0; i < disconnects->row_count; i++) {
        bp_trigger_entry entry = disconnects->rows[i].entry;
        entry.key = disconnects->rows[i].channel;
        if (bp_trigger_note_apply(noted, i, &entry)) {
            bp_trigger_list_add(list, &entry);
        }
    }
    bp_lock_release(&disconnects->lock);
    return BUGPACK_OK;
}

/* The row of a channel, made when it is new. The lock is held. */
static bp_trigger_entry *entry_of(struct disconnects *disconnects, const char *channel) {
    size_t i = 0;
    while (i < disconnects->row_count && strcmp(disconnects->rows[i].channel, channel) != 0) {
        i++;
    }
    if (i == row_max_count) {
        i = row_max_count - 1;
    } else if (i == disconnects->row_count) {
        struct row *row = &disconnects->rows[disconnects->row_count++];
        bool is_rest = i == row_max_count - 1;
        (void)snprintf(row->channel, sizeof row->channel, "%s", is_rest ? "" : channel);
        row->entry =
            (bp_trigger_entry){.kind = BP_REPORT_DISCONNECT, .first_wall_ns = bp_clock_wall_ns()};
    }
    return &disconnects->rows[i].entry;
}

/*
 * Counts an occurrence and says whether it leads to a report, which then is pending. A pending
 * report suppresses others as a written one does; when it fails, no cool-down has begun.
 */
static bool begin(struct disconnects *disconnects, const char *channel, uint64_t cooldown_ns,
                  uint64_t *ret_suppressed_count) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    bp_lock_acquire(&disconnects->lock);
    bp_trigger_entry *entry = entry_of(disconnects, channel);
    entry->count++;
    entry->last_wall_ns = bp_clock_wall_ns();
    bool is_cool = cooldown_ns == 0 ||
                   (disconnects->pending_count == 0 &&
                    (!disconnects->was_written || now_ns - disconnects->written_ns >= cooldown_ns));
    if (is_cool) {
        disconnects->pending_count++;
        *ret_suppressed_count = disconnects->suppressed_count;
    } else {
        disconnects->suppressed_count++;
        entry->reason = cooldown_reason;
    }
    bp_lock_release(&disconnects->lock);
    return is_cool;
}

/* A pending report has ended; `reason` is NULL when it was written, and lists `listed_count`
 * suppressed ones. */
static void end(struct disconnects *disconnects, const char *channel, uint64_t listed_count,
                const char *reason) {
    bp_lock_acquire(&disconnects->lock);
    bp_trigger_entry *entry = entry_of(disconnects, channel);
    disconnects->pending_count--;
    if (reason == NULL) {
        entry->written_count++;
        disconnects->was_written = true;
        disconnects->written_ns = bp_clock_monotonic_ns();
        /* Others may have been suppressed while it was being written. */
        disconnects->suppressed_count -= listed_count < disconnects->suppressed_count
                                             ? listed_count
                                             : disconnects->suppressed_count;
    } else {
        entry->reason = reason;
        disconnects->suppressed_count++;
    }
    bp_lock_release(&disconnects->lock);
}

static void free_cause(struct cause *cause) {
    if (cause != NULL) {
        for (size_t i = 0; i < sizeof cause->texts / sizeof cause->texts[0]; i++) {
            free(cause->texts[i]);
        }
        free(cause->channels);
        free(cause);
    }
}

/* A text of which a hostile peer may have chosen the length. */
static bool copy_cut(const char *text, char **ret_copy) {
    *ret_copy = text == NULL ? NULL : strndup(text, text_max_bytes);
    return text == NULL || *ret_copy != NULL;
}

static void look_at_channel(const bp_channel_item *item, bp_channel_activity *activity) {
    bp_traffic_totals totals;
    bp_traffic_count(item->traffic, &totals);
    (void)snprintf(activity->name, sizeof activity->name, "%s",
                   bp_traffic_identity_of(item->traffic)->name);
    activity->is_closed = item->is_closed;
    memcpy(activity->message_count, totals.message_count, sizeof totals.message_count);
    memcpy(activity->byte_count, totals.byte_count, sizeof totals.byte_count);
    memcpy(activity->last_ns, totals.last_ns, sizeof totals.last_ns);
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
        look_at_channel(list.items[list.count - count + i], &cause->channels[i]);
    }
    bp_channels_unhold(&recorder->channels, &list);
    cause->model.channels = cause->channels;
    cause->model.channel_count = count;
    return cause->channels != NULL;
}

static struct cause *new_cause(struct disconnects *disconnects,
                               const bugpack_disconnect_cause *given, uint64_t suppressed_count) {
    struct cause *cause = calloc(1, sizeof *cause);
    if (cause == NULL || !copy_cut(given->channel, &cause->texts[0]) ||
        !copy_cut(given->error_text, &cause->texts[1]) ||
        !copy_cut(given->error_kind, &cause->texts[2])) {
        free_cause(cause);
        return NULL;
    }
    cause->disconnects = disconnects;
    cause->model = (bp_disconnect){
        .channel = cause->texts[0],
        .error_text = cause->texts[1],
        .error_kind = cause->texts[2],
        .keepalive_fired = given->keepalive_fired,
        .cooldown_ms = disconnects->context.report->settings->disconnect_cooldown_ms,
        .suppressed_count = suppressed_count};
    if (!look_at_channels(disconnects->context.report->recorder, cause)) {
        free_cause(cause);
        return NULL;
    }
    return cause;
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
    const char *reason = result->status == BUGPACK_ERR_CANCELLED ? cancelled_reason : failed_reason;
    end(cause->disconnects, cause->model.channel, cause->model.suppressed_count,
        result->status == BUGPACK_OK ? NULL : reason);
}

static void free_payload(bp_job *job) {
    free_cause(job->payload);
}

static const bp_job_type job_type = {
    .add_entries = add_entries, .settled = settled, .free = free_payload};

static bugpack_status submit(struct disconnects *disconnects, const bugpack_disconnect_cause *given,
                             uint64_t suppressed_count) {
    bp_job *job = bp_job_new(disconnects->context.report, &job_type, BP_REPORT_DISCONNECT, NULL);
    if (job == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    struct cause *cause = new_cause(disconnects, given, suppressed_count);
    job->payload = cause;
    if (cause == NULL || !bp_job_copy_text(given->channel, &job->channel) ||
        !bp_job_copy_text(given->channel, &job->key) ||
        !bp_job_copy_text(given->channel, &job->name_detail)) {
        bp_job_free(job);
        return BUGPACK_ERR_NO_MEMORY;
    }
    cause->model.triggered = job->triggered;
    job->only_channel = true;
    return bp_job_queue_submit(disconnects->context.jobs, job, NULL, NULL);
}

bugpack_status bp_disconnect_see(void *self, const bugpack_disconnect_cause *cause) {
    struct disconnects *disconnects = self;
    uint64_t suppressed_count = 0;
    uint64_t cooldown_ns =
        disconnects->context.report->settings->disconnect_cooldown_ms * BP_NS_PER_MS;
    if (!begin(disconnects, cause->channel, cooldown_ns, &suppressed_count)) {
        return BUGPACK_ERR_BUSY;
    }
    bugpack_status status = submit(disconnects, cause, suppressed_count);
    if (status != BUGPACK_OK) {
        end(disconnects, cause->channel, 0,
            status == BUGPACK_ERR_BUSY ? busy_reason : failed_reason);
    }
    return status;
}

const bp_trigger bp_trigger_disconnect = {
    .open = open_trigger, .note = note, .list = list_entries, .close = close_trigger};
