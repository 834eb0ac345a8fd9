/*
 * A snapshot of every thread of every process on the machine.
 *
 * Processes and threads that end meanwhile are skipped: ENOENT and ESRCH say so, and no other
 * errno. A file that cannot be read costs its group of counters and is counted in the summary.
 * Linux only; elsewhere UNSUPPORTED.
 */
#ifndef BP_MACHINE_MACHINE_CAPTURE_H
#define BP_MACHINE_MACHINE_CAPTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/sink.h"
#include "heap/thread_heap.h"
#include "model/machine_threads.h"

/* Where the machine is read from; start from BP_MACHINE_ROOT_INIT, which is the machine itself. */
typedef struct bp_machine_root {
    const char *proc_path;   /* "/proc", or a recording of one */
    const char *cgroup_path; /* "/sys/fs/cgroup" */
    bool is_recording;       /* ids in it are not those of running processes */
    uint64_t ticks_per_sec;  /* of a recording; 0: ask the system */
} bp_machine_root;

#define BP_MACHINE_ROOT_INIT                                                                       \
    { "/proc", "/sys/fs/cgroup", false, 0 }

typedef struct bp_machine_plan {
    bp_heap_prober *prober; /* borrowed; NULL: no jemalloc is looked into */
    bool may_stop; /* threads, for an instant each, where only that shows a jemalloc's counters */
    uint32_t window_ms;      /* what all use is measured over so long before; 0: it is not */
    const atomic_bool *stop; /* when it becomes true, what was read so far is all; or NULL */
} bp_machine_plan;

/*
 * Prints host-threads.json to the sink. Threads are ascending by process and id. What comes before
 * them is known last, so they wait in memory: 1.6 KB each, and 256 MiB at most.
 *
 * Errors: UNSUPPORTED (no /proc), NO_MEMORY, LIMIT, IO (no descriptors are left), or the sink's.
 * Blocks for seconds with 10,000 threads. Any thread.
 */
bugpack_status bp_machine_capture(const bp_machine_root *root, const bp_machine_plan *plan,
                                  bp_sink *sink, void *context, bp_machine_summary *ret_summary,
                                  bugpack_error *error);

#endif
