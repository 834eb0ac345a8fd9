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

/* Told now and then how many of how many steps are done, on a thread of bugpack's; `total` may
 * change on the way. Must return at once. */
typedef void bugpack_host_progress(uint64_t done, uint64_t total, void *context);

/*
 * How the machine is captured. Start from BUGPACK_HOST_OPTIONS_INIT, or give NULL for it; strings
 * are copied. Since 0.1.0.
 */
typedef struct bugpack_host_options {
    size_t struct_size;
    /* Look into every process that runs on jemalloc; see bugpack/heap.h for what that takes. A
     * process is not stopped for it. */
    bool with_heap;
    /* As in bugpack_thread_heap_options; NULL: what was learned earlier has to do. */
    const char *calibrator_path;
    /* How long it may take, in milliseconds, before the report goes on without it. */
    uint32_t timeout_ms;
    bugpack_host_progress *on_progress; /* NULL: nobody is told */
    void *context;                      /* must stay valid until bugpack_close has returned */
} bugpack_host_options;

#define BUGPACK_HOST_OPTIONS_INIT                                                                  \
    { sizeof(bugpack_host_options), true, NULL, 300000u, NULL, NULL }

/*
 * Adds host-threads.json to the session's reports: every thread of every process on the machine,
 * read when a report is taken, by a few threads of ours. 10,000 threads take about a second and 20
 * MB of temporary file. What this user may not read is 0 and marked as not measured; the artefact
 * tells of it in its summary.
 *
 * A session that is for this alone is opened with `without_process`.
 *
 * Errors: INVALID (it is there already, or the options are of an unknown size), NO_MEMORY, INERT,
 * CLOSED. On a system other than Linux each report says that it has no such artefact. Any thread.
 * Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_provide_host_threads(
    struct bugpack *session, const bugpack_host_options *options, bugpack_error *error);

BUGPACK_END_DECLS

#endif
