#include "send/sender.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "send/backoff.h"

enum { secs_per_day = 24 * 3600, us_per_sec = 1000000 };

/* One destination at work. */
typedef struct work {
    const bp_sender *sender;
    const bp_send_queue *queue;
    const bp_send_destination *destination;
    bp_send_state state;
    bool is_down; /* no more attempts now */
} work;

static uint64_t now_secs(void) {
    return bp_clock_wall_ns() / BP_NS_PER_SEC;
}

static void say(const work *it, bp_sender_outcome outcome, const bp_send_item *item,
                const char *text) {
    const bp_sender_event event = {.outcome = outcome,
                                   .destination = it->destination,
                                   .name = item->name + BP_ID_BYTES,
                                   .text = text,
                                   .item = item,
                                   .report_id = ""};
    it->sender->say(it->sender->context, &event);
}

/* True, after an event, if something but the time keeps the report from being sent. */
static bool is_kept(const work *it, const bp_send_item *item, uint64_t now) {
    const bp_send_destination *destination = it->destination;
    uint64_t max_age_secs = it->sender->settings->max_age_secs;
    uint64_t queued_secs = item->queued_us / us_per_sec;
    bool has_consent =
        destination->consent == BP_SEND_ALWAYS || item->has_consent || it->sender->has_consent;
    if (item->is_stopped && !it->sender->tries_all) {
        say(it, BP_SENDER_STOPPED, item, item->answer);
    } else if (destination->consent == BP_SEND_NEVER) {
        say(it, BP_SENDER_HELD, item, "its destination has consent = never");
    } else if (!has_consent) {
        say(it, BP_SENDER_HELD, item, "nobody has consented: use --yes, or consent = always");
    } else if (destination->max_bytes > 0 && item->bytes > destination->max_bytes) {
        say(it, BP_SENDER_STOPPED, item, "it is larger than maxBytes");
    } else if (max_age_secs > 0 && now > queued_secs + max_age_secs && !it->sender->tries_all) {
        say(it, BP_SENDER_STOPPED, item, "it has waited for longer than maxAge");
    } else {
        return false;
    }
    return true;
}

/* True, after an event, if the report waits for its time. */
static bool waits(const work *it, bp_send_item *item, uint64_t now) {
    uint64_t next = item->next_secs > it->state.next_secs ? item->next_secs : it->state.next_secs;
    uint64_t day = now / secs_per_day, limit = it->destination->max_daily_bytes;
    uint64_t sent = it->state.day == day ? it->state.day_bytes : 0;
    const char *text = item->answer;
    if (it->sender->tries_all) {
        next = 0;
    }
    if (limit > 0 && item->bytes > limit) {
        say(it, BP_SENDER_STOPPED, item, "it is larger than maxBytesPerDay");
        return true;
    }
    if (limit > 0 && sent + item->bytes > limit) {
        text = "maxBytesPerDay is reached";
        next = next > (day + 1) * secs_per_day ? next : (day + 1) * secs_per_day;
    }
    if (it->is_down && next <= now) {
        text = "the destination does not answer";
        next = now;
    }
    if (next <= now && !it->is_down) {
        return false;
    }
    item->next_secs = next;
    say(it, BP_SENDER_DEFERRED, item, text);
    return true;
}

/* Counts what is about to be sent: an attempt costs as much as a success. */
static bugpack_status count_bytes(work *it, const bp_send_item *item, uint64_t now,
                                  bugpack_error *error) {
    uint64_t day = now / secs_per_day;
    if (it->destination->max_daily_bytes == 0) {
        return BUGPACK_OK;
    }
    it->state.day_bytes = item->bytes + (it->state.day == day ? it->state.day_bytes : 0);
    it->state.day = day;
    return bp_send_queue_save(it->queue, it->destination->name, &it->state, error);
}

/* The report is not there: notes why, and when it is tried again. */
static bugpack_status note_failure(work *it, bp_send_item *item, const bp_send_result *result,
                                   uint64_t now, bugpack_error *error) {
    uint32_t random = 0;
    (void)bp_random_bytes(&random, sizeof random);
    item->attempt_count++;
    item->is_stopped = result->outcome == BP_SEND_REFUSED;
    item->next_secs = 0;
    (void)snprintf(item->answer, sizeof item->answer, "%s", result->text);
    if (result->outcome == BP_SEND_LATER) {
        uint64_t wait = result->retry_after_secs;
        item->next_secs =
            now + (wait != 0 ? wait : bp_backoff_secs((uint32_t)item->attempt_count, random));
        it->is_down = result->is_down || wait != 0;
        it->state.next_secs = wait != 0 ? item->next_secs : it->state.next_secs;
    }
    bugpack_status status = bp_send_queue_save_item(it->queue, it->destination->name, item, error);
    if (status == BUGPACK_OK && result->retry_after_secs != 0) {
        status = bp_send_queue_save(it->queue, it->destination->name, &it->state, error);
    }
    return status;
}

