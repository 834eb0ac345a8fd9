/*
 * The session: one process from open to close, with its recorder and its reports.
 *
 * A session is a guest in somebody's process. It never exits, aborts, prints, installs a signal
 * handler, changes the locale or the working directory, or touches a descriptor that it did not
 * open; all its descriptors are close-on-exec and its threads block every signal but those that a
 * fault of their own raises (SIGSEGV, SIGSYS, …), which are the host's to handle. A pthread_cancel
 * takes effect when the call that it meets has returned. After fork the child's copy of a session
 * is inert: every call on it returns at once, with BUGPACK_ERR_INERT where it has a status.
 */
#ifndef BUGPACK_SESSION_H
#define BUGPACK_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>
#include <bugpack/events.h>
#include <bugpack/export.h>
#include <bugpack/log.h>

BUGPACK_BEGIN_DECLS

/* A session. Opaque; made by bugpack_open and ended by bugpack_close. */
typedef struct bugpack bugpack;

/* What becomes of a trigger by a person or the API while another such report is not yet done.
 * Reports that bugpack takes by itself always queue. */
typedef enum bugpack_when_busy {
    BUGPACK_WHEN_BUSY_QUEUE = 0,  /* up to BUGPACK_REPORT_QUEUE_MAX wait, beyond that BUSY */
    BUGPACK_WHEN_BUSY_REFUSE = 1, /* BUSY at once */
    /* It gets the ticket and the result of the one that is under way, whose instant, description
     * and channel stand. Never shared is one with an output_path, a screenshot, a timeout_ms or
     * rings that were kept, or one that was cancelled: then it queues. */
    BUGPACK_WHEN_BUSY_COALESCE = 2
} bugpack_when_busy;

/*
 * How a session behaves. Start from BUGPACK_OPTIONS_INIT, which holds every default, and change
 * what you need; strings are copied by bugpack_open. `struct_size` says which version of this
 * struct the host was compiled with, so that a newer library can add fields. Since 0.1.0.
 */
typedef struct bugpack_options {
    size_t struct_size;

    /* What the reports are called after: the first word of each file name, in which every byte
     * outside [A-Za-z0-9_.-] becomes '_'. 1 to 64 bytes. Required for a session about this process;
     * with a target_pid, NULL means the target's own name. */
    const char *app_name;
    /* Free text for metadata.json; NULL leaves it out. */
    const char *app_version;
    const char *app_build_id;

    /* Where reports go. The last component must be a directory and not a symbolic link. NULL means
     * $XDG_STATE_HOME/bugpack, or ~/.local/state/bugpack (macOS: ~/Library/Application
     * Support/bugpack), made with mode 0700 when it is missing. */
    const char *report_dir;
    /* Make the last component of report_dir, with mode 0700, when it is missing. */
    bool create_report_dir;

    /* The process that reports are about; 0 means this one. Another process is held by a pidfd (by
     * its start time where there are none) from open to close, so that a reused process id can
     * never get into a report. */
    pid_t target_pid;

    /* The distance between the two samples of runtime-metrics.json, in milliseconds. At most
     * BUGPACK_SAMPLE_WINDOW_MAX_MS. A provider runs inside this time, so it costs nothing extra. */
    uint32_t sample_window_ms;
    /* How long one provider may take before its artefact is given up, in milliseconds; at least 1.
     */
    uint32_t provider_timeout_ms;

    /* The memory that the log ring may use, in bytes: 4 KiB to 1 GiB, or 0 to keep no log. */
    size_t log_ring_bytes;
    /* Records less severe than this are dropped at the call. */
    bugpack_level log_level;

    /* The largest artefact that a provider or a file may contribute, in bytes; not 0. */
    size_t artefact_limit_bytes;

    /* The memory that all traffic channels share by weight, in bytes, taken as they are opened; 0
     * keeps no traffic. */
    uint64_t traffic_budget_bytes;
    /* How often the process is sampled for its metrics history, in milliseconds; 0: never. With a
     * history a report waits for no sample: it has the window that ended at its trigger. */
    uint32_t history_interval_ms;

    /* Where the rings lie, so that they outlive a crash: a directory of this user's alone, best on
     * tmpfs, whose last component is made when it is missing. NULL means $XDG_RUNTIME_DIR/bugpack.
     * Where it cannot be had, or without XDG_RUNTIME_DIR, or with recorder_in_memory, they lie in
     * memory; on macOS always. */
    const char *recorder_dir;
    bool recorder_in_memory;

    /* The process and all that descend from it, together: their threads, the sums of their CPU time
     * (ended ones too) and memory. process.json stays that of the one process. */
    bool target_with_descendants;

    /* Pedantic mode (bugpack/gap.h): whether it starts on, where its reports go (NULL: report_dir;
     * made like it, and checked at the opening when the mode starts on), how many it takes (0:
     * none), and how many of these for one channel, which holds also when there is no other; 0: no
     * share of its own. */
    bool pedantic;
    const char *pedantic_dir;
    uint32_t pedantic_cap, pedantic_channel_cap;
    /* Keys that are counted and never reported: patterns as fnmatch(3) has them, without flags,
     * "display:*". Each is tried once on each distinct key, in the host's locale. */
    const char *const *pedantic_ignore;
    size_t pedantic_ignore_count;

    /* A report every so many milliseconds, the first after one interval; 0: none. They go to
     * auto_snapshot_dir (NULL: report_dir/auto-snapshots), whose last component is made when it is
     * missing, and where the newest are kept, by count and by bytes (0: no such bound). */
    uint32_t auto_snapshot_interval_ms;
    const char *auto_snapshot_dir;
    uint32_t auto_snapshot_max_count;
    uint64_t auto_snapshot_max_bytes;

    /* How long after a disconnect report none is taken, in milliseconds; 0: no pause. */
    uint32_t disconnect_cooldown_ms;

    /* Bounds over all reports of this app in a directory that bugpack chose the names in; 0: none.
     * What is over them goes after a report was written: the oldest that bugpack took by itself
     * first, the oldest of the others when that is not enough, never the new one. */
    uint32_t report_dir_max_count;
    uint64_t report_dir_max_bytes;
    /* No report is begun when the file system would be left with less; 0: no such floor. */
    uint64_t min_free_bytes;
    /* What a trigger by a person or the API does while such a report is under way. */
    bugpack_when_busy when_busy;

    /* Told of every report (bugpack/events.h); NULL: nobody. */
    bugpack_event_callback *on_event;
    void *on_event_context;

    /* With a target_pid: the bugpack command, which may be run for a moment to learn the layout of
     * a stripped jemalloc library for thread-heap.json; see bugpack_thread_heap_options. NULL: what
     * was learned earlier has to do. */
    const char *calibrator_path;

    /* The reports are not about a process: they have no runtime-metrics.json, no history of them
     * and no process.json. For a session with other artefacts, such as bugpack/capture_host.h's.
     * Not with a target_pid. */
    bool without_process;
} bugpack_options;

