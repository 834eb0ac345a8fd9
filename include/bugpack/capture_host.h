/*
 * The whole machine: every thread of every process, as one artefact of a report.
 */
#ifndef BUGPACK_CAPTURE_HOST_H
#define BUGPACK_CAPTURE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

struct bugpack;

/* Reports progress in steps, on a thread of the library. `total` may change. Must return at once.
 */
typedef void bugpack_host_progress(uint64_t done, uint64_t total, void *context);

/* How the machine is captured. 0 is the default of every field (bugpack/common.h). Since 0.1.0. */
typedef struct bugpack_host_options {
    size_t struct_size;
    /* Do not read the counters of processes that use jemalloc (bugpack/heap.h). Reading them stops
     * no process. */
    bool without_heap;
    /* The time limit of the artefact in milliseconds; default 300,000. The report then continues
     * without it. */
    uint32_t timeout_ms;
    /* As in bugpack_thread_heap_options. */
    const char *calibrator_path;
    bugpack_host_progress *on_progress; /* NULL: none */
    void *context;                      /* of on_progress; valid until bugpack_close has returned */
    /* What each thread uses is measured over so many milliseconds, before the rest is read; at most
     * 600,000, default 1000, BUGPACK_OFF: not at all. */
    uint32_t window_ms;
    uint32_t reserved; /* 0 */
} bugpack_host_options;

#define BUGPACK_HOST_OPTIONS_INIT BUGPACK_INIT(bugpack_host_options)
BUGPACK_API void bugpack_host_options_init(bugpack_host_options *fresh, size_t struct_size);

/*
 * Adds host-threads.json to the reports of a session: every thread of every process on the machine,
 * read when a report is taken, after a window in which the use of each is measured. 10,000 threads
 * take about a second more and 20 MB of temporary file. Values that this user may not read are left
 * out, and the summary of the artefact counts them; that does not make a report incomplete.
 * `options` NULL means the defaults.
 *
 * A session that exists only for this is opened with `without_process`. On systems other than Linux
 * each report says that the artefact is not supported.
 *
 * Errors: INVALID (options, or called twice), LIMIT, NO_MEMORY, INERT, CLOSED. Any thread. Since
 * 0.1.0.
 */
BUGPACK_API bugpack_status bugpack_provide_host_threads(struct bugpack *session,
                                                        const bugpack_host_options *options,
                                                        bugpack_error *error);

BUGPACK_END_DECLS

#endif
