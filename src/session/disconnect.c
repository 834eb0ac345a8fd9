#include "session/disconnect.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "model/disconnect.h"
#include "session/session.h"

/* Lines of the ledger: as many channels as there can be, and one for all further names. */
enum { line_max_count = BUGPACK_CHANNEL_MAX + 1, text_max_bytes = 4096 };

static const size_t json_limit_bytes = (size_t)1 << 20;
static const char cooldown_reason[] = "a disconnect report was taken shortly before";
static const char busy_reason[] = "too many reports waited";
static const char failed_reason[] = "a report could not be written";
static const char cancelled_reason[] = "a report was cancelled";

/* What one channel's disconnects came to; the key is its name. */
struct line {
    char channel[BUGPACK_CHANNEL_MAX_BYTES + 1]; /* "" for the one of all further names */
    bp_trigger_entry entry;
};

struct bp_disconnects {
    pthread_mutex_t mutex; /* of what follows */
    unsigned pending_count;
    bool was_written;
    uint64_t written_ns;       /* monotonic: when the last report was written */
    uint64_t suppressed_count; /* that no written report has told of */
    size_t line_count;
    struct line lines[line_max_count];
};

struct bp_cause {
    bp_disconnect model;
    char *texts[3]; /* what its strings are */
    bp_channel_activity channels[BUGPACK_CHANNEL_MAX];
};

bugpack_status bp_disconnects_new(bp_disconnects **ret_disconnects, bugpack_error *error) {
    bp_disconnects *disconnects = calloc(1, sizeof *disconnects);
    if (disconnects == NULL || pthread_mutex_init(&disconnects->mutex, NULL) != 0) {
        free(disconnects);
        return bp_fail_memory(error, "open a session");
    }
    *ret_disconnects = disconnects;
    return BUGPACK_OK;
}

void bp_disconnects_free(bp_disconnects *disconnects) {
    if (disconnects != NULL) {
        (void)pthread_mutex_destroy(&disconnects->mutex);
        free(disconnects);
    }
}

void bp_disconnects_list(bp_disconnects *disconnects, bp_trigger_list *list) {
    (void)pthread_mutex_lock(&disconnects->mutex);
    for (size_t i = 0; i < disconnects->line_count; i++) {
        bp_trigger_entry entry = disconnects->lines[i].entry;
        entry.key = disconnects->lines[i].channel;
        bp_trigger_list_add(list, &entry);
    }
    (void)pthread_mutex_unlock(&disconnects->mutex);
}

/* The line of a channel, made when it is new. The mutex is held. */
static bp_trigger_entry *entry_of(bp_disconnects *disconnects, const char *channel) {
    size_t i = 0;
    while (i < disconnects->line_count && strcmp(disconnects->lines[i].channel, channel) != 0) {
        i++;
    }
    if (i == line_max_count) {
        i = line_max_count - 1;
    } else if (i == disconnects->line_count) {
        struct line *line = &disconnects->lines[disconnects->line_count++];
        bool is_rest = i == line_max_count - 1;
        (void)snprintf(line->channel, sizeof line->channel, "%s", is_rest ? "" : channel);
        line->entry =
            (bp_trigger_entry){.kind = BP_REPORT_DISCONNECT, .first_wall_ns = bp_clock_wall_ns()};
    }
    return &disconnects->lines[i].entry;
}

/*
 * Counts a sight and says whether it leads to a report, which then is pending. One that waits or is
 * being taken suppresses others as one that was written does; when it fails, nothing has begun.
 */
static bool begin(bp_disconnects *disconnects, const char *channel, uint64_t cooldown_ns,
                  uint64_t *ret_suppressed_count) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    (void)pthread_mutex_lock(&disconnects->mutex);
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
    (void)pthread_mutex_unlock(&disconnects->mutex);
    return is_cool;
}

/* A pending one has ended; `reason` is NULL when it was written, which tells of `told_count`. */
static void end(bp_disconnects *disconnects, const char *channel, uint64_t told_count,
                const char *reason) {
    (void)pthread_mutex_lock(&disconnects->mutex);
    bp_trigger_entry *entry = entry_of(disconnects, channel);
    disconnects->pending_count--;
    if (reason == NULL) {
        entry->written_count++;
        disconnects->was_written = true;
        disconnects->written_ns = bp_clock_monotonic_ns();
        /* Not 0: others were suppressed while it was being taken. */
        disconnects->suppressed_count -=
            told_count < disconnects->suppressed_count ? told_count : disconnects->suppressed_count;
    } else {
        entry->reason = reason;
        disconnects->suppressed_count++;
    }
    (void)pthread_mutex_unlock(&disconnects->mutex);
}

static void settle(bugpack *session, const bp_order *order, const bugpack_report_result *result) {
    const char *reason = result->status == BUGPACK_OK              ? NULL
                         : result->status == BUGPACK_ERR_CANCELLED ? cancelled_reason
                                                                   : failed_reason;
    end(session->disconnects, order->channel, order->cause->model.suppressed_count, reason);
}

void bp_cause_free(bp_cause *cause) {
    if (cause != NULL) {
        for (size_t i = 0; i < sizeof cause->texts / sizeof cause->texts[0]; i++) {
            free(cause->texts[i]);
        }
        free(cause);
    }
}

/* A text of which a hostile peer may have chosen the length. */
static bool copy_cut(const char *text, char **ret_copy) {
    *ret_copy = text == NULL ? NULL : strndup(text, text_max_bytes);
    return text == NULL || *ret_copy != NULL;
}

