/*
 * Child processes that this process starts for itself: programs, what they write, and their end.
 */
#ifndef BP_BASE_CHILD_H
#define BP_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "base/sink.h"

/* A child has copies of descriptors as 0 to 3, or one of these. */
enum { BP_CHILD_FD_COUNT = 4, BP_CHILD_NULL = -1, BP_CHILD_OURS = -2 };

/* Calls `start` once, wherever it likes, and waits. 0, or an errno, and it was not called. */
typedef int bp_child_starter(int (*start)(void *context), void *context);

/* All borrowed. */
typedef struct bp_child_plan {
    const char *path; /* NULL: the first argument is searched in PATH */
    const char *const *arguments;
    char *const *environment;
    int fds[BP_CHILD_FD_COUNT]; /* BP_CHILD_NULL: /dev/null; BP_CHILD_OURS: untouched */
    bool leads_group;           /* a terminal's signals do not reach it */
    bp_child_starter *starter;  /* NULL: the calling thread is its parent */
} bp_child_plan;

typedef struct bp_child {
    pid_t pid; /* 0: there is none, or it was reaped */
    bool leads_group;
    int wait_status; /* as of waitpid, once it was reaped, unless somebody else has reaped it */
} bp_child;

/* Starts a program with no signal blocked and every one at its default, whatever the calling thread
 * has. 0, or an errno. */
int bp_child_start(const bp_child_plan *plan, bp_child *ret_child);

/* The output of a process, through a descriptor that stays the caller's. -1: none. */
typedef struct bp_child_output {
    int fd;
    bp_sink *sink;
    void *context;
} bp_child_output;

typedef struct bp_child_limits {
    uint64_t deadline_ns;                       /* monotonic; 0: none */
    uint64_t stall_ns;                          /* the longest time without output; 0: any */
    bool (*is_cancelled)(const void *observed); /* NULL: never */
    const void *observed;
} bp_child_limits;

enum { BP_CHILD_OUTPUT_COUNT = 2 };

/*
 * Gives the outputs to their sinks until the first one has ended, and the child (NULL: none) was
 * reaped. Others may end later: a process that it left behind may have them. TIMEOUT; CANCELLED;
 * IO with errno; what a sink returned.
 */
bugpack_status bp_child_read(bp_child *child, const bp_child_output outputs[BP_CHILD_OUTPUT_COUNT],
                             const bp_child_limits *limits);

/* Waits until the child is reaped. False: it still runs. */
bool bp_child_await(bp_child *child, uint64_t timeout_ns);

/* Sends a signal, to its group if it leads one, and waits. A child in an uninterruptible sleep
 * outlives SIGKILL. */
bool bp_child_kill(bp_child *child, int signal_number, uint64_t timeout_ns);

#endif
