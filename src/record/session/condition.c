#include "session/session.h"

bugpack_status bugpack_condition_add(bugpack_session *session, const char *condition,
                                     bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "add a condition", error)) {
        void *conditions = session->triggers.condition;
        call.status = bp_conditions_add(conditions, condition, error);
        atomic_store(&session->conditions, conditions);
    }
    return bp_session_leave(&call);
}
