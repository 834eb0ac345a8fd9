#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/thread.h"
#include "report/accept.h"
#include "report/call.h"
#include "report/provider.h"

/*
 * One thread and the call that it works on. The runner and the thread hold one reference each, so
 * that either can go first: the runner leaves a crew of one behind when its call hangs.
 */
struct crew {
    atomic_uint reference_count;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool must_quit;
    bool was_woken;          /* somebody wants the waiting thread to look around */
    bool is_done;            /* the call has returned */
    bp_provider *provider;   /* the call that waits or runs; NULL when there is none */
    bugpack_writer writer;   /* what the provider writes to */
    bugpack_writer accepted; /* what became of that; read once is_done */
};

struct bp_runner {
    pthread_mutex_t mutex; /* for `crew`, where it is not the calling thread that looks */
    struct crew *crew;     /* NULL until the first call, and after a call was left behind */
    void (*on_wake)(void *context);
    void *on_wake_context;
};

static _Thread_local bool is_inside_provider;

bool bp_runner_is_inside_provider(void) {
    return is_inside_provider;
}

static void drop_crew(struct crew *crew) {
    if (atomic_fetch_sub_explicit(&crew->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    bp_writer_release(&crew->writer);
    bp_writer_release(&crew->accepted);
    (void)pthread_cond_destroy(&crew->changed);
    (void)pthread_mutex_destroy(&crew->mutex);
    free(crew);
}

/* Calls the provider that was handed over; the lock is held before and after, not during. */
static void run_call(struct crew *crew) {
    bp_provider *provider = crew->provider;
    (void)pthread_mutex_unlock(&crew->mutex);
    const bp_provider_spec *spec = bp_provider_spec_of(provider);
    is_inside_provider = true;
    int result = spec->provide(&crew->writer, spec->context);
    is_inside_provider = false;
    bp_provider_leave(provider);
    /* Here, because a large document takes its time, and this thread can be left behind. */
    if (!atomic_load(&crew->writer.is_abandoned)) {
        bp_provider_accept(spec->form, spec->limit_bytes, result, &crew->writer, &crew->accepted);
    }
    bp_provider_drop(provider);
    (void)pthread_mutex_lock(&crew->mutex);
    crew->is_done = true;
    (void)pthread_cond_broadcast(&crew->changed);
}

static void *run_calls(void *argument) {
    struct crew *crew = argument;
    bp_thread_set_name("bugpack-provide");
    (void)pthread_mutex_lock(&crew->mutex);
    for (;;) {
        bool has_call = crew->provider != NULL && !crew->is_done;
        if (crew->must_quit) {
            if (has_call) {
                /* Given up before it began: nobody would read the answer, so do not ask. */
                bp_provider_leave(crew->provider);
                bp_provider_drop(crew->provider);
            }
            break;
        }
        if (has_call) {
            run_call(crew);
        } else {
            (void)pthread_cond_wait(&crew->changed, &crew->mutex);
        }
    }
    (void)pthread_mutex_unlock(&crew->mutex);
    drop_crew(crew);
    return NULL;
}

static bugpack_status hire_crew(struct crew **ret_crew, bugpack_error *error) {
    struct crew *hired = calloc(1, sizeof *hired);
    if (hired == NULL || pthread_mutex_init(&hired->mutex, NULL) != 0) {
        free(hired);
        return bp_fail_memory(error, "start a thread for providers");
    }
    bugpack_status status = bp_condition_init(&hired->changed, error);
    if (status == BUGPACK_OK) {
        atomic_init(&hired->reference_count, 2);
        bp_writer_init(&hired->writer, 0); /* a writer of zeros would own descriptor 0 */
        bp_writer_init(&hired->accepted, 0);
        status = bp_thread_start(run_calls, hired, &hired->thread, error);
        if (status != BUGPACK_OK) {
            (void)pthread_cond_destroy(&hired->changed);
        }
    }
    if (status != BUGPACK_OK) {
        (void)pthread_mutex_destroy(&hired->mutex);
        free(hired);
        return status;
    }
    *ret_crew = hired;
    return BUGPACK_OK;
}

bugpack_status bp_runner_new(bp_runner **ret_runner, bugpack_error *error) {
    bp_runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL || pthread_mutex_init(&runner->mutex, NULL) != 0) {
        free(runner);
        return bp_fail_memory(error, "make a runner");
    }
    *ret_runner = runner;
    return BUGPACK_OK;
}

/* Tells the thread to end. `is_idle`: it will end at once, so wait; else leave it behind. */
static void dismiss_crew(struct crew *crew, bool is_idle) {
    pthread_t thread = crew->thread;
    (void)pthread_mutex_lock(&crew->mutex);
    crew->must_quit = true;
    (void)pthread_cond_broadcast(&crew->changed);
    (void)pthread_mutex_unlock(&crew->mutex);
    drop_crew(crew);
    if (is_idle) {
        (void)pthread_join(thread, NULL);
    } else {
        (void)pthread_detach(thread);
    }
}

void bp_runner_free(bp_runner *runner) {
    if (runner == NULL) {
        return;
    }
    if (runner->crew != NULL) {
        dismiss_crew(runner->crew, true);
    }
    (void)pthread_mutex_destroy(&runner->mutex);
    free(runner);
}

static void set_crew(bp_runner *runner, struct crew *crew) {
    (void)pthread_mutex_lock(&runner->mutex);
    runner->crew = crew;
    (void)pthread_mutex_unlock(&runner->mutex);
}

void bp_runner_on_wake(bp_runner *runner, void (*on_wake)(void *context), void *context) {
    runner->on_wake = on_wake;
    runner->on_wake_context = context;
}

void bp_runner_wake(bp_runner *runner) {
    (void)pthread_mutex_lock(&runner->mutex);
    struct crew *crew = runner->crew;
    if (crew != NULL) {
        atomic_fetch_add_explicit(&crew->reference_count, 1, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&runner->mutex);
    if (crew != NULL) {
        (void)pthread_mutex_lock(&crew->mutex);
        crew->was_woken = true;
        (void)pthread_cond_broadcast(&crew->changed);
        (void)pthread_mutex_unlock(&crew->mutex);
        drop_crew(crew);
    }
}

/* Waits for the call that was handed to the crew. True when it has returned in time. */
static bool wait_for_call(bp_runner *runner, const bp_cancel_token *token, uint64_t deadline_ns) {
    struct crew *crew = runner->crew;
    (void)pthread_mutex_lock(&crew->mutex);
    while (!crew->is_done && !bp_cancel_is_due(token)) {
        if (crew->was_woken && runner->on_wake != NULL) {
            crew->was_woken = false;
            (void)pthread_mutex_unlock(&crew->mutex);
            runner->on_wake(runner->on_wake_context);
            (void)pthread_mutex_lock(&crew->mutex);
        } else if (!bp_condition_wait_until(&crew->changed, &crew->mutex, deadline_ns)) {
            break;
        }
    }
    bool is_done = crew->is_done;
    if (is_done) {
        crew->provider = NULL;
    } else {
        atomic_store(&crew->writer.is_abandoned, true);
    }
    (void)pthread_mutex_unlock(&crew->mutex);
    return is_done;
}

static void call_provider(bp_runner *runner, bp_provider *provider, const bp_cancel_token *token,
                          bugpack_writer *writer) {
    const bp_provider_spec *spec = bp_provider_spec_of(provider);
    bugpack_error error = BUGPACK_ERROR_INIT;
    struct crew *crew = runner->crew;
    if (crew == NULL) {
        if (hire_crew(&crew, &error) != BUGPACK_OK) {
            bp_provider_leave(provider);
            bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "%s", error.message);
            return;
        }
        set_crew(runner, crew);
    }
    uint64_t own_deadline_ns = bp_clock_monotonic_ns() + spec->timeout_ms * BP_NS_PER_MS;
    bool is_cut_short =
        token != NULL && token->deadline_ns != 0 && token->deadline_ns < own_deadline_ns;
    (void)pthread_mutex_lock(&crew->mutex);
    bp_writer_release(&crew->writer);
    bp_writer_init(&crew->writer, spec->limit_bytes);
    bp_writer_release(&crew->accepted);
    bp_writer_init(&crew->accepted, SIZE_MAX / 4);
    bp_writer_set_channel(&crew->writer, bugpack_report_channel(writer));
    crew->provider = bp_provider_retain(provider);
    crew->is_done = false;
    (void)pthread_cond_broadcast(&crew->changed);
    (void)pthread_mutex_unlock(&crew->mutex);
    if (wait_for_call(runner, token, is_cut_short ? token->deadline_ns : own_deadline_ns)) {
        writer->line = crew->accepted.line;
        bp_buffer_move(&writer->content, &crew->accepted.content);
        bp_temp_file_move(&writer->temp_file, &crew->accepted.temp_file);
        return;
    }
    set_crew(runner, NULL);
    dismiss_crew(crew, false);
    bp_writer_refuse(writer, BP_ARTEFACT_TIMED_OUT,
                     is_cut_short ? "no time was left for it" : "it did not return within %u ms",
                     (unsigned)spec->timeout_ms);
}

bool bp_runner_call(bp_runner *runner, bp_provider *provider, const bp_cancel_token *token,
                    bugpack_writer *writer) {
    switch (bp_provider_enter(provider)) {
    case BP_PROVIDER_RETIRED:
        return false;
    case BP_PROVIDER_STILL_RUNNING:
        bp_writer_refuse(writer, BP_ARTEFACT_TIMED_OUT,
                         "it still hangs since an earlier report, and was not called again");
        return true;
    case BP_PROVIDER_ENTERED:
        break;
    }
    bp_instant began = bp_clock_now();
    call_provider(runner, provider, token, writer);
    bp_writer_stamp(writer, began);
    return true;
}
