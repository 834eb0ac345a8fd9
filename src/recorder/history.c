#include "recorder/history.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "recorder/history_record.h"
#include "recorder/shared_snapshot.h"

struct bp_history {
    bp_ring *ring;
    uint64_t window_ns;
    pthread_mutex_t mutex;                         /* for all below */
    bp_shared_snapshot *kept[BP_HISTORY_KEPT_MAX]; /* oldest first; only the writer changes it */
    size_t kept_count;
    uint64_t gap_count;
    bool is_closed;
};

bugpack_status bp_history_new(bp_ring *ring, uint32_t window_ms, bp_history **ret_history,
                              bugpack_error *error) {
    bp_history *history = calloc(1, sizeof *history);
    if (history == NULL || pthread_mutex_init(&history->mutex, NULL) != 0) {
        free(history);
        return bp_fail_memory(error, "keep a metrics history");
    }
    history->ring = ring;
    history->window_ns = window_ms * BP_NS_PER_MS;
    *ret_history = history;
    return BUGPACK_OK;
}

void bp_history_free(bp_history *history) {
    if (history == NULL) {
        return;
    }
    for (size_t i = 0; i < history->kept_count; i++) {
        bp_shared_snapshot_release(history->kept[i]);
    }
    bp_ring_free(history->ring);
    (void)pthread_mutex_destroy(&history->mutex);
    free(history);
}

size_t bp_history_ring_bytes(size_t sample_count) {
    /* The ring's own header of a record, its padding, and what its file format may add. */
    const size_t frame_bytes = 64;
    const size_t record_bytes = sizeof(bp_history_record) + frame_bytes;
    const size_t most = ((size_t)1 << 30) / record_bytes - 1;
    /* A ring takes no record that is over a quarter of it. */
    const size_t least = 8;
    size_t count = sample_count < least ? least : sample_count > most ? most : sample_count;
    /* One more for the gap that the ring leaves where its newest turn ends. */
    return (count + 1) * record_bytes;
}

static uint64_t taken_ns(const bp_history *history, size_t at) {
    return history->kept[at]->snapshot.taken_ns;
}

static bool is_large(const bp_task_snapshot *snapshot) {
    return snapshot->thread_count > BP_HISTORY_LARGE_BYTES / sizeof *snapshot->threads;
}

/* How far apart snapshots must be for both to be kept. */
static uint64_t spacing_ns(const bp_history *history, const bp_shared_snapshot *newest) {
    return is_large(&newest->snapshot) ? history->window_ns : history->window_ns / 8;
}

/* Whether the oldest is not needed: without it too, the newest but one has its window. */
static bool is_oldest_spare(const bp_history *history) {
    size_t count = history->kept_count;
    return count >= 4 && taken_ns(history, count - 2) - taken_ns(history, 1) >= history->window_ns;
}

/*
 * Puts the newest snapshot to the others. What is not kept any more is put into `dropped`, to be
 * freed without the lock. But for the newest two, all are at least an eighth of a window apart, so
 * there are at most ten; the bound on the array is for safety only.
 */
static size_t keep(bp_history *history, bp_shared_snapshot *newest,
                   bp_shared_snapshot *dropped[BP_HISTORY_KEPT_MAX]) {
    size_t drop_count = 0;
    size_t count = history->kept_count;
    if (count >= 2 &&
        taken_ns(history, count - 1) - taken_ns(history, count - 2) < spacing_ns(history, newest)) {
        dropped[drop_count++] = history->kept[--history->kept_count];
    }
    history->kept[history->kept_count++] = newest;
    while (is_oldest_spare(history) || history->kept_count == BP_HISTORY_KEPT_MAX) {
        dropped[drop_count++] = history->kept[0];
        history->kept_count--;
        memmove(history->kept, history->kept + 1, history->kept_count * sizeof history->kept[0]);
    }
    return drop_count;
}

static bugpack_status fail_closed(bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_CLOSED, "the metrics history is closed");
}

static bool is_closed(bp_history *history) {
    (void)pthread_mutex_lock(&history->mutex);
    bool closed = history->is_closed;
    (void)pthread_mutex_unlock(&history->mutex);
    return closed;
}

