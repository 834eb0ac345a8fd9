#include "report/runner.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "platform/thread.h"

/*
 * One thread and the call that it works on. The runner and the thread hold one reference each, so
 * that either can end first: the runner detaches the thread when its call hangs.
 *
 * What the provider writes is handed to the waiting thread, piece by piece. That thread filters,
 * compresses and writes it, under no lock, because the host's code may be called for it.
 */
struct bp_call_thread {
    atomic_uint reference_count;
    pthread_t thread;
    bp_lock lock;
    pthread_cond_t changed;
    uint64_t tid;
    bool must_quit;
    bool was_woken;        /* somebody wants the waiting thread to look around */
    bool is_done;          /* the call has returned */
    bp_provider *provider; /* the call that waits or runs; NULL when there is none */
    bugpack_writer writer; /* what the provider writes to */
    const void *piece;     /* of it, for the waiting thread; NULL: none */
    size_t piece_bytes;
    bugpack_status piece_status; /* what became of it */
};

static _Thread_local bool is_inside_provider;

bool bp_runner_is_inside_provider(void) {
    return is_inside_provider;
}

static void drop_thread(bp_call_thread *thread) {
    if (atomic_fetch_sub_explicit(&thread->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    bp_writer_release(&thread->writer);
    (void)pthread_cond_destroy(&thread->changed);
    bp_lock_destroy(&thread->lock);
    free(thread);
}

/* A bp_sink: waits until the waiting thread has taken the bytes, or nobody waits any more. */
static bugpack_status hand_over(void *context, const void *bytes, size_t byte_count) {
    bp_call_thread *thread = context;
    bp_lock_acquire(&thread->lock);
    thread->piece = bytes;
    thread->piece_bytes = byte_count;
    (void)pthread_cond_broadcast(&thread->changed);
    while (thread->piece != NULL && !thread->must_quit) {
        bp_lock_wait(&thread->lock, &thread->changed);
    }
    bugpack_status status = thread->piece == NULL ? thread->piece_status : BUGPACK_ERR_TIMEOUT;
    thread->piece = NULL;
    bp_lock_release(&thread->lock);
    return status;
}

/* Calls the provider that was handed over; the lock is held before and after, not during. */
static void run_call(bp_call_thread *thread) {
    bp_provider *provider = thread->provider;
    bp_lock_release(&thread->lock);
    const bp_provider_spec *spec = &provider->spec;
    is_inside_provider = true;
    bp_lock_check_none_held();
    int result = spec->provide(&thread->writer, spec->context);
    is_inside_provider = false;
    bp_provider_leave(provider);
    /* Here, because a large document takes its time, and this thread can be left behind. */
    if (!atomic_load(&thread->writer.is_abandoned)) {
        bp_provider_accept(spec->form, spec->limit_bytes, result, &thread->writer, hand_over,
                           thread);
    }
    bp_provider_drop(provider);
    bp_lock_acquire(&thread->lock);
    thread->is_done = true;
    (void)pthread_cond_broadcast(&thread->changed);
}

static void *run_calls(void *argument) {
    bp_call_thread *thread = argument;
    bp_thread_set_name("bugpack-provide");
    bp_lock_acquire(&thread->lock);
    thread->tid = bp_thread_id();
    for (;;) {
        bool has_call = thread->provider != NULL && !thread->is_done;
        if (thread->must_quit) {
            if (has_call) {
                /* Given up before it began: nobody would read the answer, so do not ask. */
                bp_provider_leave(thread->provider);
                bp_provider_drop(thread->provider);
            }
            break;
        }
        if (has_call) {
            run_call(thread);
        } else {
            bp_lock_wait(&thread->lock, &thread->changed);
        }
    }
    bp_lock_release(&thread->lock);
    drop_thread(thread);
    return NULL;
}

static bugpack_status start_thread(bp_call_thread **ret_thread, bugpack_error *error) {
    bp_call_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return bp_fail_memory(error, "start a thread for providers");
    }
    bp_condition_init(&thread->changed);
    bp_lock_init(&thread->lock, BP_LOCK_PROVIDER_THREAD);
    atomic_init(&thread->reference_count, 2);
    bugpack_status status = bp_thread_start(run_calls, thread, &thread->thread, error);
    if (status == BUGPACK_OK) {
        *ret_thread = thread;
        return BUGPACK_OK;
    }
    (void)pthread_cond_destroy(&thread->changed);
    bp_lock_destroy(&thread->lock);
    free(thread);
    return status;
}

void bp_runner_init(bp_runner *runner, void (*on_wake)(void *context), void *context) {
    *runner = (bp_runner){.on_wake = on_wake, .on_wake_context = context};
    bp_lock_init(&runner->lock, BP_LOCK_RUNNER);
}

/* Tells the thread to end. `is_idle`: it will end at once, so wait; else it is detached. */
static void stop_thread(bp_call_thread *thread, bool is_idle) {
    pthread_t id = thread->thread;
    bp_lock_acquire(&thread->lock);
    thread->must_quit = true;
    (void)pthread_cond_broadcast(&thread->changed);
    bp_lock_release(&thread->lock);
    drop_thread(thread);
    if (is_idle) {
        (void)pthread_join(id, NULL);
    } else {
        (void)pthread_detach(id);
    }
}

void bp_runner_release(bp_runner *runner) {
    if (runner->thread != NULL) {
        stop_thread(runner->thread, true);
    }
    bp_lock_destroy(&runner->lock);
}

static void set_thread(bp_runner *runner, bp_call_thread *thread) {
    bp_lock_acquire(&runner->lock);
    runner->thread = thread;
    bp_lock_release(&runner->lock);
}

void bp_runner_wake(bp_runner *runner) {
    bp_lock_acquire(&runner->lock);
    bp_call_thread *thread = runner->thread;
    if (thread != NULL) {
        atomic_fetch_add_explicit(&thread->reference_count, 1, memory_order_relaxed);
    }
    bp_lock_release(&runner->lock);
    if (thread != NULL) {
        bp_lock_acquire(&thread->lock);
        thread->was_woken = true;
        (void)pthread_cond_broadcast(&thread->changed);
        bp_lock_release(&thread->lock);
        drop_thread(thread);
    }
}

void bp_runner_expect_close(bp_runner *runner) {
    atomic_store(&runner->is_closing, true);
    bp_runner_wake(runner);
    /* From here on this thread holds no lock of ours that a call may wait for. */
    atomic_store(&runner->closing_tid, bp_thread_id());
}

typedef enum call_end { CALL_RETURNED, CALL_TIMED_OUT, CALL_STUCK } call_end;

/* Waits until something changes or the deadline has passed; the lock is held before and after.
 * While the session is closed it looks again and again whether the call will ever return. */
static call_end wait_for_change(bp_runner *runner, uint64_t deadline_ns) {
    static const uint64_t look_ns = 20 * BP_NS_PER_MS;
    bp_call_thread *thread = runner->thread;
    if (!atomic_load(&runner->is_closing)) {
        return bp_lock_wait_until(&thread->lock, &thread->changed, deadline_ns) ? CALL_RETURNED
                                                                                : CALL_TIMED_OUT;
    }
    uint64_t tid = thread->tid, closing_tid = atomic_load(&runner->closing_tid);
    bp_lock_release(&thread->lock);
    bool is_stuck = closing_tid != 0 && bp_thread_waits_for(tid, closing_tid);
    bp_lock_acquire(&thread->lock);
    uint64_t now_ns = bp_clock_monotonic_ns();
    if (is_stuck || thread->is_done || thread->piece != NULL || now_ns >= deadline_ns) {
        return is_stuck ? CALL_STUCK : now_ns >= deadline_ns ? CALL_TIMED_OUT : CALL_RETURNED;
    }
    uint64_t until_ns = deadline_ns - now_ns < look_ns ? deadline_ns : now_ns + look_ns;
    (void)bp_lock_wait_until(&thread->lock, &thread->changed, until_ns);
    return CALL_RETURNED;
}

/* Waits for the call that was handed to the thread. */
static call_end wait_for_call(bp_runner *runner, const bp_cancel_token *token, uint64_t deadline_ns,
                              bugpack_writer *target) {
    bp_call_thread *thread = runner->thread;
    call_end end = CALL_RETURNED;
    bp_lock_acquire(&thread->lock);
    while (end == CALL_RETURNED && !thread->is_done && !bp_cancel_is_due(token)) {
        bool is_cut_short =
            token != NULL && token->deadline_ns != 0 && token->deadline_ns < deadline_ns;
        if (thread->piece != NULL) { /* which stays where it is until it is written */
            uint64_t began_ns = bp_clock_monotonic_ns();
            bp_lock_release(&thread->lock);
            bugpack_status status = bugpack_write(target, thread->piece, thread->piece_bytes);
            bp_lock_acquire(&thread->lock);
            thread->piece = NULL;
            thread->piece_status = status;
            (void)pthread_cond_broadcast(&thread->changed);
            deadline_ns += bp_clock_monotonic_ns() - began_ns; /* not the provider's time */
        } else if (thread->was_woken && runner->on_wake != NULL) {
            thread->was_woken = false;
            bp_lock_release(&thread->lock);
            runner->on_wake(runner->on_wake_context);
            bp_lock_acquire(&thread->lock);
        } else {
            end = wait_for_change(runner, is_cut_short ? token->deadline_ns : deadline_ns);
        }
    }
    if (thread->is_done) {
        end = CALL_RETURNED;
        thread->provider = NULL;
    } else {
        end = end == CALL_STUCK ? CALL_STUCK : CALL_TIMED_OUT;
        atomic_store(&thread->writer.is_abandoned, true);
    }
    bp_lock_release(&thread->lock);
    return end;
}

/* Hands the call over to the thread. */
static void begin_call(bp_call_thread *thread, bp_provider *provider,
                       const bugpack_writer *target) {
    const bp_provider_spec *spec = &provider->spec;
    bp_lock_acquire(&thread->lock);
    bp_writer_release(&thread->writer);
    bp_writer_init(&thread->writer, spec->limit_bytes);
    bp_writer_set_channel(&thread->writer, bugpack_report_channel(target));
    if (spec->form != BUGPACK_PROVIDE_JSON) { /* that is checked as a whole first */
        thread->writer.sink = hand_over;
        thread->writer.sink_context = thread;
        thread->writer.is_text = spec->form == BUGPACK_PROVIDE_TEXT;
    }
    thread->provider = bp_provider_retain(provider);
    thread->is_done = false;
    (void)pthread_cond_broadcast(&thread->changed);
    bp_lock_release(&thread->lock);
}

static void call_provider(bp_runner *runner, bp_provider *provider, const bp_cancel_token *token,
                          bugpack_writer *writer) {
    const bp_provider_spec *spec = &provider->spec;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_call_thread *thread = runner->thread;
    if (thread == NULL) {
        if (start_thread(&thread, &error) != BUGPACK_OK) {
            bp_provider_leave(provider);
            bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "%s", error.message);
            return;
        }
        set_thread(runner, thread);
    }
    uint64_t own_deadline_ns = bp_clock_monotonic_ns() + spec->timeout_ms * BP_NS_PER_MS;
    begin_call(thread, provider, writer);
    call_end end = wait_for_call(runner, token, own_deadline_ns, writer);
    if (end == CALL_RETURNED) {
        bp_manifest_line line = thread->writer.line;
        if (bp_writer_flush(writer, &error) != BUGPACK_OK) {
            bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "%s", error.message);
            return;
        }
        if (line.status != BP_ARTEFACT_OK && line.status != BP_ARTEFACT_TRUNCATED) {
            bp_writer_release(writer); /* the manifest alone has it */
        }
        writer->line = line;
        return;
    }
    bool is_cut_short = bp_cancel_is_due(token);
    set_thread(runner, NULL);
    stop_thread(thread, false);
    if (end == CALL_STUCK) {
        bp_provider_give_up(provider);
        bp_writer_refuse(writer, BP_ARTEFACT_TIMED_OUT,
                         "it waits for a lock of the thread that closes the session");
        return;
    }
    bp_writer_refuse(writer, BP_ARTEFACT_TIMED_OUT,
                     is_cut_short ? "no time was left for it" : "it did not return within %u ms",
                     (unsigned)spec->timeout_ms);
}

bool bp_runner_call(bp_runner *runner, bp_provider *provider, const bp_cancel_token *token,
                    bugpack_writer *writer) {
    bp_provider_entry entry = bp_provider_enter(provider);
    if (entry == BP_PROVIDER_RETIRED) {
        return false;
    }
    if (entry == BP_PROVIDER_STILL_RUNNING) {
        bp_writer_refuse(writer, BP_ARTEFACT_TIMED_OUT,
                         "it still hangs since an earlier report, and was not called again");
        return true;
    }
    bp_instant began = bp_clock_now();
    call_provider(runner, provider, token, writer);
    bp_writer_stamp(writer, began);
    return true;
}
