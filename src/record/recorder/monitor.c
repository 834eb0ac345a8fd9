#include "recorder/monitor.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "platform/thread.h"

struct entry {
    bp_monitor_task *task; /* NULL: the place is free */
    void *context;
    uint64_t due_ns;
};

struct bp_monitor {
    pthread_t thread;
    bp_lock lock; /* of what follows */
    pthread_cond_t changed;
    bool is_woken, is_stopping;
    struct entry *running; /* NULL for none */
    struct entry entries[BP_MONITOR_TASK_MAX];
};

/* Runs what is due, and returns when the next task is. The lock is held, except during the tasks.
 */
static uint64_t run_due(bp_monitor *monitor) {
    uint64_t next_ns = UINT64_MAX;
    for (size_t i = 0; i < BP_MONITOR_TASK_MAX; i++) {
        struct entry *entry = &monitor->entries[i];
        uint64_t now_ns = bp_clock_monotonic_ns();
        if (entry->task != NULL && entry->due_ns <= now_ns) {
            const struct entry running = *entry;
            monitor->running = entry;
            entry->due_ns = UINT64_MAX; /* unless a wake or the task says otherwise */
            bp_lock_release(&monitor->lock);
            uint64_t wanted_ns = running.task(running.context, now_ns);
            bp_lock_acquire(&monitor->lock);
            entry->due_ns = wanted_ns < entry->due_ns ? wanted_ns : entry->due_ns;
            monitor->running = NULL;
            (void)pthread_cond_broadcast(&monitor->changed);
        }
        if (entry->task != NULL && entry->due_ns < next_ns) {
            next_ns = entry->due_ns;
        }
    }
    return next_ns;
}

/* Ends the wait. The lock is held. */
static void wake(bp_monitor *monitor) {
    monitor->is_woken = true;
    (void)pthread_cond_broadcast(&monitor->changed);
}

static void *run(void *argument) {
    bp_monitor *monitor = argument;
    bp_thread_set_name(BP_MONITOR_THREAD);
    bp_lock_acquire(&monitor->lock);
    while (!monitor->is_stopping) {
        monitor->is_woken = false;
        uint64_t next_ns = run_due(monitor);
        while (!monitor->is_woken &&
               bp_lock_wait_until(&monitor->lock, &monitor->changed, next_ns)) {}
    }
    bp_lock_release(&monitor->lock);
    return NULL;
}

static void free_monitor(bp_monitor *monitor) {
    (void)pthread_cond_destroy(&monitor->changed);
    bp_lock_destroy(&monitor->lock);
    free(monitor);
}

bugpack_status bp_monitor_new(bp_monitor **ret_monitor, bugpack_error *error) {
    bp_monitor *monitor = calloc(1, sizeof *monitor);
    if (monitor == NULL) {
        return bp_fail_memory(error, "start the monitor");
    }
    bp_condition_init(&monitor->changed);
    bp_lock_init(&monitor->lock, BP_LOCK_MONITOR);
    bugpack_status status = bp_thread_start(run, monitor, &monitor->thread, error);
    if (status != BUGPACK_OK) {
        free_monitor(monitor);
        return status;
    }
    *ret_monitor = monitor;
    return BUGPACK_OK;
}

void bp_monitor_free(bp_monitor *monitor) {
    if (monitor != NULL) {
        bp_lock_acquire(&monitor->lock);
        monitor->is_stopping = true;
        wake(monitor);
        bp_lock_release(&monitor->lock);
        (void)pthread_join(monitor->thread, NULL);
        free_monitor(monitor);
    }
}

void bp_monitor_add(bp_monitor *monitor, bp_monitor_task *task, void *context) {
    size_t place = 0;
    bp_lock_acquire(&monitor->lock);
    while (place < BP_MONITOR_TASK_MAX && monitor->entries[place].task != NULL) {
        place++;
    }
    assert(place < BP_MONITOR_TASK_MAX);
    monitor->entries[place] = (struct entry){.task = task, .context = context};
    wake(monitor);
    bp_lock_release(&monitor->lock);
}

void bp_monitor_remove(bp_monitor *monitor, bp_monitor_task *task) {
    bp_lock_acquire(&monitor->lock);
    for (size_t i = 0; i < BP_MONITOR_TASK_MAX; i++) {
        struct entry *entry = &monitor->entries[i];
        if (entry->task == task) {
            while (monitor->running == entry) {
                bp_lock_wait(&monitor->lock, &monitor->changed);
            }
            *entry = (struct entry){.task = NULL};
        }
    }
    bp_lock_release(&monitor->lock);
}

void bp_monitor_wake(bp_monitor *monitor) {
    bp_lock_acquire(&monitor->lock);
    for (size_t i = 0; i < BP_MONITOR_TASK_MAX; i++) {
        monitor->entries[i].due_ns = 0;
    }
    wake(monitor);
    bp_lock_release(&monitor->lock);
}
