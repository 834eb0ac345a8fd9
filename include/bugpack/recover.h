/*
 * Recovery: each session that died becomes a report of the kind `crash`.
 */
#ifndef BUGPACK_RECOVER_H
#define BUGPACK_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/report.h>

BUGPACK_BEGIN_DECLS

/* A session of another process that is still running. Valid during the call. */
typedef struct bugpack_running_session {
    size_t struct_size;   /* set by the library */
    const char *app_name; /* "" while it is being opened */
    const char *name;     /* of its directory, `<app>-<pid>-<session id>` */
    int64_t pid;          /* 0 if unknown, as from another pid namespace */
} bugpack_running_session;

typedef void bugpack_running_callback(const bugpack_running_session *session, void *context);

/* Further news from a recovery, beside its reports. */
typedef enum bugpack_recover_note_kind {
    BUGPACK_RECOVER_SEARCHED = 0, /* a directory was searched to its end, or does not exist */
    BUGPACK_RECOVER_SKIPPED = 1, /* a directory was not searched: others made it, or can write it */
    BUGPACK_RECOVER_UNSEEN = 2,  /* a directory or a session could not be looked at */
    BUGPACK_RECOVER_DROPPED = 3  /* a dead session was removed without a report */
} bugpack_recover_note_kind;

/* Valid during the call. */
typedef struct bugpack_recover_note {
    size_t struct_size; /* set by the library */
    const char *path;   /* the directory that is searched */
    const char *text;   /* one sentence */
    uint64_t kind;      /* a bugpack_recover_note_kind */
} bugpack_recover_note;

typedef void bugpack_recover_note_callback(const bugpack_recover_note *note, void *context);

/* Selects the sessions to recover. 0 is the default of every field (bugpack/common.h). */
typedef struct bugpack_recover_options {
    size_t struct_size;
    /* Where the session directories are. NULL: in all directories that a session may choose by
     * itself (bugpack_options, recorder.dir; macOS: $TMPDIR/bugpack, where rings are in memory and
     * nothing is left). */
    const char *recorder_dir;
    /* Where the reports are written; NULL: where each session wrote its own. */
    const char *report_dir;
    /* Sessions of this app only; NULL: of any. */
    const char *app_name;
    /* metadata.json has the name of this machine also for a session that did not ask for it. */
    bool with_hostname;
    /* Called for each report, also one that failed; that session is tried again next time. */
    bugpack_report_callback *on_report;
    /* Called for each session that is left alone because it is running in another process. */
    bugpack_running_callback *on_running;
    void *context; /* of all callbacks, which are called on the calling thread */
    /* No report is begun if it would leave the file system with fewer free bytes. Default 16 MiB;
     * BUGPACK_OFF: no check. */
    uint64_t min_free_bytes;
    bugpack_recover_note_callback *on_note;
    /* As in bugpack_options. A session whose report is refused is kept for the next try. */
    bugpack_before_publish_callback *before_publish;
    void *before_publish_context;
} bugpack_recover_options;

#define BUGPACK_RECOVER_OPTIONS_INIT BUGPACK_INIT(bugpack_recover_options)

/*
 * Writes a report for each dead session, and removes its directory. A running session is not
 * touched, nor one that somebody else is recovering: two calls at once give one report. It is a
 * success if there is no session. Blocks until all reports are written.
 *
 * A report fails, and its session is kept for the next try, if a part of it cannot be written or
 * read now: space, descriptors, memory. The report says what its files have lost. So that
 * sessions whose reports cannot be written do not fill a file system in memory, the oldest are
 * dropped beyond 16 of an app, or a quarter of the file system; the newest is always kept.
 *
 * bugpack_open does this by itself for its own app, in the background.
 *
 * Errors: INVALID (options), DENIED (recorder_dir is not this user's alone), UNSUPPORTED (no
 * directory is known), NO_MEMORY, LIMIT (over 1023 sessions in a directory), IO: recorder_dir does
 * not exist, or a directory or a session could not be looked at; all others were recovered. IO or
 * DENIED: report_dir cannot be used; nothing was done. Any thread.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_recover(const bugpack_recover_options *options,
                                                             bugpack_error *error);

BUGPACK_END_DECLS

#endif
