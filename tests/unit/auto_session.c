#include "unit/auto_session.h"

#include <unistd.h>

#include "session/session.h"
#include "unit/unit.h"

bugpack_options auto_options(const temp_dir *dir) {
    bugpack_options options = quick_options(dir);
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder_in_memory = true;
    options.provider_timeout_ms = 600000;
    options.min_free_bytes = BUGPACK_OFF64;
    return options;
}

bp_trigger_entry auto_count(bugpack *session, bp_report_kind kind, const char *key) {
    const bp_job_type type = {.kind = BP_REPORT_BUGREPORT};
    const bp_job job = {.type = &type};
    bp_trigger_entry found = {.kind = kind};
    bp_trigger_list list = {.entries = NULL};
    cr_assert(zero(int, bp_triggers_list(session->triggers, &job, &list, NULL)));
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

bugpack_status auto_report(bugpack *session, bugpack_report_result *ret_result) {
    *ret_result = (bugpack_report_result)BUGPACK_REPORT_RESULT_INIT;
    return bugpack_report(session, NULL, ret_result);
}

int auto_wait_at_gate(bugpack_writer *writer, void *context) {
    auto_gate *guard = context;
    atomic_store(&guard->is_inside, true);
    while (!atomic_load(&guard->may_go)) {
        (void)usleep(1000);
    }
    return bugpack_printf(writer, "passed");
}

void auto_wait_for_worker(auto_gate *guard) {
    while (!atomic_load(&guard->is_inside)) {
        (void)usleep(1000);
    }
}
