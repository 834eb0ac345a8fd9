#include "trigger/occasions.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "report/quota.h"

void *bp_occasions_new(size_t object_bytes, const bp_report_context *context,
                       const bp_occasions_rule *rule, bugpack_error *error) {
    assert(rule->rate.cap == 0 || rule->count_reason != NULL); /* without one: no bound */
    assert(rule->rate.cooldown_ms == 0 || rule->cooldown_reason != NULL);
    bp_occasions *occasions = calloc(1, object_bytes);
    if (occasions == NULL) {
        (void)bp_fail_memory(error, "open a session");
        return NULL;
    }
    bp_lock_init(&occasions->lock, BP_LOCK_OCCASIONS);
    occasions->context = context;
    occasions->rule = *rule;
    return occasions;
}

void bp_occasions_free(bp_occasions *occasions) {
    bp_lock_destroy(&occasions->lock);
    free(occasions);
}

/* The row of a key, made when it is new. The lock is held. */
static bp_trigger_entry *entry_of(bp_occasions *occasions, const char *key) {
    size_t i = 0;
    while (i < occasions->row_count && strcmp(occasions->rows[i].key, key) != 0) {
        i++;
    }
    if (i == BP_OCCASIONS_ROW_MAX) {
        i = BP_OCCASIONS_ROW_MAX - 1;
    } else if (i == occasions->row_count) {
        bool is_rest = i == BP_OCCASIONS_ROW_MAX - 1;
        (void)snprintf(occasions->rows[i].key, sizeof occasions->rows[i].key, "%s",
                       is_rest ? "" : key);
        occasions->rows[i].entry =
            (bp_trigger_entry){.kind = occasions->rule.kind, .first_wall_ns = bp_clock_wall_ns()};
        occasions->row_count++;
    }
    return &occasions->rows[i].entry;
}

bool bp_occasions_begin(bp_occasions *occasions, const char *key, uint64_t *ret_suppressed_count) {
    const bp_occasions_rule *rule = &occasions->rule;
    uint64_t cooldown_ns = rule->rate.cooldown_ms * BP_NS_PER_MS;
    const char *reason = NULL; /* why there is no report now */
    bp_lock_acquire(&occasions->lock);
    bp_trigger_entry *entry = entry_of(occasions, key);
    bool is_hot = occasions->pending_count > 0 ||
                  (occasions->report_count > 0 &&
                   bp_clock_monotonic_ns() - occasions->written_ns < cooldown_ns);
    if (rule->rate.cap > 0 &&
        occasions->report_count + occasions->pending_count >= rule->rate.cap) {
        reason = rule->count_reason;
    } else if (cooldown_ns > 0 && is_hot) {
        reason = rule->cooldown_reason;
    }
    entry->count++;
    entry->last_wall_ns = bp_clock_wall_ns();
    if (reason == NULL) {
        occasions->pending_count++;
        *ret_suppressed_count = occasions->suppressed_count;
    } else {
        occasions->suppressed_count++;
        entry->reason = reason;
    }
    bp_lock_release(&occasions->lock);
    return reason == NULL;
}

/* Why a report that was begun is not there. Static, as a list borrows it. */
static const char *reason_of(bugpack_status status) {
    switch (status) {
    case BUGPACK_ERR_CANCELLED:
        return "a report was cancelled";
    case BUGPACK_ERR_BUSY:
        return "too many reports waited";
    case BUGPACK_ERR_LIMIT:
        return bp_quota_reason;
    default:
        return "a report could not be written";
    }
}

void bp_occasions_end(bp_occasions *occasions, const char *key, uint64_t listed_count,
                      bugpack_status status) {
    bp_lock_acquire(&occasions->lock);
    bp_trigger_entry *entry = entry_of(occasions, key);
    occasions->pending_count--;
    if (status == BUGPACK_OK) {
        entry->written_count++;
        occasions->report_count++;
        occasions->written_ns = bp_clock_monotonic_ns();
        /* Others may have been suppressed while it was being written. */
        occasions->suppressed_count -=
            listed_count < occasions->suppressed_count ? listed_count : occasions->suppressed_count;
    } else {
        entry->reason = reason_of(status);
        occasions->suppressed_count++;
    }
    bp_lock_release(&occasions->lock);
}

void bp_occasions_note_duration(bp_occasions *occasions, const char *key, uint64_t duration_ns) {
    bp_lock_acquire(&occasions->lock);
    bp_trigger_entry *entry = entry_of(occasions, key);
    entry->last_duration_ns = duration_ns;
    if (duration_ns > entry->longest_duration_ns) {
        entry->longest_duration_ns = duration_ns;
    }
    bp_lock_release(&occasions->lock);
}

bp_trigger_note *bp_occasions_note(void *trigger) {
    bp_occasions *occasions = trigger;
    bp_lock_acquire(&occasions->lock);
    bp_trigger_note *made = bp_trigger_note_new(occasions->row_count);
    for (size_t i = 0; made != NULL && i < made->count; i++) {
        const bp_trigger_entry *entry = &occasions->rows[i].entry;
        made->rows[i] = (bp_trigger_tally){entry->count, entry->last_wall_ns};
    }
    bp_lock_release(&occasions->lock);
    return made;
}

bugpack_status bp_occasions_list(void *trigger, const bp_trigger_note *noted, const bp_job *job,
                                 bp_trigger_list *list, bugpack_error *error) {
    bp_occasions *occasions = trigger;
    (void)job;
    (void)error;
    bp_lock_acquire(&occasions->lock);
    for (size_t i = 0; i < occasions->row_count; i++) {
        bp_trigger_entry entry = occasions->rows[i].entry;
        entry.key = occasions->rule.has_no_keys ? NULL : occasions->rows[i].key;
        if (bp_trigger_note_apply(noted, i, &entry)) {
            bp_trigger_list_add(list, &entry);
        }
    }
    bp_lock_release(&occasions->lock);
    return BUGPACK_OK;
}
