/*
 * The session: the recorder and the reports of one process. It lasts from bugpack_open to
 * bugpack_close.
 *
 * A session runs in the host's process and leaves the host's state alone. It never exits, aborts,
 * prints, installs a signal handler (except by bugpack/crash.h), changes the locale or the working
 * directory, or touches a descriptor that it did not open. Its descriptors are close-on-exec. Its
 * threads block all signals except those that a fault of their own raises (SIGSEGV, SIGSYS, …),
 * which the host handles. A pthread_cancel takes effect when the call that it interrupts has
 * returned. Calls that record, trigger or wait for a report need at most 10 KiB of the caller's
 * stack, all others 64 KiB. After fork the child's copy of a session is inert: every call returns
 * at once, with BUGPACK_ERR_INERT if it has a status.
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
#include <bugpack/provide.h>

BUGPACK_BEGIN_DECLS

/* The longest distance between two samples, and the default of sample_window_ms. */
#define BUGPACK_SAMPLE_WINDOW_MAX_MS 600000u
#define BUGPACK_SAMPLE_WINDOW_DEFAULT_MS 2000u

/* What a trigger by the user or the host does while another such report is under way. Reports
 * that the library triggers always queue. */
typedef enum bugpack_when_busy {
    BUGPACK_WHEN_BUSY_QUEUE = 0,  /* up to BUGPACK_REPORT_QUEUE_MAX wait; then BUSY */
    BUGPACK_WHEN_BUSY_REFUSE = 1, /* BUSY at once */
    /* Share the report that is under way: its ticket, result, instant, description, channel and
     * traffic. Requests with an output_path, a screenshot, a timeout_ms or a retained snapshot are
     * never coalesced, nor with a report that was cancelled; they queue. */
    BUGPACK_WHEN_BUSY_COALESCE = 2
} bugpack_when_busy;

/* Which threads of the process have a stack in stacks.txt and stacks.json; docs/HANG_AND_CRASH.md
 * says how they are read. */
typedef enum bugpack_stacks {
    BUGPACK_STACKS_BLOCKED = 0, /* blocked threads; no thread is stopped */
    BUGPACK_STACKS_NONE = 1,
    /* Threads that run as well, and blocked ones whose stack needs their registers: each is stopped
     * for an instant (PTRACE_SEIZE, PTRACE_INTERRUPT), one after the other. A system call of a
     * blocked one may then fail with EINTR, as signal(7) says of a stop.
     *
     * Without a target_pid this needs bugpack_options.calibrator_path, the bugpack command: it runs
     * beside the host for half a minute at most, as no thread may stop another one of its process.
     * The host gets no SIGCHLD for it, and no waitpid(-1) finds it. Where that cannot be had (the
     * host is process 1 or a subreaper), or the system forbids it, threads that run are listed with
     * the reason. */
    BUGPACK_STACKS_ALL = 2,
    /* The same, also where Yama lets only ancestors trace a process: the command may do so by
     * PR_SET_PTRACER while it runs. A process has one such permission, so a crash reporter of the
     * host that has it loses it. */
    BUGPACK_STACKS_ALL_PTRACER = 3
} bugpack_stacks;

/*
 * Receives what the library would otherwise keep to itself: a provider that was given up, a ring
 * that is not in the recorder directory, a limit that could not be kept, a report that failed. Not
 * for the log: `text` is one line of valid UTF-8 without a newline, valid during the call.
 *
 * Called on the thread on which it happened, also on several threads at once and inside a public
 * call of the host. Must return soon. It may call whatever a report callback may; problems that
 * arise inside it are not reported to it.
 */
typedef void bugpack_diagnostic_callback(bugpack_level level, const char *text, void *context);

