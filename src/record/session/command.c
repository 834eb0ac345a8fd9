#include "session/command.h"

#include "base/status.h"
#include "session/session.h"
#include "sources/source.h"

bugpack_status bp_session_provide_file(bugpack_session *session, const bp_file_plan *plan,
                                       bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "register a file", error)) {
        call.status = bp_source_file(&session->context, plan, error);
    }
    return bp_session_leave(&call);
}

bugpack_status bp_session_add_machine(bugpack_session *session, const bp_machine_plan *plan,
                                      bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "provide host-threads.json", error)) {
        call.status = bp_source_host_threads(&session->context, plan, error);
    }
    return bp_session_leave(&call);
}

bugpack_status bp_session_add_crash(bugpack_session *session, const bp_crash_page *page,
                                    bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "read a core", error)) {
        atomic_store(&session->context.subject->crash, page);
        call.status = bp_sources_register(&session->context, error);
    }
    return bp_session_leave(&call);
}

bugpack_status bp_session_add_process(bugpack_session *session, pid_t pid, bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "add a process", error)) {
        bp_report_context further = session->context;
        call.status =
            session->config.without_process
                ? bp_fail(error, BUGPACK_ERR_INVALID, "the session is not about a process")
                : bp_subject_add(session->context.subject, pid, &further.subject, error);
        if (call.status == BUGPACK_OK) {
            call.status = bp_sources_register(&further, error);
        }
    }
    return bp_session_leave(&call);
}

void bp_session_unwind_aside(bugpack_session *session, bp_aside_runner *run_aside) {
    for (bp_subject *one = session->context.subject; one != NULL; one = bp_subject_next(one)) {
        one->run_aside = run_aside;
    }
}

bugpack_status bp_session_refresh_target(bugpack_session *session, bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "look at the process", error)) {
        call.status = bp_subject_refresh(session->context.subject, error);
        bp_monitor_wake(session->context.monitor); /* which follows what it executes next */
    }
    return bp_session_leave(&call);
}

void bp_session_note_output(bugpack_session *session) {
    void *conditions = atomic_load(&session->conditions);
    if (conditions != NULL) {
        bp_conditions_note_output(conditions);
    }
}

void bp_session_tell_conditions(bugpack_session *session, bp_condition_callback *callback,
                                void *context) {
    void *conditions = session->triggers.condition;
    bp_conditions_tell(conditions, callback, context);
    atomic_store(&session->conditions, conditions);
    if (atomic_load(&session->has_target_ended)) {
        callback(NULL, false, context); /* nobody looks any more */
    }
}

const bp_metadata_target *bp_session_target(const bugpack_session *session) {
    return &session->context.subject->target;
}

const char *bp_session_profile_trouble(const bugpack_session *session) {
    const bp_profile_ring *ring = session->context.profile_ring;
    return ring != NULL ? bp_profile_ring_trouble(ring) : NULL;
}
