/*
 * Samples of the threads of a process, taken by the kernel: perf_event_open(2). Nothing is stopped.
 * Linux only.
 */
#ifndef BP_PLATFORM_LINUX_PERF_EVENTS_H
#define BP_PLATFORM_LINUX_PERF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "base/fd_mark.h"
#include "platform/linux/perf_records.h"

enum {
    BP_PERF_STACK_BYTES = 8192, /* of each sample */
    BP_PERF_EVENT_MAX = 16384,  /* threads times processors */
    BP_PERF_SAMPLE_BYTES = 8408 /* of its record, at most */
};

typedef struct bp_perf_plan {
    pid_t pid;
    uint64_t rate_hz;
    size_t ring_bytes; /* of each processor at most; a power of two of pages */
    bool is_backward;  /* overwritten, until it is paused */
    bool is_followed;  /* with child processes and other programs */
} bp_perf_plan;

/* One may be closed by a host that takes it for its own; the kernel's id says which it is. */
typedef struct bp_perf_event {
    int fd;
    uint64_t id;
} bp_perf_event;

typedef struct bp_perf_ring {
    unsigned char *map; /* a page of the kernel's, and then the data; NULL: no such processor */
    size_t data_bytes;
    int fd; /* of the event that it belongs to */
} bp_perf_ring;

/* An event for each thread on each processor, as they are inherited by later threads only so; and a
 * ring for each processor. Starts zeroed. */
typedef struct bp_perf_events {
    bp_perf_ring *rings; /* by the number of the processor */
    size_t ring_count;
    size_t least_ring_bytes; /* of the smallest, where locked memory was short */
    bp_perf_event *items;
    size_t count, capacity;
    bp_fd_mark mark;      /* of each descriptor */
    bool excludes_kernel; /* the kernel does not let us sample in itself */
    bool is_backward;
} bp_perf_events;

/*
 * Begins to sample every thread that the process has, and those that it will have. Closed in any
 * case. Errors, with a sentence that names the limit: DENIED, UNSUPPORTED (the kernel, or another
 * processor), LIMIT (descriptors, locked memory), NO_PROCESS, NO_MEMORY, IO.
 */
bugpack_status bp_perf_events_open(bp_perf_events *events, const bp_perf_plan *plan,
                                   bugpack_error *error);
void bp_perf_events_close(bp_perf_events *events);

/* True if each descriptor is still what it was. */
bool bp_perf_events_are_ours(const bp_perf_events *events);

/* Writes no more into the rings; or again. */
void bp_perf_events_pause(const bp_perf_events *events, bool is_paused);

/* Reads the part of a ring that was not released yet; and makes room for what comes. */
bp_perf_cursor bp_perf_events_read(const bp_perf_events *events, size_t ring);
void bp_perf_events_release(const bp_perf_events *events, size_t ring, uint64_t end);

#endif
