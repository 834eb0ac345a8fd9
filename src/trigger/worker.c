#include "trigger/worker.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/status.h"
#include "platform/thread.h"

struct bp_worker {
    const char *name;
    bp_worker_run *run;
    void *context;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_stopping;
    size_t queue_max;
    size_t first; /* of the jobs that wait, in a circle of queue_max places */
    size_t count;
    void *jobs[];
};

/* The worker that the calling thread is; NULL for others. */
static _Thread_local const bp_worker *own_worker;

bool bp_worker_is_current_thread(void) {
    return own_worker != NULL;
}

bool bp_worker_is_own_thread(const bp_worker *worker) {
    return own_worker == worker && worker != NULL;
}

static void *work(void *argument) {
    bp_worker *worker = argument;
    bp_thread_set_name(worker->name);
    own_worker = worker;
    (void)pthread_mutex_lock(&worker->mutex);
    for (;;) {
        while (worker->count == 0 && !worker->is_stopping) {
            (void)pthread_cond_wait(&worker->changed, &worker->mutex);
        }
        if (worker->count == 0) {
            break;
        }
        void *job = worker->jobs[worker->first];
        worker->first = (worker->first + 1) % worker->queue_max;
        worker->count--;
        (void)pthread_mutex_unlock(&worker->mutex);
        worker->run(job, worker->context);
        (void)pthread_mutex_lock(&worker->mutex);
    }
    (void)pthread_mutex_unlock(&worker->mutex);
    return NULL;
}

bugpack_status bp_worker_new(const char *name, bp_worker_run *run, void *context, size_t queue_max,
                             bp_worker **ret_worker, bugpack_error *error) {
    bp_worker *worker = calloc(1, sizeof *worker + queue_max * sizeof worker->jobs[0]);
    if (worker == NULL || pthread_mutex_init(&worker->mutex, NULL) != 0) {
        free(worker);
        return bp_fail_memory(error, "start the worker");
    }
    worker->name = name;
    worker->run = run;
    worker->context = context;
    worker->queue_max = queue_max;
    bugpack_status status = bp_condition_init(&worker->changed, error);
    if (status == BUGPACK_OK) {
        status = bp_thread_start(work, worker, &worker->thread, error);
        if (status != BUGPACK_OK) {
            (void)pthread_cond_destroy(&worker->changed);
        }
    }
    if (status != BUGPACK_OK) {
        (void)pthread_mutex_destroy(&worker->mutex);
        free(worker);
        return status;
    }
    *ret_worker = worker;
    return BUGPACK_OK;
}

bugpack_status bp_worker_submit(bp_worker *worker, void *job) {
    bugpack_status status = BUGPACK_OK;
    (void)pthread_mutex_lock(&worker->mutex);
    if (worker->is_stopping) {
        status = BUGPACK_ERR_CLOSED;
    } else if (worker->count == worker->queue_max) {
        status = BUGPACK_ERR_BUSY;
    } else {
        worker->jobs[(worker->first + worker->count) % worker->queue_max] = job;
        worker->count++;
        (void)pthread_cond_signal(&worker->changed);
    }
    (void)pthread_mutex_unlock(&worker->mutex);
    return status;
}

bool bp_worker_withdraw(bp_worker *worker, const void *job) {
    bool is_found = false;
    (void)pthread_mutex_lock(&worker->mutex);
    for (size_t i = 0; i < worker->count; i++) {
        size_t place = (worker->first + i) % worker->queue_max;
        is_found = is_found || worker->jobs[place] == job;
        if (is_found && i + 1 < worker->count) {
            worker->jobs[place] = worker->jobs[(place + 1) % worker->queue_max];
        }
    }
    worker->count -= is_found;
    (void)pthread_mutex_unlock(&worker->mutex);
    return is_found;
}

void bp_worker_stop(bp_worker *worker) {
    if (worker == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&worker->mutex);
    worker->is_stopping = true;
    (void)pthread_cond_broadcast(&worker->changed);
    (void)pthread_mutex_unlock(&worker->mutex);
    (void)pthread_join(worker->thread, NULL);
    (void)pthread_cond_destroy(&worker->changed);
    (void)pthread_mutex_destroy(&worker->mutex);
    free(worker);
}
