/* Diagnoses of threads that wait: for each other, for another process, for the kernel. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "inspect/evidence.h"
#include "inspect/frames.h"

void bp_diagnose_deadlock(bp_evidence *evidence) {
    static const char nobody[] = "of threads that are not named";
    for (uint64_t i = 0; i < evidence->deadlocks.total_count; i++) {
        const bp_json_tree *row =
            i < evidence->deadlocks.count ? evidence->deadlocks.rows[i] : NULL;
        bp_find(evidence, "deadlock: %s", bp_json_tree_text_or(row, "description", nobody));
    }
}

void bp_diagnose_stopped(bp_evidence *evidence) {
    uint64_t living_count = 0, stopped_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        living_count += thread->is_listed && !bp_thread_has_ended(thread);
        stopped_count += thread->is_listed && strcmp(thread->state, "stopped") == 0;
    }
    if (evidence->waits != NULL && stopped_count > 0 && stopped_count == living_count) {
        bp_find(evidence,
                "the process is stopped by a signal (SIGSTOP or the like), with %" PRIu64
                " thread%s",
                living_count, living_count == 1 ? "" : "s");
    }
}

/* "…, and 3 more threads" behind a sentence about the first of so many. */
static const char *name_more(uint64_t count, char out[48]) {
    (void)snprintf(out, 48, count > 1 ? ", and %" PRIu64 " more thread%s" : "", count - 1,
                   count == 2 ? "" : "s");
    return out;
}

/* The other end of what a thread waits on, if all that hold it are stopped: one that runs may
 * answer. */
static const bp_json_tree *find_stopped_peer(const bp_json_tree *wait) {
    const bp_json_tree *end = bp_json_tree_first(bp_json_tree_array(wait, "other_end"));
    const bp_json_tree *last = NULL;
    for (; end != NULL; end = bp_json_tree_next(end)) {
        const char *state = bp_json_tree_text_or(end, "state", "");
        if (strcmp(state, "stopped") != 0 && strcmp(state, "stopped by tracer") != 0) {
            return NULL;
        }
        last = end;
    }
    return last;
}

void bp_diagnose_peer_stopped(bp_evidence *evidence) {
    char first[256], more[48];
    uint64_t count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
        const bp_json_tree *peer = find_stopped_peer(wait);
        if (peer != NULL && count++ == 0) {
            uint64_t pid = 0;
            (void)bp_json_tree_uint(peer, "pid", &pid);
            (void)snprintf(first, sizeof first,
                           "thread %" PRIu64
                           " \"%s\" waits on a %.16s whose other end, %.40s (%" PRIu64
                           "), is %.24s",
                           thread->tid, thread->name, bp_json_tree_text_or(wait, "kind", "file"),
                           bp_json_tree_text_or(peer, "name", "?"), pid,
                           bp_json_tree_text_or(peer, "state", "?"));
        }
    }
    if (count > 0) {
        bp_find(evidence, "%s%s", first, name_more(count, more));
    }
}

void bp_diagnose_uninterruptible(bp_evidence *evidence) {
    const bp_thread *first = NULL;
    uint64_t count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (bp_thread_is_idle(thread) && strcmp(thread->state, "uninterruptible sleep") == 0) {
            first = count++ == 0 ? thread : first;
        }
    }
    if (first == NULL) {
        return;
    }
    const bp_json_tree *frame = bp_json_tree_first(bp_json_tree_array(first->row, "kernel_stack"));
    char name[64], more[48];
    bp_utf8_copy(name, sizeof name,
                 frame != NULL ? bp_json_tree_value(frame)
                               : bp_json_tree_text_or(first->row, "wait_channel", "?"));
    name[strcspn(name, "+")] = '\0';
    bp_find(evidence, "thread %" PRIu64 " \"%s\" is in uninterruptible sleep in %s%s%s%s",
            first->tid, first->name, name, first->syscall[0] != '\0' ? ", called by " : "",
            first->syscall, name_more(count, more));
}

/* --- locks -------------------------------------------------------------------------------- */

/* The thread that holds the lock that a thread waits for, or NULL. */
static const bp_thread *find_holder(const bp_evidence *evidence, const bp_thread *thread) {
    bool is_lock = strcmp(thread->waits_for_kind, "mutex") == 0 ||
                   strcmp(thread->waits_for_kind, "rwlock") == 0;
    return is_lock && thread->waits_for_tid != 0
               ? bp_evidence_thread(evidence, thread->waits_for_tid)
               : NULL;
}

/* The thread at the end of the chain of those that hold each other up; NULL for no chain, for a
 * circle, which is a deadlock, and for one that is longer than any real one. */
static const bp_thread *find_root(const bp_evidence *evidence, const bp_thread *waiter) {
    enum { chain_max = 64 };
    const bp_thread *root = NULL, *next = find_holder(evidence, waiter);
    for (unsigned steps = 0; next != NULL; steps++) {
        if (steps > chain_max || next == waiter) {
            return NULL;
        }
        root = next;
        next = find_holder(evidence, root);
    }
    return root;
}

/* A thread that holds, itself or through those it holds up, what others wait for. */
typedef struct lock_holder {
    const bp_thread *thread;
    uint64_t waiter_count, idle_count, rwlock_count;
} lock_holder;

static void print_holder(bp_evidence *evidence, const lock_holder *holder) {
    const bp_thread *thread = holder->thread;
    char frames[BP_FRAME_LIST_BYTES], wait[128];
    bp_frames_print(thread->stack, evidence->finder, frames);
    bp_thread_print_wait(thread, wait, sizeof wait);
    const char *place = frames[0] != '\0' ? frames : thread->syscall;
    bp_find(evidence,
            "%" PRIu64 " thread%s wait%s for a %s that thread %" PRIu64
            " \"%s\" holds, which is %s%s%s%s%s; %" PRIu64 " did so for all of the %.1f s measured",
            holder->waiter_count, holder->waiter_count == 1 ? "" : "s",
            holder->waiter_count == 1 ? "s" : "",
            holder->rwlock_count == holder->waiter_count ? "rwlock" : "mutex", thread->tid,
            thread->name, thread->state[0] != '\0' ? thread->state : "not listed",
            place[0] != '\0' ? " in " : "", place, wait[0] != '\0' ? ", waiting on " : "", wait,
            holder->idle_count, evidence->window_ms / 1000);
}

/* A lock is said to be held if somebody waited for it through the whole window, without running
 * once. For less, a program that works would be accused. */
void bp_diagnose_lock_held(bp_evidence *evidence) {
    enum { holder_max = 4 };
    static const double window_min_ms = 100;
    lock_holder holders[holder_max];
    size_t count = 0;
    for (size_t i = 0; i < evidence->thread_count && evidence->window_ms >= window_min_ms; i++) {
        const bp_thread *waiter = &evidence->threads[i], *root = find_root(evidence, waiter);
        size_t at = 0;
        while (at < count && holders[at].thread != root) {
            at++;
        }
        if (root == NULL || at == holder_max) {
            continue;
        }
        if (at == count) {
            holders[count++] = (lock_holder){.thread = root};
        }
        holders[at].waiter_count++;
        holders[at].idle_count += bp_thread_is_idle(waiter);
        holders[at].rwlock_count += waiter->waits_for_kind[0] == 'r';
    }
    for (size_t i = 0; i < count; i++) {
        if (holders[i].idle_count > 0) {
            print_holder(evidence, &holders[i]);
        }
    }
}