/* The channels in the order of their opening. */
static void look_at_channels(bugpack *session, bp_cause *cause) {
    const bp_traffic *channels[BUGPACK_CHANNEL_MAX];
    size_t count = bp_session_list_channels(session, channels);
    for (size_t i = 0; i < count; i++) {
        bp_traffic_totals totals;
        bp_channel_activity *activity = &cause->channels[i];
        bp_traffic_count(channels[i], &totals);
        (void)snprintf(activity->name, sizeof activity->name, "%s",
                       bp_traffic_identity_of(channels[i])->name);
        memcpy(activity->message_count, totals.message_count, sizeof totals.message_count);
        memcpy(activity->byte_count, totals.byte_count, sizeof totals.byte_count);
        memcpy(activity->last_ns, totals.last_ns, sizeof totals.last_ns);
    }
    cause->model.channels = cause->channels;
    cause->model.channel_count = count;
}

static bp_cause *cause_new(bugpack *session, const bugpack_disconnect_cause *given,
                           bp_instant triggered, uint64_t suppressed_count) {
    bp_cause *cause = calloc(1, sizeof *cause);
    if (cause == NULL || !copy_cut(given->channel, &cause->texts[0]) ||
        !copy_cut(given->error_text, &cause->texts[1]) ||
        !copy_cut(given->error_kind, &cause->texts[2])) {
        bp_cause_free(cause);
        return NULL;
    }
    cause->model = (bp_disconnect){.channel = cause->texts[0],
                                   .error_text = cause->texts[1],
                                   .error_kind = cause->texts[2],
                                   .keepalive_fired = given->keepalive_fired,
                                   .cooldown_ms = session->options.disconnect_cooldown_ms,
                                   .suppressed_count = suppressed_count,
                                   .triggered = triggered};
    look_at_channels(session, cause);
    return cause;
}

bugpack_status bp_cause_add(const bp_cause *cause, bp_bundle *bundle, bugpack_error *error) {
    bugpack_writer writer;
    bp_writer_init(&writer, json_limit_bytes);
    bp_instant began = bp_clock_now();
    bugpack_status status = bp_disconnect_print(&cause->model, &writer.content, error);
    writer.line.captured_wall_ns = cause->model.triggered.wall_ns;
    writer.line.duration_ns = bp_clock_monotonic_ns() - began.monotonic_ns;
    return bp_bundle_put(bundle, "disconnect-cause.json", status, &writer, error);
}

static bugpack_status order_report(bugpack *session, const bugpack_disconnect_cause *cause,
                                   uint64_t suppressed_count) {
    bp_order *order = bp_order_new(session, BP_REPORT_DISCONNECT);
    if (order == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    order->cause = cause_new(session, cause, order->triggered, suppressed_count);
    order->on_settled = settle;
    if (order->cause == NULL || !bp_order_copy_text(cause->channel, &order->channel) ||
        !bp_order_copy_text(cause->channel, &order->name_detail)) {
        bp_order_free(order);
        return BUGPACK_ERR_NO_MEMORY;
    }
    order->only_channel = order->channel;
    return bp_order_submit(session, order, NULL, NULL);
}

/* Takes the fields that the host's version of the struct has. */
static bugpack_status read_cause(const bugpack_disconnect_cause *given,
                                 bugpack_disconnect_cause *cause) {
    const size_t first_version_bytes =
        offsetof(bugpack_disconnect_cause, keepalive_fired) + sizeof cause->keepalive_fired;
    *cause = (bugpack_disconnect_cause)BUGPACK_DISCONNECT_CAUSE_INIT;
    if (given == NULL || given->struct_size < first_version_bytes) {
        return BUGPACK_ERR_INVALID;
    }
    memcpy(cause, given, given->struct_size < sizeof *cause ? given->struct_size : sizeof *cause);
    bool is_good =
        cause->channel != NULL && cause->channel[0] != '\0' &&
        strnlen(cause->channel, BUGPACK_CHANNEL_MAX_BYTES + 1) <= BUGPACK_CHANNEL_MAX_BYTES;
    return is_good ? BUGPACK_OK : BUGPACK_ERR_INVALID;
}

static bugpack_status disconnect(bugpack *session, const bugpack_disconnect_cause *cause) {
    uint64_t suppressed_count = 0;
    if (!begin(session->disconnects, cause->channel,
               session->options.disconnect_cooldown_ms * BP_NS_PER_MS, &suppressed_count)) {
        return BUGPACK_ERR_BUSY;
    }
    bugpack_status status = order_report(session, cause, suppressed_count);
    if (status != BUGPACK_OK) {
        end(session->disconnects, cause->channel, 0,
            status == BUGPACK_ERR_BUSY ? busy_reason : failed_reason);
    }
    return status;
}

bugpack_status bugpack_disconnect_because(bugpack *session, const bugpack_disconnect_cause *cause) {
    bugpack_disconnect_cause known;
    bp_guard_entry entry;
    bugpack_status status = bp_session_enter(session, &entry);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = read_cause(cause, &known);
    if (status == BUGPACK_OK) {
        status = disconnect(session, &known);
    }
    bp_session_leave(&entry);
    return status;
}

bugpack_status bugpack_disconnect(bugpack *session, const char *channel, const char *error_text) {
    bugpack_disconnect_cause cause = BUGPACK_DISCONNECT_CAUSE_INIT;
    cause.channel = channel;
    cause.error_text = error_text;
    return bugpack_disconnect_because(session, &cause);
}
