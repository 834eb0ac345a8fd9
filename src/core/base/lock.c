#include "base/lock.h"

#ifdef BUGPACK_LOCK_CHECKS
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#endif

void bp_lock_init_named(bp_lock *lock, bp_lock_rank rank, const char *name) {
    (void)pthread_mutex_init(&lock->mutex, NULL);
#ifdef BUGPACK_LOCK_CHECKS
    lock->rank = rank;
    lock->name = name;
#else
    (void)rank;
    (void)name;
#endif
}

void bp_lock_destroy(bp_lock *lock) {
    (void)pthread_mutex_destroy(&lock->mutex);
}

#ifdef BUGPACK_LOCK_CHECKS

enum { held_max = 8 };

static _Thread_local struct {
    const bp_lock *locks[held_max];
    size_t count;
} held;

static _Noreturn void fail(const char *name, const char *problem, const char *other) {
    fprintf(stderr, "lock %s %s%s%s\n", name, problem, other[0] != '\0' ? " " : "", other);
    abort();
}

void bp_lock_check_order(const bp_lock *lock) {
    for (size_t i = 0; i < held.count; i++) {
        if (held.locks[i]->rank >= lock->rank) {
            fail(lock->name, "is taken under", held.locks[i]->name);
        }
    }
}

void bp_lock_note_acquired(const bp_lock *lock) {
    if (held.count == held_max) {
        fail(lock->name, "is one lock too many at once", "");
    }
    held.locks[held.count++] = lock;
}

void bp_lock_note_released(const bp_lock *lock) {
    size_t at = held.count;
    while (at > 0 && held.locks[at - 1] != lock) {
        at--;
    }
    if (at == 0) {
        fail(lock->name, "is released by a thread that does not hold it", "");
    }
    held.count--;
    for (size_t i = at - 1; i < held.count; i++) {
        held.locks[i] = held.locks[i + 1];
    }
}

void bp_lock_check_wait(const bp_lock *lock) {
    if (held.count == 0) {
        fail(lock->name, "is waited on by a thread that does not hold it", "");
    }
    for (size_t i = 0; i < held.count; i++) {
        if (held.locks[i] != lock) {
            fail(lock->name, "is waited on under", held.locks[i]->name);
        }
    }
}

void bp_lock_check_none_held(void) {
    if (held.count > 0) {
        fail(held.locks[0]->name, "is held while the host's code is called", "");
    }
}

#endif
