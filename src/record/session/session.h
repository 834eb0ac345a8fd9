/*
 * The parts of a session. Only the public calls see it; everything else works on the objects.
 */
#ifndef BP_SESSION_SESSION_H
#define BP_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdint.h>

#include <bugpack/bugpack.h>

#include "base/entry_guard.h"
#include "process/ticker.h"
#include "report/queue.h"
#include "trigger/trigger.h"

struct bugpack_session {
    unsigned fork_number;
    bp_entry_guard guard; /* of the slow calls */
    atomic_uint reference_count;
    bp_config config;
    bp_identity identity;
    bp_provider_list providers;
    bp_events events;
    bp_tags tags;
    bp_report_context context; /* all that it points to is ours */
    bp_at_call *at_call;       /* NULL: what is recorded is as it was given */
    bp_triggers triggers;
    _Atomic(void *) conditions; /* the trigger's object, once it has something to do */
    atomic_bool has_target_ended;
    bp_ticker *ticker;                    /* NULL without a metrics history */
    _Atomic(uint64_t) held_picture_bytes; /* of all reports together */
};

/* OK, INVALID for NULL, or INERT in the child of a fork; not whether the session is closed. For the
 * calls that only record: the lock of their ring refuses them after a close. */
bugpack_status bp_session_check(const bugpack_session *session);

/* Every other public call, from its enter to its leave. */
typedef struct bp_call {
    bugpack_status status; /* for the call to set, once it is inside */
    bool is_inside;
    bp_guard_entry entry;
} bp_call;

/*
 * Enters a session; false, with the status INVALID, INERT, or CLOSED once the close has begun, and
 * the error "cannot WHAT: the session is closed" (`what` NULL: none). After true the call may use
 * all of the session until it leaves, on the same thread. Calls may nest. A close waits for the
 * calls that are inside; one from inside does nothing. Never waits; a pthread_cancel is held back
 * until the leave. All calls have this shape:
 *
 *     bp_call call;
 *     if (bp_session_enter(&call, session, "do something", error)) {
 *         call.status = do_something(session, error);
 *     }
 *     return bp_session_leave(&call);
 */
bool bp_session_enter(bp_call *call, bugpack_session *session, const char *what,
                      bugpack_error *error);

/* Leaves, if the call is inside. The call's status. */
bugpack_status bp_session_leave(bp_call *call);

/* Drops a reference to what is left of a closed session: of a log stream, or of those that keep the
 * newest. The last one frees it. Any thread. */
void bp_session_drop(bugpack_session *session);

/* Checks the host's options, and translates them into `ret_config`, which owns its strings. */
bugpack_status bp_config_read(const bugpack_options *given, bp_config *ret_config,
                              bugpack_error *error);

/* Frees what was copied. */
void bp_config_release(bp_config *config);

#endif
