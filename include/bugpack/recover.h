/*
 * Recovery: what sessions that died left behind becomes one `crash` report each.
 */
#ifndef BUGPACK_RECOVER_H
#define BUGPACK_RECOVER_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/report.h>

BUGPACK_BEGIN_DECLS

/*
 * Looks through the directory in which sessions lie (NULL: $XDG_RUNTIME_DIR/bugpack, on macOS
 * $TMPDIR/bugpack, where rings lie in memory and nothing is left) and turns each dead one of
 * `app_name` (NULL: of any) into a report in `report_dir` (NULL: where that session put its own).
 * `on_report` is told of each, also of one that failed; its directory then stays for the next try.
 * A session that is alive is not touched, nor one that somebody else is just recovering: two
 * recoverers at once give one report. No session and no directory is a success. Blocks until all
 * are written; `on_report` is called on the calling thread.
 *
 * bugpack_open does this by itself, for its own app, on its worker's thread.
 *
 * Errors: IO, DENIED (the directory is not this user's alone), UNSUPPORTED (no directory is known),
 * NO_MEMORY. Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_recover(const char *recorder_dir,
                                                             const char *report_dir,
                                                             const char *app_name,
                                                             bugpack_report_done *on_report,
                                                             void *context, bugpack_error *error);

/* A session that is alive: still running, in another process. Valid during the call. Since 0.1.0.
 */
typedef struct bugpack_running_session {
    size_t struct_size;
    const char *app_name; /* "" when it is just being opened */
    int64_t pid;          /* 0 when it cannot be known, as from another pid namespace */
    const char *name;     /* of its directory, `<app>-<pid>-<session id>` */
} bugpack_running_session;

typedef void bugpack_session_running(const bugpack_running_session *session, void *context);

/*
 * What bugpack_recover_with may be told. Start from BUGPACK_RECOVER_OPTIONS_INIT; the fields are
 * the parameters of bugpack_recover. Since 0.1.0.
 */
typedef struct bugpack_recover_options {
    size_t struct_size;
    const char *recorder_dir;
    const char *report_dir;
    const char *app_name;
    bugpack_report_done *on_report;
    /* Told of each session that was left alone because it is still running elsewhere; the sessions
     * of the calling process are not told. Optional. */
    bugpack_session_running *on_running;
    void *context; /* of both callbacks, which are called on the calling thread */
} bugpack_recover_options;

#define BUGPACK_RECOVER_OPTIONS_INIT                                                               \
    { sizeof(bugpack_recover_options), NULL, NULL, NULL, NULL, NULL, NULL }

/* bugpack_recover, which also tells what it left alone. The same errors, and INVALID for options of
 * an unknown size. Any thread. Since 0.1.0. */
BUGPACK_API BUGPACK_NODISCARD bugpack_status
bugpack_recover_with(const bugpack_recover_options *options, bugpack_error *error);

BUGPACK_END_DECLS

#endif
