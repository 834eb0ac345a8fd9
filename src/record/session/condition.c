#include "session/session.h"

bugpack_status bugpack_condition_add(bugpack_session *session, const char *condition,
                                     bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "add a condition", error)) {
        void *conditions = bp_triggers_get(&session->triggers, &bp_trigger_condition);
        call.status = bp_conditions_add(conditions, condition, error);
        atomic_store(&session->conditions, conditions);
    }
    return bp_session_leave(&call);
}