/* Where secrets are replaced (docs/REDACTION.md). */
typedef enum bugpack_redaction_mode {
    BUGPACK_REDACT_REPORTS = 0, /* in reports, before a byte of them reaches a named file */
    /* Also log messages and notifications where they are recorded, on the calling thread, so that
     * no ring and no file of the recorder holds a secret of theirs. Names of threads and channels,
     * and traffic, are recorded as they are. A secret has the same replacement in all reports of
     * the session. */
    BUGPACK_REDACT_AT_CALL = 1,
    BUGPACK_REDACT_NEVER = 2 /* reports hold secrets as they were recorded; each manifest says so */
} bugpack_redaction_mode;

/*
 * How a session behaves. 0 is the default of every field (bugpack/common.h); only app_name is
 * required. BUGPACK_OFF turns off what a field configures, where the field says so. `reserved` is
 * for later fields of the same subject: INVALID unless it is 0. bugpack_open copies the strings.
 */
typedef struct bugpack_options {
    size_t struct_size;

    /* The first word of each report's file name, in which every byte outside [A-Za-z0-9_.-] becomes
     * '_'. 1 to 64 bytes. Required, unless there is a target_pid: then NULL means its name. */
    const char *app_name;
    /* Free text for metadata.json; NULL omits it. */
    const char *app_version;
    const char *app_build_id;

    /* Where reports are written. The last component must be a directory and not a symbolic link;
     * DENIED if everybody can write to it and it is not sticky. NULL means $XDG_STATE_HOME/bugpack
     * or ~/.local/state/bugpack (macOS: ~/Library/Application Support/bugpack), which is created
     * with mode 0700, and DENIED if it is not this user's or is open to others. A process with
     * more privileges than its caller (setuid) does not ask the environment: INVALID. */
    const char *report_dir;
    /* Create the last component of report_dir, with mode 0700, if it is missing; what is above it
     * has to be there. */
    bool create_report_dir;

    /* metadata.json and system.json have the name of the machine. */
    bool with_hostname;

    /* `bugpack trigger` may ask for a report. It asks by a socket of mode 0600 in the session's
     * directory; only this user and root are heard. They may ask any number of times, one report
     * at a time, as if by bugpack_report_async without a request. Needs a session directory
     * (bugpack_recorder_locate); on_diagnostic says if there is none. The command finds a
     * recorder.dir by the files that the process has mapped, unless it may not be read (prctl(2),
     * PR_SET_DUMPABLE). */
    bool answers_trigger;

    /* Reports are not about a process: they have no runtime-metrics.json, metrics history or
     * process.json. For a session with other artefacts. Not with a target_pid. */
    bool without_process;
    /* Sample the target and all its descendants together: their threads, and the sums of their CPU
     * time (with that of ended ones) and memory. process.json stays about the target alone. */
    bool target_with_descendants;
    /* The process that reports are about; 0 means this one. Another process is held by a pidfd (by
     * its start time where there are none) from open to close, so that a reused process id never
     * appears in a report. */
    pid_t target_pid;

    /* What a trigger by the user or the host does while such a report is under way. */
    bugpack_when_busy when_busy;
    /* Which threads have stacks. INVALID for values that are none. */
    bugpack_stacks stacks;

    /* The distance between the two samples of runtime-metrics.json, in milliseconds. Default
     * BUGPACK_SAMPLE_WINDOW_DEFAULT_MS, at most BUGPACK_SAMPLE_WINDOW_MAX_MS; BUGPACK_OFF: no
     * pause between them. Providers run inside this time. */
    uint64_t sample_window_ms;

    /* The names of entries that reports leave out, separated by spaces (docs/REPORT_FORMAT.md,
     * Personal data). Each manifest says `disabled`. INVALID for other names. NULL for none. */
    const char *without_entries;

    /* The path of the bugpack command. With a target_pid it is run briefly, without privileges, to
     * learn the layout of a stripped jemalloc for thread-heap.json, and only for a library file
     * that programs of this user would load too; without one for BUGPACK_STACKS_ALL. */
    const char *calibrator_path;

    /* Called for every event of a report (bugpack/events.h). */
    bugpack_event_callback *on_event;
    void *on_event_context;
    /* Called for problems that reach the host in no other way. */
    bugpack_diagnostic_callback *on_diagnostic;
    void *on_diagnostic_context;
    /* Called with each report before it gets its name (bugpack/report.h). */
    bugpack_before_publish_callback *before_publish;
    void *before_publish_context;

    /* The recorder. */
    struct {
        /* Where the ring files are, so that they survive a crash: a directory of this user alone,
         * preferably on tmpfs, whose last component is created if it is missing. NULL means the
         * first usable of $XDG_RUNTIME_DIR/bugpack; for root /run/bugpack; and
         * /dev/shm/bugpack-<uid>. The last two are used only if they are in memory, and half of
         * their file system stays free. The rings are in anonymous memory if none is usable, with
         * is_in_memory, and always on macOS (bugpack_recorder_locate). */
        const char *dir;
        bool is_in_memory;
        /* Records below this level are dropped at the call. Default BUGPACK_LEVEL_DEBUG. */
        bugpack_level log_level;
        /* The size of the log ring: 4 KiB to 1 GiB. Default 4 MiB; BUGPACK_OFF: no log. */
        uint64_t log_ring_bytes;
        /* The memory that all traffic channels share by weight, allocated as they are opened.
         * Hundreds of open ones exceed it (bugpack_channel_options.weight). Default 50 MiB;
         * BUGPACK_OFF: no traffic. */
        uint64_t traffic_budget_bytes;
        /* The interval of the metrics history, in milliseconds. Default 1000; BUGPACK_OFF: no
         * history. With a history the window of a report ends at its trigger: a thread of the
         * library takes the sample. The report waits only right after bugpack_open, up to 250 ms.
         */
        uint64_t history_interval_ms;
        /* Samples of each thread, per second of its CPU time, that are kept for the profile of
         * a report: where threads were in the seconds before the trigger (docs/EMBEDDING.md). At
         * most 1000. BUGPACK_OFF, as 0: none. Linux; where the kernel or a limit refuses it, each
         * manifest and on_diagnostic say why. */
        uint64_t profile_hz;
        /* At this interval, in milliseconds, the library stores for a crash report: the tags; the
         * JSON and text of providers (4 MiB in all); and, with a crash handler (bugpack/crash.h),
         * process.json. At least 1000; less often where it takes over a hundredth of that time.
         * Default: every 5 s, and of the providers only that of session.json, up to 256 KiB.
         * BUGPACK_OFF: only process.json, as of the handler's installation. */
        uint64_t crash_refresh_interval_ms;
        uint64_t reserved[4];
    } recorder;

    /* Pedantic mode (bugpack/gap.h). */
    struct {
        /* The mode starts enabled. */
        bool is_enabled;
        /* Where its reports are written; NULL: report_dir. The directory is created as report_dir
         * is, and checked by bugpack_open if the mode starts enabled. */
        const char *dir;
        /* How many reports are taken: in all (default 50), and for one channel (default: no such
         * limit). BUGPACK_OFF: no such limit. */
        uint64_t cap, channel_cap;
        uint64_t reserved[4];
    } pedantic;

    /* A report at a regular interval, the first after one interval. */
    struct {
        uint64_t interval_ms; /* default and BUGPACK_OFF: never */
        /* NULL: report_dir/auto-snapshots. Its last component is created if it is missing. */
        const char *dir;
        /* Only the newest are kept there: default 20, and 512 MiB; BUGPACK_OFF: no such limit. */
        uint64_t max_count, max_bytes;
        uint64_t reserved[4];
    } auto_snapshot;

    /* Secrets in reports. */
    struct {
        bugpack_redaction_mode mode;
        /* Rules besides the built-in ones, as for bugpack_redact_add. NULL for none. */
        const char *rules;
        uint64_t reserved[4];
    } redaction;

    /* How much reports may take, and how many the library takes by itself. */
    struct {
        /* The time limit of one provider, in milliseconds. Default 2000. */
        uint64_t provider_timeout_ms;
        /* The largest artefact that a provider or a file may contribute. Default 64 MiB. */
        uint64_t artefact_bytes;
        /* The largest zip of a report, at least 64 KiB; INVALID below. What is worth least is left
         * out or loses its oldest records, as the manifest says (docs/REPORT_FORMAT.md, A limited
         * size). Default and BUGPACK_OFF: no limit. */
        uint64_t max_zip_bytes;
        /* Limits of all reports of this app in a directory: default 1000, and 4 GiB; BUGPACK_OFF:
         * no such limit. They do not count reports with an output_path. After a report was written
         * the oldest ones over a limit are deleted: first those that the library triggered, then
         * the others, never the new one. */
        uint64_t report_dir_max_count, report_dir_max_bytes;
        /* No report is begun if it would leave the file system with fewer free bytes. Default
         * 16 MiB; BUGPACK_OFF: no check. */
        uint64_t min_free_bytes;
        /* disconnect_cooldown_ms: pause after a disconnect report (default 60,000).
         * disconnect_cap: most reports per session (default 20). BUGPACK_OFF: no pause, no cap.
         * The same for hangs (bugpack/watchdog.h), and for all conditions together
         * (bugpack/condition.h). */
        uint64_t disconnect_cooldown_ms, disconnect_cap;
        uint64_t hang_cooldown_ms, hang_cap;
        uint64_t condition_cooldown_ms, condition_cap;
        /* The reports of one gap, hang or condition that are written on a day (UTC), over all
         * sessions that write to the same directory. Default 5; BUGPACK_OFF: any number. A further
         * one fails with LIMIT, which BUGPACK_EVENT_FAILED says, and is counted in later manifests;
         * the next one that is written says how many there were. */
        uint64_t per_signature;
        uint64_t reserved[4];
    } limits;
} bugpack_options;

