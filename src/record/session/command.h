/*
 * Calls on a session that only the command makes.
 */
#ifndef BP_SESSION_COMMAND_H
#define BP_SESSION_COMMAND_H

#include <sys/types.h>

#include <bugpack/error.h>
#include <bugpack/report.h>
#include <bugpack/session.h>

#include "machine/machine_capture.h"
#include "model/condition.h"
#include "model/metadata.h"
#include "report/provider.h"
#include "report/recover.h"

/*
 * Adds another process to the reports: with the entries that a report has about a target, below
 * `processes/<pid>-<name>/`. Their metrics windows are one window, of sample_window_ms, which for
 * these processes begins at the trigger, also with a history. A process that ends later still has
 * its directory, and the manifest says that it has ended; if its id is reused, the new process does
 * not get into a report. Before the first report: one that is being written may have part of it.
 *
 * Errors: NO_PROCESS, DENIED, INVALID (it was added before, or the session is about no process),
 * LIMIT (256 processes), UNSUPPORTED, IO, NO_MEMORY, CLOSED. Any thread.
 */
bugpack_status bp_session_add_process(bugpack_session *session, pid_t pid, bugpack_error *error);

/*
 * Adds host-threads.json to the reports: every thread of every process on the machine, read when a
 * report is taken, after a window in which the use of each is measured. 10,000 threads take about a
 * second more and 20 MB of temporary file. Values that this user may not read are left out, and the
 * summary of the artefact counts them; that does not make a report incomplete. On systems other
 * than Linux each report says that the artefact is not supported.
 *
 * `plan` is copied, except for its prober; its context stays valid until bugpack_close has
 * returned. Errors: INVALID (called twice), LIMIT, NO_MEMORY, CLOSED. Any thread.
 */
bugpack_status bp_session_add_machine(bugpack_session *session, const bp_machine_plan *plan,
                                      bugpack_error *error);

/*
 * Adds the stacks of a process that has died to a session without a process. The page is borrowed
 * for good. Errors: LIMIT, NO_MEMORY, CLOSED. Any thread.
 */
bugpack_status bp_session_add_crash(bugpack_session *session, const bp_crash_page *page,
                                    bugpack_error *error);

/* The end of the target. */
typedef struct bp_target_end {
    bp_exit exit;               /* for metadata.json */
    const bp_crash_page *crash; /* borrowed for good; NULL: none */
    bp_metadata_target dead;    /* of a core; its pid is 0: the target of the session */
} bp_target_end;

/*
 * As bugpack_report_async, with the end of the target; NULL: it runs. With an end the report is of
 * the kind `crash` or `exit`. If that fails, bugpack_close leaves the session's directory for a
 * recovery, and on_diagnostic gets the path.
 */
bugpack_status bp_session_report(bugpack_session *session, const bugpack_report_request *request,
                                 const bp_target_end *end, bugpack_report_callback *on_done,
                                 void *context, bugpack_error *error);

/* As bugpack_provide_file, with what only the command has: files that nobody has named, and a child
 * process that reads them. */
bugpack_status bp_session_provide_file(bugpack_session *session, const bp_file_plan *plan,
                                       bugpack_error *error);

/*
 * Unwinds the stacks of other processes in a child process, whose crash costs these entries alone.
 * After the processes were added, and before the first report. Not where the target is a child of
 * ours, as of `run`: Yama lets only its ancestors read it, and the unwinder is none.
 */
void bp_session_unwind_aside(bugpack_session *session, bp_aside_runner *run_aside);

/*
 * Reads process.json of the target now, for reports that are taken after the target has ended; such
 * a report gives the time of the reading as its reason. With a metrics history the session does so
 * itself: a second after it was opened, then less and less often, at least once a minute. For a
 * target that has just become another program. Reads the target's files on the calling thread,
 * usually in under a millisecond.
 *
 * Errors: NO_PROCESS (the earlier reading is used), INVALID (the session has no target_pid),
 * NO_MEMORY, CLOSED. Any thread.
 */
bugpack_status bp_session_refresh_target(bugpack_session *session, bugpack_error *error);

/* As bugpack_recover, with callbacks about sessions that have no report. */
bugpack_status bp_session_recover(const bugpack_recover_options *options,
                                  const bp_recover_calls *calls, bugpack_error *error);

/* The process that the session is about, borrowed until it is closed; its pid is 0 where that is
 * its own, or none. */
const bp_metadata_target *bp_session_target(const bugpack_session *session);

/* Why the session has no samples for profiles, borrowed until it is closed; NULL: it has, or none
 * were asked for. */
const char *bp_session_profile_trouble(const bugpack_session *session);

/* For the condition `idle`: the target has printed something that is not in the log. Not during a
 * close. Any thread. */
void bp_session_note_output(bugpack_session *session);

/*
 * Calls back when a condition becomes true, and with NULL when the target has ended (with a metrics
 * history), which may come twice. On the monitor's thread or this one: `callback` must not wait.
 * Before a condition is added.
 */
void bp_session_tell_conditions(bugpack_session *session, bp_condition_callback *callback,
                                void *context);

#endif
