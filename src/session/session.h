/*
 * What a session is made of. Only the public calls see it; everything else works on the objects.
 */
#ifndef BP_SESSION_SESSION_H
#define BP_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdint.h>

#include <bugpack/bugpack.h>

#include "base/entry_guard.h"
#include "platform/thread.h"
#include "probe/ticker.h"
#include "recorder/monitor.h"
#include "report/queue.h"
#include "trigger/trigger.h"

struct bugpack {
    bp_fork_guard *fork_guard;
    bp_entry_guard guard; /* of the slow calls */
    atomic_uint reference_count;
    bugpack_options settings; /* its strings are ours */
    bp_identity identity;
    bp_report_context context; /* its recorder, providers, subject, events and tags are ours */
    bp_at_call *at_call;       /* NULL: what is recorded is as it was given */
    bp_job_queue *jobs;
    bp_triggers *triggers;
    bp_monitor *monitor;
    bp_ticker *ticker;                    /* NULL without a metrics history */
    _Atomic(uint64_t) held_picture_bytes; /* of all reports together */
};

/* OK, INVALID for NULL, or INERT in the child of a fork; not whether the session is closed. For the
 * calls that only record: the lock of their ring refuses them after a close. */
bugpack_status bp_session_check(const bugpack *session);

/*
 * Every other public call enters instead: OK, INVALID, INERT, or CLOSED once the close has begun.
 * After OK the call must leave on the same thread, and may use all of the session until then. Calls
 * may nest. A close waits for the calls that are inside; one from inside does nothing. Never waits;
 * a pthread_cancel is held back until the leave.
 */
bugpack_status bp_session_enter(bugpack *session, bp_guard_entry *ret_entry);
void bp_session_leave(bp_guard_entry *entry);

/* The same with a sentence: "cannot WHAT: session is closed". */
bugpack_status bp_session_enter_to(bugpack *session, const char *what, bp_guard_entry *ret_entry,
                                   bugpack_error *error);

/* One reference to what is left of a closed session, for a log stream; close.c holds one to each of
 * the newest sessions. The last to drop it frees it. Any thread. */
void bp_session_retain(bugpack *session);
void bp_session_drop(bugpack *session);

/*
 * Checks the host's options and fills `settings` with them: strings copied, paths made absolute,
 * fields that an older host does not know at their defaults.
 */
bugpack_status bp_options_copy(const bugpack_options *given, bugpack_options *settings,
                               bugpack_error *error);

/* Frees what was copied. The patterns of gap keys are freed apart, and later: a gap that comes
 * after the close is still compared with them. */
void bp_options_release(bugpack_options *settings);
void bp_options_release_patterns(bugpack_options *settings);

#endif
