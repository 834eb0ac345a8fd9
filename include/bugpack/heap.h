/*
 * What each thread of another process has allocated and freed, without a session or a report.
 *
 * The process was never asked: its jemalloc keeps these counters, and they are read out of its
 * memory. With glibc 2.34 or later the process is not stopped.
 */
#ifndef BUGPACK_HEAP_H
#define BUGPACK_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/*
 * How to read. Start from BUGPACK_THREAD_HEAP_OPTIONS_INIT and change what you need; `struct_size`
 * says which version of this struct the caller was compiled with. Since 0.1.0.
 */
typedef struct bugpack_thread_heap_options {
    size_t struct_size;
    /* How many snapshots, from 1 to 100000, and from the start of one to the next, in milliseconds;
     * at most BUGPACK_THREAD_HEAP_INTERVAL_MAX_MS. */
    uint32_t snapshot_count;
    uint32_t interval_ms;
    /* When this descriptor becomes readable, the call ends with what was read so far; -1: none. */
    int stop_fd;
    /* Stop a thread for an instant (PTRACE_SEIZE, PTRACE_INTERRUPT) where its C library does not
     * tell where its data are. */
    bool allow_stop;
    /* The bugpack command. It is run for a moment, without privileges, to learn the layout of a
     * stripped jemalloc library that has not been seen before; only for a library file that this
     * user's programs would load as well. NULL: such a library cannot be read. */
    const char *calibrator_path;
    /* Keep what was learned in $XDG_CACHE_HOME/bugpack, or ~/.cache/bugpack. */
    bool use_cache;
    /* Text for a person instead of JSON. */
    bool as_text;
} bugpack_thread_heap_options;

#define BUGPACK_THREAD_HEAP_INTERVAL_MAX_MS 600000u

#define BUGPACK_THREAD_HEAP_OPTIONS_INIT                                                           \
    { sizeof(bugpack_thread_heap_options), 1u, 100u, -1, true, NULL, true, false }

/* What came of it, for a caller that does not read the text. Since 0.1.0. */
typedef struct bugpack_thread_heap_result {
    size_t struct_size;     /* filled by the caller: sizeof(bugpack_thread_heap_result) */
    bool is_measured;       /* at least one thread was read */
    bool is_absence;        /* there is nothing to measure: no jemalloc, or our own process */
    uint32_t unread_count;  /* living threads whose counters could not be read */
    uint32_t stopped_count; /* threads that were stopped for an instant, in all snapshots */
    char failure[32]; /* the stable name of what went wrong: "jemalloc-not-found"; or "none" */
    char reason[512]; /* a sentence about it, or "" */
} bugpack_thread_heap_result;

/*
 * Reads the counters of process `pid` and gives the JSON text of thread-heap.json (see
 * docs/REPORT_FORMAT.md), or plain text, with a final newline and a NUL behind it. The text is the
 * caller's, to be freed with bugpack_free. `options` may be NULL; `ret_bytes` (without the NUL) and
 * `result` are optional.
 *
 * That counters cannot be had (no jemalloc, a refusal of the kernel's) is no error: the text says
 * so, and so does `result`.
 *
 * Errors: NO_PROCESS, INVALID, NO_MEMORY, IO. Any thread; blocks for the intervals. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_thread_heap_read(
    pid_t pid, const bugpack_thread_heap_options *options, char **ret_text, size_t *ret_bytes,
    bugpack_thread_heap_result *result, bugpack_error *error);

BUGPACK_END_DECLS

#endif
