#include "session/auto_snapshot.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "session/session.h"

/* A failure that goes on is told no more often than this. */
static const uint64_t telling_interval_ns = 300 * BP_NS_PER_SEC;

struct bp_auto_snapshot {
    uint64_t interval_ns;
    pthread_mutex_t mutex; /* of what follows */
    uint64_t due_ns;       /* when the next one is due; of the one that is under way, when it was */
    bool is_under_way;
    uint64_t told_ns; /* when a failure was told last; 0: never */
    bp_trigger_entry entry;
};

bugpack_status bp_auto_snapshot_new(const bugpack_options *options, bp_auto_snapshot **ret_auto,
                                    bugpack_error *error) {
    bp_auto_snapshot *snapshots = calloc(1, sizeof *snapshots);
    if (snapshots == NULL || pthread_mutex_init(&snapshots->mutex, NULL) != 0) {
        free(snapshots);
        return bp_fail_memory(error, "prepare auto-snapshots");
    }
    snapshots->interval_ns = options->auto_snapshot_interval_ms * BP_NS_PER_MS;
    snapshots->due_ns = bp_clock_monotonic_ns() + snapshots->interval_ns;
    snapshots->entry.kind = BP_REPORT_AUTO_SNAPSHOT;
    *ret_auto = snapshots;
    return BUGPACK_OK;
}

void bp_auto_snapshot_free(bp_auto_snapshot *snapshots) {
    if (snapshots != NULL) {
        (void)pthread_mutex_destroy(&snapshots->mutex);
        free(snapshots);
    }
}

uint64_t bp_auto_snapshot_next(uint64_t due_ns, uint64_t done_ns, uint64_t interval_ns) {
    uint64_t next_ns = due_ns + interval_ns;
    return next_ns >= done_ns ? next_ns : done_ns + interval_ns;
}

/* One has ended, or could not be ordered; `reason` is NULL when it was written. */
static void note_end(bp_auto_snapshot *snapshots, const char *reason) {
    (void)pthread_mutex_lock(&snapshots->mutex);
    snapshots->is_under_way = false;
    snapshots->due_ns =
        bp_auto_snapshot_next(snapshots->due_ns, bp_clock_monotonic_ns(), snapshots->interval_ns);
    if (reason == NULL) {
        snapshots->entry.written_count++;
    } else {
        snapshots->entry.reason = reason;
    }
    (void)pthread_mutex_unlock(&snapshots->mutex);
}

bool bp_auto_snapshot_may_tell(uint64_t told_ns, uint64_t now_ns) {
    return told_ns == 0 || now_ns - told_ns >= telling_interval_ns;
}

/* Whether a failure may be told now; then it counts as told. */
static bool may_tell(bp_auto_snapshot *snapshots) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    (void)pthread_mutex_lock(&snapshots->mutex);
    bool may = bp_auto_snapshot_may_tell(snapshots->told_ns, now_ns);
    if (may) {
        snapshots->told_ns = now_ns;
    }
    (void)pthread_mutex_unlock(&snapshots->mutex);
    return may;
}

static void settle(bugpack *session, const bp_order *order, const bugpack_report_result *result) {
    (void)order;
    bugpack_status status = result->status;
    note_end(session->auto_snapshot, status == BUGPACK_OK ? NULL
                                     : status == BUGPACK_ERR_CANCELLED
                                         ? "one was cancelled"
                                         : "one could not be written");
    if (status != BUGPACK_OK && status != BUGPACK_ERR_CANCELLED &&
        may_tell(session->auto_snapshot)) {
        bugpack_notify(session, BUGPACK_LEVEL_WARN, "bugpack",
                       "an auto-snapshot could not be written: %s", result->error.message);
    }
    bp_timer_wake(session->timer);
}

static bugpack_status order_one(bugpack *session) {
    bp_order *order = bp_order_new(session, BP_REPORT_AUTO_SNAPSHOT);
    if (order == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    order->report_dir = session->options.auto_snapshot_dir;
    order->makes_report_dir = true;
    order->on_settled = settle;
    return bp_order_submit(session, order, NULL, NULL);
}

/* Whether one is to be ordered now; then it is under way. */
static bool begin(bp_auto_snapshot *snapshots, uint64_t now_ns) {
    (void)pthread_mutex_lock(&snapshots->mutex);
    bool is_due = !snapshots->is_under_way && now_ns >= snapshots->due_ns;
    if (is_due) {
        snapshots->is_under_way = true;
        snapshots->entry.count++;
        snapshots->entry.last_wall_ns = bp_clock_wall_ns();
        if (snapshots->entry.count == 1) {
            snapshots->entry.first_wall_ns = snapshots->entry.last_wall_ns;
        }
    }
    (void)pthread_mutex_unlock(&snapshots->mutex);
    return is_due;
}

uint64_t bp_auto_snapshot_tick(bugpack *session, uint64_t now_ns) {
    bp_auto_snapshot *snapshots = session->auto_snapshot;
    if (snapshots == NULL) {
        return UINT64_MAX;
    }
    if (begin(snapshots, now_ns) && order_one(session) != BUGPACK_OK) {
        note_end(snapshots, "too many reports waited");
    }
    (void)pthread_mutex_lock(&snapshots->mutex);
    uint64_t next_ns = snapshots->is_under_way ? UINT64_MAX : snapshots->due_ns;
    (void)pthread_mutex_unlock(&snapshots->mutex);
    return next_ns;
}

void bp_auto_snapshot_list(bp_auto_snapshot *snapshots, bp_trigger_list *list) {
    if (snapshots == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&snapshots->mutex);
    bp_trigger_entry entry = snapshots->entry;
    (void)pthread_mutex_unlock(&snapshots->mutex);
    if (entry.count > 0) {
        bp_trigger_list_add(list, &entry);
    }
}
