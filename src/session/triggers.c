#include "session/triggers.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "session/auto_snapshot.h"
#include "session/disconnect.h"
#include "session/retained.h"
#include "session/session.h"

/* On the timer's thread: each source does what is due and says when it wants to be asked again. */
static uint64_t tick(void *context, uint64_t now_ns) {
    bugpack *session = context;
    uint64_t snapshot_ns = bp_auto_snapshot_tick(session, now_ns);
    uint64_t expiry_ns = bp_retained_expire(session->kept, now_ns);
    return snapshot_ns < expiry_ns ? snapshot_ns : expiry_ns;
}

bugpack_status bp_session_open_triggers(bugpack *session, bugpack_error *error) {
    bugpack_status status = bp_timer_new("bugpack-timer", tick, session, &session->timer, error);
    if (status == BUGPACK_OK) {
        status = bp_retained_new(session->timer, &session->kept, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_disconnects_new(&session->disconnects, error);
    }
    if (status == BUGPACK_OK && session->options.auto_snapshot_interval_ms > 0) {
        status = bp_auto_snapshot_new(&session->options, &session->auto_snapshot, error);
        if (status == BUGPACK_OK) {
            status = bp_timer_start(session->timer, error);
        }
    }
    return status;
}

void bp_session_stop_triggers(bugpack *session) {
    bp_timer_stop(session->timer);
}

void bp_session_free_triggers(bugpack *session) {
    bp_auto_snapshot_free(session->auto_snapshot);
    bp_disconnects_free(session->disconnects);
    bp_retained_free(session->kept);
    bp_timer_free(session->timer);
}

static bool make_room(bp_trigger_list *list) {
    if (list->count < list->capacity) {
        return true;
    }
    size_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
    bp_trigger_entry *entries = realloc(list->entries, capacity * sizeof *entries);
    if (entries != NULL) {
        list->entries = entries;
        list->capacity = capacity;
    }
    return entries != NULL;
}

void bp_trigger_list_add(bp_trigger_list *list, const bp_trigger_entry *entry) {
    char *key = entry->key == NULL ? NULL : strdup(entry->key);
    if ((entry->key != NULL && key == NULL) || !make_room(list)) {
        free(key);
        list->is_failed = true;
        return;
    }
    list->entries[list->count] = *entry;
    list->entries[list->count].key = key;
    list->count++;
}

void bp_trigger_list_release(bp_trigger_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free((char *)(uintptr_t)list->entries[i].key);
    }
    free(list->entries);
    *list = (bp_trigger_list){.entries = NULL};
}

/* What an order's kind has as its key in the ledger; NULL for none. */
static const char *key_of(const bp_order *order) {
    return order->kind == BP_REPORT_PEDANTIC     ? order->gap_key
           : order->kind == BP_REPORT_DISCONNECT ? order->channel
                                                 : NULL;
}

static bool is_of_order(const bp_trigger_entry *entry, const bp_order *order) {
    const char *key = key_of(order);
    return entry->kind == order->kind && entry->written_count < entry->count &&
           (key == NULL ? entry->key == NULL : entry->key != NULL && strcmp(entry->key, key) == 0);
}

static void count_as_written(bp_trigger_list *list, const bp_order *order) {
    for (size_t i = 0; i < list->count; i++) {
        bp_trigger_entry *entry = &list->entries[i];
        if (is_of_order(entry, order)) {
            entry->written_count++;
            entry->reason = entry->written_count == entry->count ? NULL : entry->reason;
            return;
        }
    }
}

/* Gaps know themselves that this order's own one is written. */
static bugpack_status add_gaps(bugpack *session, const bp_order *order, bp_trigger_list *list,
                               bugpack_error *error) {
    bp_trigger_entry *entries = NULL;
    size_t count = 0;
    bugpack_status status = bp_pedantic_list(session, order, &entries, &count, error);
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        bp_trigger_list_add(list, &entries[i]);
    }
    free(entries);
    return status == BUGPACK_OK && list->is_failed ? bp_fail_memory(error, "list the triggers")
                                                   : status;
}

bugpack_status bp_session_list_triggers(bugpack *session, const bp_order *order,
                                        bp_trigger_list *ret_list, bugpack_error *error) {
    bp_trigger_list list = {.entries = NULL};
    bp_disconnects_list(session->disconnects, &list);
    bp_auto_snapshot_list(session->auto_snapshot, &list);
    if (list.is_failed) {
        bp_trigger_list_release(&list);
        return bp_fail_memory(error, "list the triggers");
    }
    count_as_written(&list, order);
    bugpack_status status = add_gaps(session, order, &list, error);
    if (status != BUGPACK_OK) {
        bp_trigger_list_release(&list);
        return status;
    }
    *ret_list = list;
    return BUGPACK_OK;
}
