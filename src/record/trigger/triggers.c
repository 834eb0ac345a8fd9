#include "trigger/trigger.h"

#include "base/status.h"

#define BP_TRIGGER_ROW(name) &bp_trigger_##name,
static const bp_trigger *const all[] = {BP_TRIGGERS(BP_TRIGGER_ROW)};
#undef BP_TRIGGER_ROW

_Static_assert((int)BP_TRIGGER_COUNT <= (int)BP_TRIGGER_NOTE_MAX, "a job has room for all notes");

bugpack_status bp_triggers_open(bp_triggers *triggers, const bp_report_context *context,
                                bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < BP_TRIGGER_COUNT; i++) {
        status = all[i]->open(context, &triggers->selves[i], error);
    }
    return status;
}

void bp_triggers_stop(bp_triggers *triggers) {
    for (size_t i = 0; i < BP_TRIGGER_COUNT; i++) {
        if (triggers->selves[i] != NULL && all[i]->stop != NULL) {
            all[i]->stop(triggers->selves[i]);
        }
    }
}

void bp_triggers_close(bp_triggers *triggers) {
    for (size_t i = 0; i < BP_TRIGGER_COUNT; i++) {
        if (triggers->selves[i] != NULL && all[i]->close != NULL) {
            all[i]->close(triggers->selves[i]);
            triggers->selves[i] = all[i]->free != NULL ? triggers->selves[i] : NULL;
        }
    }
}

void bp_triggers_free(bp_triggers *triggers) {
    for (size_t i = 0; i < BP_TRIGGER_COUNT; i++) {
        if (triggers->selves[i] != NULL) {
            all[i]->free(triggers->selves[i]);
        }
    }
}

void bp_triggers_note(void *context, bp_trigger_note *ret_notes[BP_TRIGGER_NOTE_MAX]) {
    const bp_triggers *triggers = context;
    for (size_t i = 0; i < BP_TRIGGER_COUNT; i++) {
        if (triggers->selves[i] != NULL && all[i]->note != NULL) {
            ret_notes[i] = all[i]->note(triggers->selves[i]);
        }
    }
}

bugpack_status bp_triggers_list(void *context, const bp_job *job, bp_trigger_list *list,
                                bugpack_error *error) {
    const bp_triggers *triggers = context;
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < BP_TRIGGER_COUNT; i++) {
        if (triggers->selves[i] != NULL && all[i]->list != NULL) {
            status = all[i]->list(triggers->selves[i], job->notes[i], job, list, error);
        }
    }
    if (status == BUGPACK_OK && list->is_failed) {
        status = bp_fail_memory(error, "list the triggers");
    }
    if (status != BUGPACK_OK) {
        bp_trigger_list_release(list);
        return status;
    }
    bp_trigger_list_count_written(list, job->type->kind, job->key);
    return BUGPACK_OK;
}

uint64_t bp_triggers_tick(void *context, uint64_t now_ns) {
    const bp_triggers *triggers = context;
    uint64_t next_ns = UINT64_MAX;
    for (size_t i = 0; i < BP_TRIGGER_COUNT; i++) {
        if (triggers->selves[i] != NULL && all[i]->tick != NULL) {
            uint64_t wanted_ns = all[i]->tick(triggers->selves[i], now_ns);
            next_ns = wanted_ns < next_ns ? wanted_ns : next_ns;
        }
    }
    return next_ns;
}
