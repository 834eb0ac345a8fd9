/* Diagnoses of locks within the process: held for long, or wanted by nearly all threads. */

#include <string.h>

#include "diagnose/evidence.h"
#include "entries/frames.h"

/* The thread that holds the lock that a thread waits for, or NULL. */
static const bp_thread *find_holder(const bp_evidence *evidence, const bp_thread *thread) {
    bool is_lock = strcmp(thread->waits_for_kind, "mutex") == 0 ||
                   strcmp(thread->waits_for_kind, "rwlock") == 0 ||
                   strcmp(thread->waits_for_kind, "monitor") == 0;
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
    uint64_t waiter_count, idle_count;
    const char *kind; /* that all wait for; of several, a mutex */
} lock_holder;

static void find_holding(bp_evidence *evidence, const lock_holder *holder) {
    const bp_thread *thread = holder->thread;
    char frames[BP_FRAME_LIST_BYTES];
    bp_wait_text wait;
    bp_frames_print(thread->stack, evidence->finder, NULL, frames);
    bp_thread_find_wait(thread, &wait);
    bp_find(
        evidence,
        "{} thread{|s} wait{s|} for a{} {} that thread {} holds, which is {}{[ in {}]}{[, waiting "
        "on {}]}; {} did so for all of the {} measured",
        BP_COUNT(holder->waiter_count), BP_TEXT(holder->kind[0] == 'r' ? "n" : ""),
        BP_TEXT(holder->kind), bp_thread_argument(thread),
        BP_TEXT(thread->state[0] != '\0' ? thread->state : "not listed"),
        BP_TEXT(frames[0] != '\0' ? frames : thread->syscall), bp_wait_argument(&wait),
        BP_COUNT(holder->idle_count), BP_SECS(evidence->window_ms));
}

static uint64_t readers_of(const bp_thread *thread) {
    return bp_json_tree_uint_or(bp_json_tree_object(thread->row, "syscall"), "rwlock_readers", 0);
}

/* The C library counts readers, and does not say which threads they are: the waiting one may be
 * among them. Of those that want to write, it lets one for each rwlock wait for the readers. */
static void find_readers(bp_evidence *evidence) {
    const bp_thread *first = NULL;
    uint64_t other_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (readers_of(thread) > 0 && bp_thread_waited(evidence, thread)) {
            other_count += first != NULL;
            first = first != NULL ? first : thread;
        }
    }
    if (first != NULL) {
        bp_find(evidence,
                "thread {} waits to write to an rwlock that {} reader{|s} hold{s|}, for all of the "
                "{} measured{[; {} more thread{|s} did so, each for another rwlock]}",
                bp_thread_argument(first), BP_COUNT(readers_of(first)),
                BP_SECS(evidence->window_ms), BP_COUNT(other_count));
    }
}

/* True if workers of a server take turns to accept: the one that has the lock waits for a client,
 * and has the name of the others, none of which is the first thread. */
static bool waits_for_turn(const bp_evidence *evidence, const bp_thread *waiter,
                           const bp_thread *holder) {
    uint64_t first_tid = bp_json_tree_uint_or(evidence->waits, "pid", 0);
    return strncmp(holder->syscall, "accept", strlen("accept")) == 0 &&
           strcmp(holder->name, waiter->name) == 0 && holder->tid != first_tid &&
           waiter->tid != first_tid;
}

/* Java lets one of the threads that wait for a monitor look again once a second (EnterI in
 * objectMonitor.cpp). It waits all the same while the one that has the monitor does not run. */
static bool looks_again(const bp_evidence *evidence, const bp_thread *waiter,
                        const bp_thread *holder) {
    return strcmp(waiter->waits_for_kind, "monitor") == 0 && bp_thread_waited(evidence, holder) &&
           waiter->voluntary_switches * 1000 <= 2 * evidence->window_ms;
}

/* A lock is said to be held if somebody waited for it through the whole window, without running
 * once. For less, a program that works would be accused. */
void bp_diagnose_lock_held(bp_evidence *evidence) {
    enum { holder_max = 4 };
    lock_holder holders[holder_max];
    size_t count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *waiter = &evidence->threads[i], *root = find_root(evidence, waiter);
        size_t at = 0;
        while (at < count && holders[at].thread != root) {
            at++;
        }
        if (root == NULL || at == holder_max || waits_for_turn(evidence, waiter, root)) {
            continue;
        }
        if (at == count) {
            holders[count++] = (lock_holder){.thread = root, .kind = waiter->waits_for_kind};
        }
        holders[at].waiter_count++;
        holders[at].idle_count +=
            bp_thread_waited(evidence, waiter) || looks_again(evidence, waiter, root);
        if (strcmp(holders[at].kind, waiter->waits_for_kind) != 0) {
            holders[at].kind = "mutex";
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (holders[i].idle_count > 0) {
            find_holding(evidence, &holders[i]);
        }
    }
    find_readers(evidence);
}

/* --- contention --------------------------------------------------------------------------- */

/* The address of the lock that a thread waits for; NULL where it waits for none. It has the form of
 * a mutex of glibc in any case: FUTEX_WAIT while the word is 2, which no condition, semaphore or
 * barrier asks for (lll_lock_wait in nptl/lowlevellock.c). */
static const char *find_contended(const bp_thread *thread) {
    const char *operation = bp_thread_call_argument(thread, 1);
    bool is_lock = strcmp(thread->syscall, "futex") == 0 &&
                   strcmp(bp_thread_call_argument(thread, 2), "0x2") == 0 &&
                   (strcmp(operation, "0x80") == 0 || strcmp(operation, "0x0") == 0);
    return is_lock ? bp_thread_call_argument(thread, 0) : NULL;
}

/* The lock that most of those threads wait for which wait for one, if it is more than half of them
 * (Boyer and Moore); else any, or NULL. */
static const char *find_most_contended(const bp_evidence *evidence) {
    const char *lock = NULL;
    uint64_t votes = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const char *address = find_contended(&evidence->threads[i]);
        if (address == NULL) {
            continue;
        }
        lock = votes == 0 ? address : lock;
        votes = strcmp(address, lock) == 0 ? votes + 1 : votes - 1;
    }
    return lock;
}

/*
 * One lock that is not held for long at a time, and that nearly all threads wait for: of those that
 * ran in the window three quarters, and at least four. A pool that shares a lock now and then has
 * one or two in it at any instant.
 */
void bp_diagnose_lock_contended(bp_evidence *evidence) {
    enum { waiters_min = 4 };
    const char *lock = find_most_contended(evidence);
    const bp_thread *first = NULL;
    uint64_t active_count = 0, waiter_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        const char *address = find_contended(thread);
        bool is_idle = bp_thread_is_idle(thread);
        active_count += !is_idle;
        if (address == NULL) {
            continue;
        }
        if (is_idle || !thread->is_measured) {
            return;
        }
        bool is_waiter = strcmp(address, lock) == 0;
        first = is_waiter && first == NULL ? thread : first;
        waiter_count += is_waiter;
    }
    bool is_most = waiter_count >= waiters_min && waiter_count * 4 >= active_count * 3;
    if (is_most && evidence->window_ms >= BP_EVIDENCE_WAIT_WINDOW_MS) {
        bp_find(evidence,
                "{} of the {} threads that ran wait for one lock, {}, as \"{}\" ({}); none of them "
                "did so for all of the {} measured",
                BP_COUNT(waiter_count), BP_COUNT(active_count), BP_CUT_TEXT(lock, 24),
                BP_TEXT(first->name), BP_TID(first->tid), BP_SECS(evidence->window_ms));
    }
}