#define BUGPACK_SAMPLE_WINDOW_MAX_MS 600000u

#define BUGPACK_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(bugpack_options), NULL, NULL, NULL, NULL, false, 0, 2000u, 2000u, (size_t)4 << 20,  \
            BUGPACK_LEVEL_DEBUG, (size_t)64 << 20, (uint64_t)50 << 20, 1000u, NULL, false, false,  \
            false, NULL, 50u, 20u, NULL, 0, 0u, NULL, 20u, (uint64_t)512 << 20, 60000u, 1000u,     \
            (uint64_t)4 << 30, (uint64_t)16 << 20, BUGPACK_WHEN_BUSY_QUEUE, NULL, NULL, NULL,      \
            false                                                                                  \
    }

/*
 * Opens a session: checks the options, opens the report directory and the target, starts the
 * threads (docs/THREADING.md lists them). On success `*ret_session` is the caller's to close; on
 * failure it is untouched.
 *
 * Errors: INVALID (options), NO_PROCESS or DENIED (target_pid), IO (report_dir), NO_MEMORY,
 * UNSUPPORTED (a target_pid on a system without a sampler).
 * Any thread. Several sessions may be open in one process. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_open(const bugpack_options *options,
                                                          bugpack **ret_session,
                                                          bugpack_error *error);

/*
 * Reads what process.json says of a target_pid, now, and keeps it for reports that are taken after
 * the process has ended; such a report has it with a reason that tells the time. A session with a
 * metrics history does so by itself, a second after it was opened, and then more and more seldom,
 * at least once a minute: this is for a process that has just become another program. Reads the
 * process's files on the calling thread: under a millisecond for an ordinary program. Any thread.
 *
 * Errors: NO_PROCESS (what was known is kept), INVALID (the session is about its own process),
 * NO_MEMORY, INERT, CLOSED. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_refresh_target(bugpack *session,
                                                                    bugpack_error *error);

/*
 * Closes a session: refuses new triggers, waits until every accepted report is written or has
 * failed and its callback has returned, then frees everything but what late calls still look at.
 * NULL is fine. Reports of gaps that wait by then wait for no sample window; their summary is
 * written last.
 *
 * A provider that overran its time limit and still hangs is not waited for, one that a cancelled
 * report left behind only until then; its thread stays inside the host's function, and bugpack
 * touches nothing of the host's afterwards.
 *
 * Other threads may call the session and its channels meanwhile and afterwards: calls that are
 * inside are waited for (a bugpack_report gets its report), those that come later return at once,
 * with BUGPACK_ERR_CLOSED where they have a status, and do nothing. That holds until
 * BUGPACK_CLOSED_KEPT more sessions of the process have been closed; then the rest of the memory,
 * under 4 KiB, 2 KiB for each channel, pedantic_ignore, and the table of gaps as far as it was
 * filled, goes as well. No provider, callback or filter of the session runs any more when this
 * returns, but for a provider that hangs.
 *
 * Of two closes at once one does it, and the other waits for its end, unless it runs in a
 * callback, a provider or a filter, where it returns at once. Not from a provider of the session.
 * From a report callback, or inside any other call of the session itself, it does nothing: the
 * session stays open, to be closed by another thread. In a forked child it frees nothing and
 * returns. Since 0.1.0.
 */
#define BUGPACK_CLOSED_KEPT 64
BUGPACK_API void bugpack_close(bugpack *session);

BUGPACK_END_DECLS

#endif
