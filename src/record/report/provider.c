#include "report/provider.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/status.h"
#include "model/entry.h"
#include "platform/thread.h"
#include "json/json.h"

struct bp_provider {
    atomic_uint reference_count;
    bp_provider_spec spec; /* with a name of our own */
    bp_lock lock;
    pthread_cond_t idle;
    bool is_running;
    bool is_retired;
    bool is_given_up;
    uint64_t running_since_ns;
};

bugpack_status bp_provider_new(const bp_provider_spec *spec, bp_provider **ret_provider,
                               bugpack_error *error) {
    bp_provider *provider = calloc(1, sizeof *provider);
    char *name = strdup(spec->name);
    if (provider == NULL || name == NULL) {
        free(name);
        free(provider);
        return bp_fail_memory(error, "register a provider");
    }
    bugpack_status status = bp_condition_init(&provider->idle, error);
    if (status != BUGPACK_OK) {
        free(name);
        free(provider);
        return status;
    }
    bp_lock_init(&provider->lock, BP_LOCK_PROVIDER);
    atomic_init(&provider->reference_count, 1);
    provider->spec = *spec;
    provider->spec.name = name;
    *ret_provider = provider;
    return BUGPACK_OK;
}

bp_provider *bp_provider_retain(bp_provider *provider) {
    atomic_fetch_add_explicit(&provider->reference_count, 1, memory_order_relaxed);
    return provider;
}

