#include "unit/auto_session.h"

#include "session/session.h"

void auto_setup(void) {
    setup();
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.is_in_memory = true;
    options.limits.provider_timeout_ms = 600000;
    options.limits.min_free_bytes = BUGPACK_OFF;
}

bp_trigger_entry auto_count(bp_report_kind kind, const char *key) {
    const bp_job_type type = {.kind = BP_REPORT_BUGREPORT};
    const bp_job job = {.type = &type};
    bp_trigger_entry found = {.kind = kind};
    bp_trigger_list list = {.entries = NULL};
    cr_assert(zero(int, (int)bp_triggers_list(&session->triggers, &job, &list, NULL)));
    for (size_t i = 0; i < list.count; i++) {
        const bp_trigger_entry *entry = &list.entries[i];
        if (entry->kind == kind &&
            (key == NULL ? entry->key == NULL
                         : entry->key != NULL && strcmp(entry->key, key) == 0)) {
            found = *entry;
            found.key = key;
        }
    }
    bp_trigger_list_release(&list);
    return found;
}

int auto_wait_at_gate(bugpack_writer *writer, void *context) {
    auto_gate *gate = context;
    atomic_store(&gate->is_inside, true);
    while (!atomic_load(&gate->may_go)) {
        (void)usleep(1000);
    }
    return bugpack_printf(writer, "passed");
}

void auto_wait_for_worker(auto_gate *gate) {
    while (!atomic_load(&gate->is_inside)) {
        (void)usleep(1000);
    }
}

void auto_add_gate(auto_gate *gate) {
    provide("gate.txt", BUGPACK_PROVIDE_TEXT, auto_wait_at_gate, gate);
}