#define BUGPACK_OPTIONS_INIT BUGPACK_INIT(bugpack_options)

/*
 * Opens a session: checks the options, opens the report directory and the target, and starts the
 * threads (docs/THREADING.md). On success the caller owns `*ret_session` and closes it; on failure
 * it is untouched.
 *
 * Errors: INVALID (options), NO_PROCESS or DENIED (target_pid), IO or DENIED (report_dir),
 * NO_MEMORY, UNSUPPORTED (a target_pid on a system without a sampler). Any thread. Several sessions
 * may be open in one process.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_open(const bugpack_options *options,
                                                          bugpack_session **ret_session,
                                                          bugpack_error *error);

/* Events that the records of a session survive, besides the end of its process. */
#define BUGPACK_SURVIVES_KILL 1    /* kill -9, and a crash */
#define BUGPACK_SURVIVES_SERVICE 2 /* the end of the service that the process runs in */
#define BUGPACK_SURVIVES_LOGOUT 4  /* the end of the user's last log-in */
#define BUGPACK_SURVIVES_REBOOT 8  /* but rings are not synced: the newest may be lost */

/* Where the rings of a session are. */
typedef struct bugpack_recorder_location {
    size_t struct_size;
    /* BUGPACK_SURVIVES_… of what is in `path`; 0: no record is in a file. Derived from the
     * path and the file system: an administrator can remove files at any time. */
    uint64_t survives;
    char path[4096];  /* the directory of the session; "" if all rings are in memory */
    char reason[256]; /* why a ring is in memory; "" if none is, or is_in_memory was set */
} bugpack_recorder_location;