void bp_provider_drop(bp_provider *provider) {
    if (provider == NULL ||
        atomic_fetch_sub_explicit(&provider->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (provider->spec.release != NULL) {
        provider->spec.release(provider->spec.context);
    }
    (void)pthread_cond_destroy(&provider->idle);
    bp_lock_destroy(&provider->lock);
    free((char *)(uintptr_t)provider->spec.name);
    free(provider);
}

const bp_provider_spec *bp_provider_spec_of(const bp_provider *provider) {
    return &provider->spec;
}

enum provider_entry {
    PROVIDER_ENTERED,
    PROVIDER_RETIRED,
    PROVIDER_STILL_RUNNING /* an earlier call has not returned yet */
};

/* Claims the provider for one call. After PROVIDER_ENTERED a leave must follow. */
static enum provider_entry enter(bp_provider *provider) {
    enum provider_entry entry = PROVIDER_ENTERED;
    bp_lock_acquire(&provider->lock);
    if (provider->is_retired) {
        entry = PROVIDER_RETIRED;
    } else if (provider->is_running) {
        entry = PROVIDER_STILL_RUNNING;
    } else {
        provider->is_running = true;
        provider->running_since_ns = bp_clock_monotonic_ns();
    }
    bp_lock_release(&provider->lock);
    return entry;
}

static void leave(bp_provider *provider) {
    bp_lock_acquire(&provider->lock);
    provider->is_running = false;
    (void)pthread_cond_broadcast(&provider->idle);
    bp_lock_release(&provider->lock);
}

bool bp_provider_retire(bp_provider *provider) {
    bp_lock_acquire(&provider->lock);
    provider->is_retired = true;
    uint64_t deadline_ns = provider->running_since_ns + provider->spec.timeout_ms * BP_NS_PER_MS;
    while (provider->is_running && !provider->is_given_up &&
           bp_lock_wait_until(&provider->lock, &provider->idle, deadline_ns)) {}
    bool is_idle = !provider->is_running;
    bp_lock_release(&provider->lock);
    return is_idle;
}

static void refuse_content(bugpack_writer *given, bugpack_status status, size_t limit_bytes) {
    if (status == BUGPACK_ERR_LIMIT) {
        bp_writer_refuse(given, BP_ARTEFACT_FAILED, "it is over the limit of %zu bytes",
                         limit_bytes);
    } else {
        bp_writer_refuse(given, BP_ARTEFACT_FAILED, "what the provider wrote was not kept: %s",
                         bugpack_status_name(status));
    }
}

/* A provider without a reason of its own most likely passed on that a write failed. */
static void refuse_result(bugpack_writer *given, size_t limit_bytes) {
    const bp_manifest_line line = given->line;
    if (line.reason[0] == '\0' && given->content.status != BUGPACK_OK) {
        refuse_content(given, given->content.status, limit_bytes);
        return;
    }
    bool has_status = line.status != BP_ARTEFACT_OK && line.status != BP_ARTEFACT_TRUNCATED;
    bp_writer_refuse(given, has_status ? line.status : BP_ARTEFACT_FAILED, "%s",
                     line.reason[0] != '\0' ? line.reason : "the provider failed");
}

static void accept_json(bugpack_writer *given, bp_sink *sink, void *context) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer formatted;
    /* Indenting and escaping make it longer; the limit was for what the provider gave. */
    bp_buffer_init(&formatted, SIZE_MAX / 4);
    bugpack_status status =
        bp_json_reformat(bp_buffer_text(&given->content), given->content.size, &formatted, &error);
    bp_buffer_release(&given->content);
    if (status == BUGPACK_OK) {
        status = sink(context, bp_buffer_text(&formatted), formatted.size);
    }
    bp_buffer_release(&formatted);
    if (status != BUGPACK_OK) {
        bp_writer_refuse(given, BP_ARTEFACT_FAILED, "%s%s",
                         status == BUGPACK_ERR_CORRUPT ? "not valid JSON: " : "",
                         error.message[0] != '\0' ? error.message : bugpack_status_name(status));
    }
}

void bp_provider_accept(bp_content_form form, size_t limit_bytes, int result, bugpack_writer *given,
                        bp_sink *sink, void *context) {
    bugpack_status status = given->content.status;
    if (result == 0 && form != BP_CONTENT_JSON) {
        status = bp_writer_flush(given, NULL);
    }
    if (result != 0) {
        refuse_result(given, limit_bytes);
    } else if (given->content.status != BUGPACK_OK || status != BUGPACK_OK) {
        refuse_content(given, given->content.status != BUGPACK_OK ? given->content.status : status,
                       limit_bytes);
    } else {
        if (given->line.status == BP_ARTEFACT_OK) {
            given->line.reason[0] = '\0'; /* it said why it fails, and then did not */
        }
        if (form == BP_CONTENT_JSON && given->line.status != BP_ARTEFACT_OMITTED) {
            accept_json(given, sink, context);
        }
    }
}

bugpack_status bp_provider_check_json(const char *path, size_t limit_bytes, bugpack_error *error) {
    bp_buffer text, formatted;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    int fd = -1;
    bp_buffer_init(&text, limit_bytes);
    bp_buffer_init(&formatted, SIZE_MAX / 4);
    bugpack_status status = bp_file_open_regular(AT_FDCWD, path, &fd, error);
    if (status == BUGPACK_OK) {
        status = bp_file_read_fd(fd, path, &text, error);
        (void)close(fd);
    }
    if (status == BUGPACK_OK) {
        status = bp_json_reformat(bp_buffer_text(&text), text.size, &formatted, &detail);
        if (status != BUGPACK_OK) {
            status = bp_fail(error, status,
                             status == BUGPACK_ERR_CORRUPT ? "\"%s\" is not valid JSON: %s"
                                                           : "cannot check \"%s\": %s",
                             path, detail.message);
        }
    }
    bp_buffer_release(&text);
    bp_buffer_release(&formatted);
    return status;
}

/*
 * One thread and the call that it works on. The runner and the thread hold one reference each, so
 * that either can end first: the runner detaches the thread when its call hangs.
 *
 * What the provider writes is handed to the waiting thread, piece by piece. That thread filters,
 * compresses and writes it, under no lock, because the host's code may be called for it.
 */
typedef struct call_thread {
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
} call_thread;

struct bp_runner {
    bp_lock lock;        /* for `thread`, where it is not the calling thread that looks */
    call_thread *thread; /* NULL until the first call, and after a call hung */
    void (*on_wake)(void *context);
    void *on_wake_context;
    atomic_bool is_closing;
    atomic_uint_least64_t closing_tid; /* of the thread that waits for the last report; 0: none */
};

static _Thread_local bool is_inside_provider;

bool bp_runner_is_inside_provider(void) {
    return is_inside_provider;
}

static void drop_thread(call_thread *thread) {
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
    call_thread *thread = context;
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
static void run_call(call_thread *thread) {
    bp_provider *provider = thread->provider;
    bp_lock_release(&thread->lock);
    const bp_provider_spec *spec = &provider->spec;
    is_inside_provider = true;
    bp_lock_check_none_held();
    int result = spec->provide(&thread->writer, spec->context);
    is_inside_provider = false;
    leave(provider);
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
    call_thread *thread = argument;
    bp_thread_set_name("bugpack-provide");
    bp_lock_acquire(&thread->lock);
    thread->tid = bp_thread_id();
    for (;;) {
        bool has_call = thread->provider != NULL && !thread->is_done;
        if (thread->must_quit) {
            if (has_call) {
                /* Given up before it began: nobody would read the answer, so do not ask. */
                leave(thread->provider);
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

static bugpack_status start_thread(call_thread **ret_thread, bugpack_error *error) {
    call_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return bp_fail_memory(error, "start a thread for providers");
    }
    bugpack_status status = bp_condition_init(&thread->changed, error);
    if (status != BUGPACK_OK) {
        free(thread);
        return status;
    }
    bp_lock_init(&thread->lock, BP_LOCK_PROVIDER_THREAD);
    atomic_init(&thread->reference_count, 2);
    status = bp_thread_start(run_calls, thread, &thread->thread, error);
    if (status == BUGPACK_OK) {
        *ret_thread = thread;
        return BUGPACK_OK;
    }
    (void)pthread_cond_destroy(&thread->changed);
    bp_lock_destroy(&thread->lock);
    free(thread);
    return status;
}

bugpack_status bp_runner_new(bp_runner **ret_runner, bugpack_error *error) {
    bp_runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL) {
        return bp_fail_memory(error, "make a runner");
    }
    bp_lock_init(&runner->lock, BP_LOCK_RUNNER);
    *ret_runner = runner;
    return BUGPACK_OK;
}

/* Tells the thread to end. `is_idle`: it will end at once, so wait; else it is detached. */
static void stop_thread(call_thread *thread, bool is_idle) {
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

void bp_runner_free(bp_runner *runner) {
    if (runner == NULL) {
        return;
    }
    if (runner->thread != NULL) {
        stop_thread(runner->thread, true);
    }
    bp_lock_destroy(&runner->lock);
    free(runner);
}

static void set_thread(bp_runner *runner, call_thread *thread) {
    bp_lock_acquire(&runner->lock);
    runner->thread = thread;
    bp_lock_release(&runner->lock);
}

void bp_runner_on_wake(bp_runner *runner, void (*on_wake)(void *context), void *context) {
    runner->on_wake = on_wake;
    runner->on_wake_context = context;
}

void bp_runner_wake(bp_runner *runner) {
    bp_lock_acquire(&runner->lock);
    call_thread *thread = runner->thread;
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

/* Takes a piece, which stays where it is until then; the lock is held before and after, not
 * during. Returns how long it took: that is not the provider's time. */
static uint64_t take_piece(call_thread *thread, bugpack_writer *target) {
    uint64_t began_ns = bp_clock_monotonic_ns();
    bp_lock_release(&thread->lock);
    bugpack_status status = bugpack_write(target, thread->piece, thread->piece_bytes);
    bp_lock_acquire(&thread->lock);
    thread->piece = NULL;
    thread->piece_status = status;
    (void)pthread_cond_broadcast(&thread->changed);
    return bp_clock_monotonic_ns() - began_ns;
}

typedef enum call_end { CALL_RETURNED, CALL_TIMED_OUT, CALL_STUCK } call_end;

/* Waits until something changes or the deadline has passed; the lock is held before and after.
 * While the session is closed it looks again and again whether the call will ever return. */
static call_end wait_for_change(bp_runner *runner, uint64_t deadline_ns) {
    static const uint64_t look_ns = 20 * BP_NS_PER_MS;
    call_thread *thread = runner->thread;
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
    call_thread *thread = runner->thread;
    call_end end = CALL_RETURNED;
    bp_lock_acquire(&thread->lock);
    while (end == CALL_RETURNED && !thread->is_done && !bp_cancel_is_due(token)) {
        bool is_cut_short =
            token != NULL && token->deadline_ns != 0 && token->deadline_ns < deadline_ns;
        if (thread->piece != NULL) {
            deadline_ns += take_piece(thread, target);
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
static void begin_call(call_thread *thread, bp_provider *provider, const bugpack_writer *target) {
    const bp_provider_spec *spec = &provider->spec;
    bp_lock_acquire(&thread->lock);
    bp_writer_release(&thread->writer);
    bp_writer_init(&thread->writer, spec->limit_bytes);
    bp_writer_set_channel(&thread->writer, bugpack_report_channel(target));
    if (spec->form != BP_CONTENT_JSON) { /* that is checked as a whole first */
        thread->writer.sink = hand_over;
        thread->writer.sink_context = thread;
        thread->writer.is_text = spec->form == BP_CONTENT_TEXT;
    }
    thread->provider = bp_provider_retain(provider);
    thread->is_done = false;
    (void)pthread_cond_broadcast(&thread->changed);
    bp_lock_release(&thread->lock);
}

/* Takes over what the manifest says of a call that returned, and drops what it does not keep. */
static void end_call(const call_thread *thread, bugpack_writer *writer) {
    bp_manifest_line line = thread->writer.line;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_writer_flush(writer, &error) != BUGPACK_OK) {
        bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "%s", error.message);
        return;
    }
    if (line.status != BP_ARTEFACT_OK && line.status != BP_ARTEFACT_TRUNCATED) {
        bp_writer_release(writer);
    }
    writer->line = line;
}

static void call_provider(bp_runner *runner, bp_provider *provider, const bp_cancel_token *token,
                          bugpack_writer *writer) {
    const bp_provider_spec *spec = &provider->spec;
    bugpack_error error = BUGPACK_ERROR_INIT;
    call_thread *thread = runner->thread;
    if (thread == NULL) {
        if (start_thread(&thread, &error) != BUGPACK_OK) {
            leave(provider);
            bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "%s", error.message);
            return;
        }
        set_thread(runner, thread);
    }
    uint64_t own_deadline_ns = bp_clock_monotonic_ns() + spec->timeout_ms * BP_NS_PER_MS;
    begin_call(thread, provider, writer);
    call_end end = wait_for_call(runner, token, own_deadline_ns, writer);
    if (end == CALL_RETURNED) {
        end_call(thread, writer);
        return;
    }
    bool is_cut_short = bp_cancel_is_due(token);
    set_thread(runner, NULL);
    stop_thread(thread, false);
    if (end == CALL_STUCK) {
        bp_lock_acquire(&provider->lock);
        provider->is_given_up = true; /* a retirement does not wait for it */
        bp_lock_release(&provider->lock);
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
    enum provider_entry entry = enter(provider);
    if (entry == PROVIDER_RETIRED) {
        return false;
    }
    if (entry == PROVIDER_STILL_RUNNING) {
        bp_writer_refuse(writer, BP_ARTEFACT_TIMED_OUT,
                         "it still hangs since an earlier report, and was not called again");
        return true;
    }
    bp_instant began = bp_clock_now();
    call_provider(runner, provider, token, writer);
    bp_writer_stamp(writer, began);
    return true;
}

static const size_t provider_max_count = 3072;

struct bp_provider_list {
    bp_lock lock;
    bp_provider **providers; /* in the order of registration */
    size_t count, capacity;
};

bugpack_status bp_provider_list_new(bp_provider_list **ret_list, bugpack_error *error) {
    bp_provider_list *list = calloc(1, sizeof *list);
    if (list == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    bp_lock_init(&list->lock, BP_LOCK_PROVIDER_LIST);
    *ret_list = list;
    return BUGPACK_OK;
}

void bp_provider_list_drop(bp_provider **providers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bp_provider_drop(providers[i]);
    }
    free(providers);
}

void bp_provider_list_free(bp_provider_list *list) {
    if (list != NULL) {
        bp_provider_list_drop(list->providers, list->count);
        bp_lock_destroy(&list->lock);
        free(list);
    }
}

/* Takes the reference over on success. The lock is held. */
static bugpack_status append(bp_provider_list *list, bp_provider *provider, bugpack_error *error) {
    const char *name = provider->spec.name;
    for (size_t i = 0; i < list->count; i++) {
        if (bp_entry_is_in_the_way(list->providers[i]->spec.name, name)) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "the artefact name \"%s\" is taken", name);
        }
    }
    if (list->count >= provider_max_count) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "a session has at most %zu providers",
                       provider_max_count);
    }
    if (!bp_array_reserve(&list->providers, list->count, &list->capacity)) {
        return bp_fail_memory(error, "register a provider");
    }
    list->providers[list->count++] = provider;
    return BUGPACK_OK;
}

bugpack_status bp_provider_list_add(bp_provider_list *list, const bp_provider_spec *spec,
                                    bugpack_error *error) {
    bp_provider *provider = NULL;
    bugpack_status status = bp_provider_new(spec, &provider, error);
    if (status != BUGPACK_OK) {
        if (spec->release != NULL) {
            spec->release(spec->context);
        }
        return status;
    }
    bp_lock_acquire(&list->lock);
    status = append(list, provider, error);
    bp_lock_release(&list->lock);
    if (status != BUGPACK_OK) {
        bp_provider_drop(provider); /* releases the context */
    }
    return status;
}

bool bp_provider_list_remove(bp_provider_list *list, const char *name) {
    bp_provider *found = NULL;
    bp_lock_acquire(&list->lock);
    for (size_t i = 0; i < list->count && found == NULL; i++) {
        if (bp_entry_is_same(list->providers[i]->spec.name, name)) {
            found = list->providers[i];
            list->count--;
            memmove(&list->providers[i], &list->providers[i + 1],
                    (list->count - i) * sizeof(bp_provider *));
        }
    }
    bp_lock_release(&list->lock);
    bool is_idle = found != NULL && bp_provider_retire(found);
    bp_provider_drop(found);
    return is_idle;
}

bugpack_status bp_provider_list_get(bp_provider_list *list, bp_provider ***ret_providers,
                                    size_t *ret_count, bugpack_error *error) {
    bp_lock_acquire(&list->lock);
    size_t count = list->count;
    bp_provider **providers = calloc(count + 1, sizeof(bp_provider *));
    for (size_t i = 0; providers != NULL && i < count; i++) {
        providers[i] = bp_provider_retain(list->providers[i]);
    }
    bp_lock_release(&list->lock);
    if (providers == NULL) {
        return bp_fail_memory(error, "list the providers");
    }
    *ret_providers = providers;
    *ret_count = count;
    return BUGPACK_OK;
}

void bp_provider_list_retire(bp_provider_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        (void)bp_provider_retire(list->providers[i]);
    }
}
