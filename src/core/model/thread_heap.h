/*
 * thread-heap.json: what each thread of another process has allocated and freed, or why that is
 * unknown.
 */
#ifndef BP_MODEL_THREAD_HEAP_H
#define BP_MODEL_THREAD_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"

/* Why the counters of a process, or of one thread, could not be read. */
typedef enum bp_heap_failure {
    BP_HEAP_FAILURE_NONE,
    /* Of a process. */
    BP_HEAP_FAILURE_SELF, /* our own process is not probed */
    BP_HEAP_FAILURE_PID_MISSING,
    BP_HEAP_FAILURE_READLINK, /* /proc/<pid>/exe: a kernel thread, or a refusal */
    BP_HEAP_FAILURE_MAPS_READ,
    BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND,
    BP_HEAP_FAILURE_ARCH_MISMATCH,
    BP_HEAP_FAILURE_DWARF_PARSE,         /* a jemalloc inside the executable, and no debug data */
    BP_HEAP_FAILURE_CALIBRATION_REFUSED, /* a library file that must not be run here */
    BP_HEAP_FAILURE_CALIBRATION,         /* the helper gave no answer, or could not be run */
    BP_HEAP_FAILURE_UNSUPPORTED,         /* on this system */
    /* Of a thread, or of a process whose threads all failed for the same reason. */
    BP_HEAP_FAILURE_THREAD_POINTER, /* unknown to the C library, and stopping is not allowed */
    BP_HEAP_FAILURE_PTRACE_SEIZE,
    BP_HEAP_FAILURE_PTRACE_INTERRUPT,
    BP_HEAP_FAILURE_WAITPID, /* the thread did not stop in time */
    BP_HEAP_FAILURE_GET_REGSET,
    BP_HEAP_FAILURE_VM_READV,
    BP_HEAP_FAILURE_TLS_ARITHMETIC,
    BP_HEAP_FAILURE_SYSTEM, /* of either: no descriptors, no memory, a disk that fails */
    BP_HEAP_FAILURE_COUNT
} bp_heap_failure;

/* The stable name: "pid-missing". Never NULL. */
const char *bp_heap_failure_name(bp_heap_failure failure);

/* True if there is nothing to measure: no jemalloc, our own process, a kernel thread. */
bool bp_heap_failure_is_absence(bp_heap_failure failure, int system_errno);

/*
 * True if it failed for a reason that has nothing to do with the process: descriptors, memory, a
 * disk. Every other failure says something about the process, or is a refusal.
 */
bool bp_heap_failure_is_trouble(bp_heap_failure failure, int system_errno);

typedef struct bp_thread_heap {
    uint64_t tid;
    uint64_t birth; /* as in platform/task.h */
    char name[64];  /* any bytes */
    bool is_measured;
    uint64_t allocated_bytes; /* since the thread began; printed only if measured */
    uint64_t deallocated_bytes;
    bp_heap_failure failure; /* why it is not measured */
    int system_errno;        /* of the failure, or 0 */
} bp_thread_heap;

/* All threads at one instant, ascending by tid. */
typedef struct bp_thread_heap_snapshot {
    uint64_t taken_wall_ns;
    uint64_t taken_ns; /* monotonic */
    bp_thread_heap *threads;
    size_t thread_count;
    size_t measured_count;
    size_t stopped_count;  /* threads that were stopped briefly */
    size_t vanished_count; /* threads that ended meanwhile; they are not listed */
} bp_thread_heap_snapshot;

/* Starts zeroed; the pointers are owned. */
typedef struct bp_thread_heap_reading {
    uint64_t pid;
    char process_name[64];
    bp_heap_failure failure; /* NONE if a thread of the last snapshot is measured */
    int system_errno;        /* of the failure, or 0 */
    char reason[512];        /* a sentence if there is a failure */
    char *object;            /* the file that holds jemalloc; NULL if unknown */
    char build_id[65];       /* its build id, or "" */
    bool is_shared;          /* in a library, not in the executable */
    bool is_calibrated;      /* offsets from a calibration, not from debug data */
    bp_thread_heap_snapshot *snapshots;
    size_t snapshot_count;
    bool is_interrupted; /* ended early on request */
} bp_thread_heap_reading;

void bp_thread_heap_reading_release(bp_thread_heap_reading *reading);

/* Threads of the last snapshot whose counters could not be read. */
size_t bp_thread_heap_unread_count(const bp_thread_heap_reading *reading);

/* Appends thread-heap.json of a process and its descendants: the first of the `count` readings, at
 * least one, and the others below it. */
bugpack_status bp_thread_heap_print(const bp_thread_heap_reading *readings, size_t count,
                                    bp_buffer *out, bugpack_error *error);

/* One reading as plain text for a person. */
bugpack_status bp_thread_heap_print_text(const bp_thread_heap_reading *reading, bp_buffer *out,
                                         bugpack_error *error);

#endif