#define BUGPACK_RECORDER_LOCATION_INIT BUGPACK_INIT(bugpack_recorder_location)

/*
 * Fills `*ret_location`, as far as its struct_size reaches. Channels get their rings when they are
 * opened.
 *
 * Errors: INVALID (struct_size), INERT, CLOSED. Any thread.
 */
BUGPACK_API bugpack_status bugpack_recorder_locate(bugpack_session *session,
                                                   bugpack_recorder_location *ret_location,
                                                   bugpack_error *error);

/*
 * Adds redaction rules, in the format of docs/REDACTION.md, to the built-in ones, for all reports
 * that are assembled from now on. `text` is copied. They are also kept for a recovery by another
 * process.
 *
 * Errors: INVALID, with the line that is wrong, or without redaction; LIMIT (16 texts, or too many
 * rules), NO_MEMORY, CLOSED. It takes 10 to 20 ms. Any thread.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_redact_add(bugpack_session *session,
                                                                const char *text,
                                                                bugpack_error *error);

/* Tags per session; bytes of a key, and of a value. */
#define BUGPACK_TAGS_MAX 64
#define BUGPACK_TAG_KEY_MAX_BYTES 64
#define BUGPACK_TAG_VALUE_MAX_BYTES 256

/*
 * Sets a tag: a key and a value in `tags` of metadata.json, for what a maintainer wants to filter
 * reports by (server version, GPU, feature flags). A report has the tags as of its trigger. A crash
 * report has the tags stored last (recorder.crash_refresh_interval_ms). This call starts such a
 * store, at most once a second. A value of NULL removes the tag; removing one that is not set
 * succeeds.
 *
 * A key has 1 to BUGPACK_TAG_KEY_MAX_BYTES bytes of [A-Za-z0-9_.-]. A value may hold any bytes; it
 * is made valid UTF-8, and cut at BUGPACK_TAG_VALUE_MAX_BYTES between characters.
 *
 * Errors: INVALID (key), LIMIT (BUGPACK_TAGS_MAX are set), NO_MEMORY, INERT, CLOSED. Any thread.
 */
