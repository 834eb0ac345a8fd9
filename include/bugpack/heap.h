/*
 * The bytes that each thread of another process has allocated and freed, without a session or a
 * report.
 *
 * jemalloc keeps these counters; they are read from the memory of the process, which need not
 * cooperate. With glibc 2.34 or later the process is not stopped.
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

#define BUGPACK_THREAD_HEAP_INTERVAL_MAX_MS 600000u

/* How to read. 0 is the default of every field (bugpack/common.h). Since 0.1.0. */
typedef struct bugpack_thread_heap_options {
    size_t struct_size;
    /* Snapshots to take, default 1, at most 100,000; and milliseconds from one to the next, default
     * 100, at most BUGPACK_THREAD_HEAP_INTERVAL_MAX_MS. BUGPACK_OFF: no pause between them. */
    uint32_t snapshot_count;
    uint32_t interval_ms;
    /* The call returns early when this descriptor becomes readable. 0 and negative: none. */
    int stop_fd;
    /* Never stop a thread. By default a thread is stopped for an instant (PTRACE_SEIZE,
     * PTRACE_INTERRUPT) where the C library does not say where its data are. */
    bool without_stop;
    /* Do not cache what was learned about a library in $XDG_CACHE_HOME/bugpack or
     * ~/.cache/bugpack. */
    bool without_cache;
    /* Return text for a person instead of JSON. */
    bool as_text;
    /* The path of the bugpack command. It is run briefly, without privileges, to learn the layout
     * of a stripped jemalloc that is not in the cache, and only for a library file that programs of
     * this user would load too. NULL: such a library cannot be read. */
    const char *calibrator_path;
} bugpack_thread_heap_options;

#define BUGPACK_THREAD_HEAP_OPTIONS_INIT BUGPACK_INIT(bugpack_thread_heap_options)
BUGPACK_API void bugpack_thread_heap_options_init(bugpack_thread_heap_options *fresh,
                                                  size_t struct_size);

/* The outcome, for a caller that does not parse the text. Since 0.1.0. */
typedef struct bugpack_thread_heap_result {
    size_t struct_size;
    char failure[32];      /* a stable name, such as "jemalloc-not-found"; or "none" */
    char reason[512];      /* a sentence about it, or "" */
    bool is_measured;      /* at least one thread was read */
    bool is_absence;       /* there is nothing to measure: no jemalloc, or our own process */
    uint32_t unread_count; /* living threads whose counters could not be read */
    uint64_t stop_count;   /* how often a thread was stopped, in all snapshots together */
} bugpack_thread_heap_result;

#define BUGPACK_THREAD_HEAP_RESULT_INIT BUGPACK_INIT(bugpack_thread_heap_result)
BUGPACK_API void bugpack_thread_heap_result_init(bugpack_thread_heap_result *fresh,
                                                 size_t struct_size);

/*
 * Reads the counters of process `pid` and returns the JSON text of thread-heap.json
 * (docs/REPORT_FORMAT.md), or plain text. It ends in a newline and a NUL and is freed with
 * bugpack_free. `options` NULL means the defaults. `ret_bytes` (without the NUL) and `ret_result`
 * are optional. Blocks for the intervals.
 *
 * If the process has no such counters, or the kernel denies access, the call succeeds: the text and
 * the result say so.
 *
 * Errors: NO_PROCESS, INVALID, LIMIT, NO_MEMORY, IO. Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_thread_heap_read(
    pid_t pid, const bugpack_thread_heap_options *options, char **ret_text, size_t *ret_bytes,
    bugpack_thread_heap_result *ret_result, bugpack_error *error);

BUGPACK_END_DECLS

#endif
