/*
 * Recovery: each session that died becomes a report of the kind `crash`.
 */
#ifndef BUGPACK_RECOVER_H
#define BUGPACK_RECOVER_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/report.h>

BUGPACK_BEGIN_DECLS

/* A session of another process that is still running. Valid during the call. Since 0.1.0. */
typedef struct bugpack_running_session {
    size_t struct_size;   /* set by the library */
    const char *app_name; /* "" while it is being opened */
    const char *name;     /* of its directory, `<app>-<pid>-<session id>` */
    int64_t pid;          /* 0 if unknown, as from another pid namespace */
} bugpack_running_session;

typedef void bugpack_session_running(const bugpack_running_session *session, void *context);

/* What to recover. 0 is the default of every field (bugpack/common.h). Since 0.1.0. */
typedef struct bugpack_recover_options {
    size_t struct_size;
    /* Where the session directories are; NULL: $XDG_RUNTIME_DIR/bugpack (macOS: $TMPDIR/bugpack,
     * where rings are in memory and nothing is left). */
    const char *recorder_dir;
    /* Where the reports are written; NULL: where each session wrote its own. */
    const char *report_dir;
    /* Sessions of this app only; NULL: of any. */
    const char *app_name;
    /* Called for each report, also one that failed; that session is tried again next time. */
    bugpack_report_done *on_report;
    /* Called for each session that is left alone because it is running in another process. */
    bugpack_session_running *on_running;
    void *context; /* of both callbacks, which are called on the calling thread */
} bugpack_recover_options;

#define BUGPACK_RECOVER_OPTIONS_INIT BUGPACK_INIT(bugpack_recover_options)
BUGPACK_DEFINE_INIT(bugpack_recover_options)

/*
 * Writes a report for each dead session. A running session is not touched, nor one that somebody
 * else is recovering: two calls at once give one report. It is a success if there is no session or
 * no directory. Blocks until all reports are written.
 *
 * bugpack_open does this by itself for its own app, in the background.
 *
 * Errors: INVALID (options), IO, DENIED (the directory is not this user's alone), UNSUPPORTED (no
 * directory is known), NO_MEMORY. Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status
bugpack_recover_with(const bugpack_recover_options *options, bugpack_error *error);

/* bugpack_recover_with, with its options as parameters and without on_running. Since 0.1.0. */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_recover(const char *recorder_dir,
                                                             const char *report_dir,
                                                             const char *app_name,
                                                             bugpack_report_done *on_report,
                                                             void *context, bugpack_error *error);

BUGPACK_END_DECLS

#endif