/* Sends an open report, and keeps or removes it. */
static bugpack_status attempt(work *it, bp_send_item *item, const bp_send_report *report,
                              bugpack_error *error) {
    const bp_sender *sender = it->sender;
    bp_send_result result;
    bugpack_status status = count_bytes(it, item, now_secs(), error);
    if (status != BUGPACK_OK) {
        return status;
    }
    say(it, BP_SENDER_BEGUN, item, "");
    bp_send_deliver(it->destination, report, sender->progress, sender->context, &result);
    bp_sender_event event = {.destination = it->destination,
                             .name = report->name,
                             .text = result.text,
                             .item = item,
                             .report_id = report->id,
                             .http_status = (uint64_t)result.http_status,
                             .is_news = true};
    switch (result.outcome) {
    case BP_SEND_CANCELLED:
        return bp_fail(error, BUGPACK_ERR_CANCELLED, "interrupted");
    case BP_SEND_SENT:
        event.outcome = BP_SENDER_SENT;
        status = bp_send_queue_remove(it->queue, it->destination->name, item, error);
        break;
    case BP_SEND_LATER:
    case BP_SEND_REFUSED:
        event.outcome = result.outcome == BP_SEND_LATER ? BP_SENDER_DEFERRED : BP_SENDER_STOPPED;
        status = note_failure(it, item, &result, now_secs(), error);
    }
    sender->say(sender->context, &event);
    return status;
}

static bugpack_status try_item(work *it, bp_send_item *item, bugpack_error *error) {
    bp_send_report report;
    bugpack_error reason = BUGPACK_ERROR_INIT;
    char path[4096];
    uint64_t now = now_secs();
    if (is_kept(it, item, now) || waits(it, item, now)) {
        return BUGPACK_OK;
    }
    (void)snprintf(path, sizeof path, "%s/%s/%s", it->queue->path, it->destination->name,
                   item->name);
    bugpack_status status = BUGPACK_OK;
    if (bp_send_report_open(path, item->name + BP_ID_BYTES, &report, &reason) == BUGPACK_OK) {
        status = attempt(it, item, &report, error);
    } else {
        say(it, BP_SENDER_STOPPED, item, reason.message);
    }
    bp_send_report_close(&report);
    return status;
}

/* All reports of a destination, which has no URL if the configuration does not know it any more. */
static bugpack_status run_destination(work *it, const char *name, bugpack_error *error) {
    bp_send_item *items = NULL;
    size_t count = 0;
    bugpack_status status = bp_send_queue_list(it->queue, name, &items, &count, error);
    bp_send_queue_load(it->queue, name, &it->state);
    for (size_t i = 0; i < count && status == BUGPACK_OK; i++) {
        if (it->destination->url == NULL) {
            say(it, BP_SENDER_HELD, &items[i], "the configuration has no such destination");
        } else {
            status = try_item(it, &items[i], error);
        }
    }
    free(items);
    return status;
}

bugpack_status bp_sender_run(const bp_sender *sender, const bp_send_queue *queue,
                             bugpack_error *error) {
    DIR *dir = bp_file_list_directory(queue->fd);
    bugpack_status status = BUGPACK_OK;
    if (dir == NULL) {
        return bp_fail_errno(error, errno, "cannot list the queue \"%s\"", queue->path);
    }
    for (struct dirent *entry; status == BUGPACK_OK && (entry = readdir(dir)) != NULL;) {
        const bp_send_destination unknown = {.name = entry->d_name};
        const bp_send_destination *found = bp_send_settings_find(sender->settings, entry->d_name);
        work it = {sender, queue, found != NULL ? found : &unknown, {0}, false};
        bool is_chosen = sender->only == NULL || strcmp(sender->only, entry->d_name) == 0;
        if (entry->d_name[0] != '.' && is_chosen) {
            status = run_destination(&it, entry->d_name, error);
        }
    }
    (void)closedir(dir);
    return status;
}
