/*
 * What a crash page gets, collected in the handler.
 */
#ifndef BP_PLATFORM_LINUX_CRASH_COLLECT_H
#define BP_PLATFORM_LINUX_CRASH_COLLECT_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <ucontext.h>

#include "platform/crash_page.h"

/* The mappings of this process. */
#define BP_CRASH_MAPS_PATH "/proc/self/maps"

/* Finds what bp_crash_collect reads of the C library, before there is a crash: that is not safe in
 * a signal handler. */
void bp_crash_collect_prepare(void);

/*
 * Fills the page, its check last. Calls only what is safe in a signal handler, and needs 11 KiB of
 * stack. `maps_fd` is of a bp_crash_source. Memory that cannot be read ends what it is part of: the
 * handler must call bp_guard_escape when it is entered again on this thread.
 */
void bp_crash_collect(bp_crash_page *page, const siginfo_t *info, const void *context, int maps_fd,
                      bool is_passed_to_host);

/* The reader of a process's memory: our own, or another one's. */
typedef struct bp_crash_source {
    const char *maps_path, *threads_path; /* below /proc; NULL: the page has both already */
    int maps_fd; /* the same file, for when it cannot be opened any more; borrowed; -1: none */
    /* False when it cannot be read as a whole. */
    bool (*copy)(void *context, void *to, uint64_t from, size_t byte_count);
    /* True if a listed thread has ended. NULL: none has. */
    bool (*has_thread_ended)(void *context, pid_t tid);
    void *context;
} bp_crash_source;

/* The exception of C++ that a thread which aborts has thrown, of a page that has stack and maps;
 * nothing where there is none. crash_exception.c. */
void bp_crash_collect_exception(bp_crash_page *page, const bp_crash_source *source);

/* Copies glibc's reason for an abort: an assertion, a check of the heap or the like. `place` is
 * that of its `__abort_msg`; nothing where it is 0. */
void bp_crash_collect_abort_message(bp_crash_page *page, const bp_crash_source *source,
                                    uint64_t place);

/* The parts of it, for a page whose other members are set. The second one ends with the check. */
void bp_crash_collect_signal(bp_crash_page *page, const siginfo_t *info);
void bp_crash_collect_memory(bp_crash_page *page, const bp_crash_source *source,
                             uint64_t stack_pointer);

/*
 * Running code that may fault, inside a handler of the signals that a fault raises, which blocks
 * them all. Directly below a bp_guard_place: a stack to run on, because a host's alternate one may
 * have room for little more than what the kernel stores there, and one for the handler of a fault.
 */
enum { BP_GUARD_STACKS_BYTES = 96 << 10 };

typedef struct bp_guard_place {
    ucontext_t outer, inner;
    void (*run)(void *context);
    void *context;
    atomic_bool is_running;
} bp_guard_place;

/* Calls `run` there, with faults let through, until it returns or one calls bp_guard_escape. One
 * thread at a time. Safe in a signal handler. */
void bp_guard_run_apart(bp_guard_place *place, void (*run)(void *context), void *context);

/* True if the calling thread, which is the only one that uses the place, is inside. */
bool bp_guard_is_running(const bp_guard_place *place);

/* Leaves the innermost part of `run` that may fault; returns when there is none. On its thread
 * alone. */
void bp_guard_escape(void);

#endif
