/*
 * Mutexes with ranks. A thread takes a lock only while every lock that it holds has a lower rank,
 * so two threads can never wait for each other. Builds with BUGPACK_LOCK_CHECKS (debug builds and
 * those of the tests) assert it; elsewhere a lock is the bare mutex.
 */
#ifndef BP_BASE_LOCK_H
#define BP_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Every lock of the product, from the first that a thread may take to the last, each with what it
 * guards | what it is held for | who takes it. Two locks of one rank are never held together.
 */
typedef enum bp_lock_rank {
    /* -- Held while files are read or made. */
    /* the task that facts are read by | reading the facts of a process, which opens its files |
     * provider thread, bugpack-facts */
    BP_LOCK_FACTS = 1,
    /* facts of another process; the list of processes | taking them over, or a file of /proc |
     * worker, provider thread, monitor, bugpack-facts, bp_session_add_process */
    BP_LOCK_SUBJECT,
    /* opening and closing of channels | making and removing ring files | bugpack_channel_open,
     * bugpack_channel_close */
    BP_LOCK_CHANNELS,
    /* who stops a thread | one stop, at most 200 ms | bugpack-stop */
    BP_LOCK_STOP,

    /* -- Held for a few instructions, or a walk along a short list. */
    /* open watchdogs | walk over 64 | bugpack_watchdog_open, bugpack_watchdog_close, monitor */
    BP_LOCK_WATCHDOGS,
    /* conditions of a session | opening the process once more | bugpack_condition_add */
    BP_LOCK_CONDITIONS,
    /* retained snapshots | walk over 5 | bugpack_notify, monitor, worker, snap */
    BP_LOCK_RETAINED,
    /* accepted jobs and their queue | walk over them | triggers, cancel, flush, worker, snap */
    BP_LOCK_JOBS,
    /* the gap table | a look-up, or copying all rows | bugpack_gap that may report, worker */
    BP_LOCK_GAPS,
    /* the state of a profile | changing it | worker, profile thread */
    BP_LOCK_PROFILER,
    /* which provider thread is in use | one pointer | bugpack_cancel, close, worker */
    BP_LOCK_RUNNER,
    /* call and result of a provider | handing one over | worker, provider thread, cancel, close */
    BP_LOCK_PROVIDER_THREAD,
    /* registered providers | copying the list | bugpack_provide, bugpack_unprovide, worker */
    BP_LOCK_PROVIDER_LIST,
    /* state of one provider | changing it | worker, provider thread, unprovide, close */
    BP_LOCK_PROVIDER,
    /* counters of auto-snapshots | changing them | monitor, worker */
    /* suppressed triggers, for the manifest | copying 65 | bugpack_disconnect, monitor, worker */
    BP_LOCK_OCCASIONS,
    /* the set of tags | one reference, or copying it | bugpack_set_tag, triggers */
    BP_LOCK_TAGS,
    /* redaction rules | compiling them (10 to 20 ms) | worker, bugpack_redact_add */
    BP_LOCK_REDACTION,
    /* tasks of the monitor | walk over 4 | monitor, open, close, worker, snapshot thread */
    BP_LOCK_MONITOR,
    /* metrics windows of triggers | making one, or marking its sample | monitor, triggers, worker
     */
    BP_LOCK_WINDOWS,
    /* recent samples | computing a window of two | monitor, worker */
    BP_LOCK_HISTORY,
    /* a redactor for texts at their call | redacting and appending one | whoever records */
    BP_LOCK_AT_CALL,
    /* texts seen before | appending up to three records | bugpack_notify, worker */
    BP_LOCK_NOTIFICATIONS,
    /* queued events | copying one of 4.7 KiB; making the queue, once | worker, bugpack_next_event,
     * bugpack_events_fd */
    BP_LOCK_EVENTS,
    /* result of a bugpack_report | copying it | its caller, worker */
    BP_LOCK_REPORT_CALL,
    /* who waits for a close | a broadcast | close, the last call that leaves */
    BP_LOCK_ENTRY_GUARD,
    /* the list of channels | walk along it | bugpack_channel_open, _close, bugpack_gap, triggers,
     * snapshot thread */
    BP_LOCK_CHANNEL_LIST,
    /* ring files, and why rings are in memory | walk over them | monitor, open, channels, snap */
    BP_LOCK_RINGS,
    /* messages not yet printed by `bugpack run` | copying one message | worker, main thread */
    BP_LOCK_COMMAND_OUTPUT,

    /* -- Taken last: whoever records holds it. */
    /* the chunks of a ring | handing out a chunk, counting a refused record, or giving memory back
     * | writers, monitor, close */
    BP_LOCK_RING,
} bp_lock_rank;