/* Only the writer changes what is kept, so it may look without the lock. */
static bugpack_status append_record(bp_history *history, bp_shared_snapshot *newest,
                                    bugpack_error *error) {
    if (history->kept_count == 0) {
        return BUGPACK_OK;
    }
    bp_task_snapshot *before = &history->kept[history->kept_count - 1]->snapshot;
    if (newest->snapshot.taken_ns <= before->taken_ns) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "a snapshot is not newer than the last");
    }
    bp_metrics metrics = {0};
    bugpack_status status = bp_metrics_compute(before, &newest->snapshot, &metrics, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_history_record record;
    bp_history_record_make(&metrics, before->taken_ns, newest->snapshot.taken_ns, &record);
    bp_metrics_release(&metrics);
    const struct iovec part = {.iov_base = &record, .iov_len = bp_history_record_bytes(&record)};
    if (bp_ring_append(history->ring, BP_HISTORY_TAG, &part, 1) == 0) {
        return is_closed(history)
                   ? fail_closed(error)
                   : bp_fail(error, BUGPACK_ERR_INVALID, "the ring of the history is too small");
    }
    return BUGPACK_OK;
}

bugpack_status bp_history_add(bp_history *history, bp_task_snapshot *snapshot,
                              bugpack_error *error) {
    bp_shared_snapshot *dropped[BP_HISTORY_KEPT_MAX];
    size_t drop_count = 0;
    bugpack_status status = BUGPACK_OK;
    bp_shared_snapshot *newest = NULL;
    if (is_closed(history)) {
        status = fail_closed(error);
        goto out;
    }
    newest = bp_shared_snapshot_new(snapshot);
    status = newest == NULL ? bp_fail_memory(error, "keep a snapshot")
                            : append_record(history, newest, error);
    if (status != BUGPACK_OK) {
        if (status != BUGPACK_ERR_CLOSED) {
            bp_history_add_gap(history);
        }
        goto out;
    }
    (void)pthread_mutex_lock(&history->mutex);
    drop_count = keep(history, newest, dropped);
    (void)pthread_mutex_unlock(&history->mutex);
    newest = NULL;
out:
    for (size_t i = 0; i < drop_count; i++) {
        bp_shared_snapshot_release(dropped[i]);
    }
    bp_shared_snapshot_release(newest);
    bp_task_snapshot_release(snapshot);
    return status;
}

void bp_history_add_gap(bp_history *history) {
    (void)pthread_mutex_lock(&history->mutex);
    history->gap_count++;
    (void)pthread_mutex_unlock(&history->mutex);
}

uint64_t bp_history_gap_count(bp_history *history) {
    (void)pthread_mutex_lock(&history->mutex);
    uint64_t count = history->gap_count;
    (void)pthread_mutex_unlock(&history->mutex);
    return count;
}

void bp_history_close(bp_history *history) {
    (void)pthread_mutex_lock(&history->mutex);
    history->is_closed = true;
    (void)pthread_mutex_unlock(&history->mutex);
    bp_ring_close(history->ring);
}

/* The window that ended at `end`, or false. The first snapshot that is old enough is the newest. */
static bool find_window(const bp_history *history, size_t end, size_t *ret_begin) {
    for (size_t begin = end; begin-- > 0;) {
        if (taken_ns(history, end) - taken_ns(history, begin) >= history->window_ns) {
            *ret_begin = begin;
            return true;
        }
    }
    return false;
}

bool bp_history_hold(bp_history *history, uint64_t until_ns, uint64_t max_age_ns,
                     bp_history_held *ret_held) {
    size_t begin;
    (void)pthread_mutex_lock(&history->mutex);
    size_t end = history->kept_count;
    while (end > 0 && taken_ns(history, end - 1) > until_ns) {
        end--;
    }
    bool found = end > 0 && until_ns - taken_ns(history, end - 1) <= max_age_ns &&
                 find_window(history, end - 1, &begin);
    if (found) {
        ret_held->before = bp_shared_snapshot_retain(history->kept[begin]);
        ret_held->after = bp_shared_snapshot_retain(history->kept[end - 1]);
    }
    (void)pthread_mutex_unlock(&history->mutex);
    return found;
}

bp_ring *bp_history_ring(bp_history *history) {
    return history->ring;
}
