#include "model/deadlock.h"

#include <inttypes.h>
#include <string.h>

/* A sentence names so many threads of a larger deadlock. */
enum { named_max = 8 };

/* Whom it waits for without an end; SIZE_MAX for nobody. */
static size_t next_of(const bp_process_threads *process, size_t index) {
    const bp_thread_state *thread = &process->threads[index];
    return thread->is_waiting && !thread->wait.is_timed ? thread->waits_for : SIZE_MAX;
}

/*
 * Each thread waits for one other at most. So a walk that comes back to its own beginning is a
 * circle, and each other walk ends at a thread that waits for nobody or that was seen: each thread
 * is walked over twice at most.
 */
size_t bp_deadlock_next(const bp_process_threads *process, unsigned char *is_seen) {
    enum { SEEN = 1, ON_WALK = 2 };
    for (size_t begin = 0; begin < process->thread_count; begin++) {
        size_t at = begin;
        while (at != SIZE_MAX && is_seen[at] == 0) {
            is_seen[at] = ON_WALK;
            at = next_of(process, at);
        }
        bool is_circle = at != SIZE_MAX && is_seen[at] == ON_WALK;
        for (size_t i = begin; i != SIZE_MAX && is_seen[i] == ON_WALK; i = next_of(process, i)) {
            is_seen[i] = SEEN;
        }
        if (is_circle) {
            size_t lowest = at;
            for (size_t i = next_of(process, at); i != at; i = next_of(process, i)) {
                lowest = i < lowest ? i : lowest;
            }
            return lowest;
        }
    }
    return SIZE_MAX;
}

size_t bp_deadlock_length(const bp_process_threads *process, size_t first) {
    size_t length = 1;
    for (size_t i = next_of(process, first); i != first; i = next_of(process, i)) {
        length++;
    }
    return length;
}

static void append_thread(const bp_thread_state *thread, bp_buffer *out) {
    (void)bp_buffer_append(out, thread->name, strnlen(thread->name, sizeof thread->name));
    (void)bp_buffer_printf(out, "%s(%" PRIu64 ")", thread->name[0] != '\0' ? " " : "", thread->tid);
}

/* "waits for a mutex of b (2)" */
static void append_wait(const bp_process_threads *process, const bp_thread_state *thread,
                        bp_buffer *out) {
    static const char *const phrases[] = {
        [BP_FUTEX_KIND_MUTEX] = "waits for a mutex of ",
        [BP_FUTEX_KIND_RWLOCK] = "waits for an rwlock of ",
        [BP_FUTEX_KIND_THREAD] = "waits for the end of ",
    };
    (void)bp_buffer_append_text(out, phrases[thread->wait.kind]);
    append_thread(&process->threads[thread->waits_for], out);
}

static void append_pair(const bp_thread_state *one, const bp_thread_state *other, bp_buffer *out) {
    append_thread(one, out);
    (void)bp_buffer_append_text(out, " and ");
    append_thread(other, out);
    (void)bp_buffer_printf(out, " wait for each other's %s",
                           one->wait.kind == BP_FUTEX_KIND_MUTEX ? "mutexes" : "rwlocks");
}

static void append_circle(const bp_process_threads *process, size_t first, size_t length,
                          bp_buffer *out) {
    append_thread(&process->threads[first], out);
    for (size_t i = first, named = 0; named < length && named < named_max; named++) {
        (void)bp_buffer_append_text(out, named > 0 ? ", which " : " ");
        append_wait(process, &process->threads[i], out);
        i = process->threads[i].waits_for;
    }
    if (length > named_max) {
        (void)bp_buffer_printf(out, ", and so on: %zu threads wait in a circle", length);
    }
}

bugpack_status bp_deadlock_describe(const bp_process_threads *process, size_t first,
                                    bp_buffer *out) {
    const bp_thread_state *one = &process->threads[first];
    const bp_thread_state *other = &process->threads[one->waits_for];
    size_t length = bp_deadlock_length(process, first);
    if (length == 1) {
        append_thread(one, out);
        (void)bp_buffer_printf(out, " waits for %s that it holds itself",
                               one->wait.kind == BP_FUTEX_KIND_MUTEX ? "a mutex" : "an rwlock");
    } else if (length == 2 && one->wait.kind == other->wait.kind &&
               one->wait.kind != BP_FUTEX_KIND_THREAD) {
        append_pair(one, other, out);
    } else {
        append_circle(process, first, length, out);
    }
    return out->status;
}