BUGPACK_API bugpack_status bugpack_set_tag(bugpack_session *session, const char *key,
                                           const char *value, bugpack_error *error);

/*
 * Waits until every report that was accepted before the call is published or has failed, and its
 * callback has returned. That includes reports of gaps that wait in their queue, and those that
 * bugpack_open began for sessions that died. `timeout_ms` 0 only checks; BUGPACK_OFF waits without
 * a limit.
 *
 * Errors: TIMEOUT (some are still under way), INVALID, also inside a provider or report callback,
 * where it would wait for itself; INERT, CLOSED. Any other thread.
 */
BUGPACK_API bugpack_status bugpack_flush(bugpack_session *session, uint64_t timeout_ms,
                                         bugpack_error *error);

/* The most closed sessions of a process that keep a tombstone for late calls. */
#define BUGPACK_CLOSED_KEPT 64

/*
 * Closes a session: refuses new triggers, waits until every accepted report is published or has
 * failed and its callback has returned, then frees the session. Waiting reports of gaps get no
 * sample window; the summary of gaps is written last. NULL is ignored.
 *
 * When it returns, no provider, callback or filter of the session runs, with one exception: a
 * provider that hangs beyond its time limit is not waited for. Its thread stays inside the host's
 * function, and the library does not touch the host's data after it.
 *
 * Other threads may use the session and its channels meanwhile and afterwards. Calls inside are
 * waited for (a bugpack_report gets its report); later ones do nothing and return at once, with
 * BUGPACK_ERR_CLOSED if they have a status. For these a tombstone stays until BUGPACK_CLOSED_KEPT
 * more sessions of the process have been closed: under 4 KiB, 2 KiB for each channel, and the table
 * of gaps as far as it was filled.
 *
 * Of two closes at once, one closes and the other waits; inside a callback, provider or filter the
 * other returns at once. Do not call it inside a provider of the session. Inside a report callback
 * or another call on the session it does nothing. In a forked child it frees nothing.
 */
BUGPACK_API void bugpack_close(bugpack_session *session);

BUGPACK_END_DECLS

#endif