typedef struct bp_lock {
    pthread_mutex_t mutex;
#ifdef BUGPACK_LOCK_CHECKS
    bp_lock_rank rank;
    const char *name;
#endif
} bp_lock;

/* For a lock with static storage. */
#ifdef BUGPACK_LOCK_CHECKS
#define BP_LOCK_INIT(its_rank)                                                                     \
    { PTHREAD_MUTEX_INITIALIZER, its_rank, #its_rank }
#else
#define BP_LOCK_INIT(its_rank)                                                                     \
    { PTHREAD_MUTEX_INITIALIZER }
#endif

/* Cannot fail: a mutex with default attributes takes nothing, on glibc, musl and macOS. */
#define bp_lock_init(lock, its_rank) bp_lock_init_named(lock, its_rank, #its_rank)
void bp_lock_init_named(bp_lock *lock, bp_lock_rank rank, const char *name);
void bp_lock_destroy(bp_lock *lock);

/*
 * What a build with checks does: each ends the process with a sentence on standard error when a
 * rule is broken. The locks that a thread holds are listed in thread-local storage of fixed size.
 */
#ifdef BUGPACK_LOCK_CHECKS
void bp_lock_check_order(const bp_lock *lock);
void bp_lock_note_acquired(const bp_lock *lock);
void bp_lock_note_released(const bp_lock *lock);
void bp_lock_check_wait(const bp_lock *lock);
void bp_lock_check_none_held(void);
#else
static inline void bp_lock_check_order(const bp_lock *lock) {
    (void)lock;
}
static inline void bp_lock_note_acquired(const bp_lock *lock) {
    (void)lock;
}
static inline void bp_lock_note_released(const bp_lock *lock) {
    (void)lock;
}
/* Before a wait on a condition: this lock is held, and none that others could wait for meanwhile.
 */
static inline void bp_lock_check_wait(const bp_lock *lock) {
    (void)lock;
}
/* Before the host's code is called: no lock is held. */
static inline void bp_lock_check_none_held(void) {
}
#endif

static inline void bp_lock_acquire(bp_lock *lock) {
    bp_lock_check_order(lock);
    (void)pthread_mutex_lock(&lock->mutex);
    bp_lock_note_acquired(lock);
}

/* False when another thread holds it. Of any rank, because it never waits. */
static inline bool bp_lock_try_acquire(bp_lock *lock) {
    if (pthread_mutex_trylock(&lock->mutex) != 0) {
        return false;
    }
    bp_lock_note_acquired(lock);
    return true;
}

static inline void bp_lock_release(bp_lock *lock) {
    bp_lock_note_released(lock);
    (void)pthread_mutex_unlock(&lock->mutex);
}

/* Releases the lock, waits for the condition and takes the lock again; may also wake for no reason.
 * bp_lock_wait_until of platform/thread.h has a deadline. */
static inline void bp_lock_wait(bp_lock *lock, pthread_cond_t *condition) {
    bp_lock_check_wait(lock);
    (void)pthread_cond_wait(condition, &lock->mutex);
}

#endif
