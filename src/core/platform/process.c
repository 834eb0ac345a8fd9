#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "platform/process_facts.h"
#include "platform/thread_reading.h"

void bp_process_facts_release(bp_process_facts *facts) {
    bp_buffer_release(&facts->command_line);
    free(facts->executable);
    free(facts->working_directory);
    free(facts->cgroup);
    free(facts->limits);
    for (size_t i = 0; i < facts->object_count; i++) {
        free(facts->objects[i].path);
    }
    free(facts->objects);
    *facts = (bp_process_facts){0};
}

void bp_facts_note(bp_process_facts *facts, const char *what, const char *reason) {
    char *denied = facts->denied;
    size_t used = strlen(denied);
    size_t reason_bytes = strlen(reason);
    char ending[160];
    (void)snprintf(ending, sizeof ending, ": %s", reason);
    const char *joint = used > 0 ? "; " : "";
    /* The same reason again: it moves to the end. */
    size_t ending_bytes = strlen(ending);
    if (used > ending_bytes && strcmp(denied + used - ending_bytes, ending) == 0) {
        used -= ending_bytes;
        joint = ", ";
    }
    size_t room = sizeof facts->denied - used;
    if (strlen(joint) + strlen(what) + 2 + reason_bytes < room) {
        (void)snprintf(denied + used, room, "%s%s%s", joint, what, ending);
    }
}

void bp_facts_deny(bp_process_facts *facts, const char *what, int system_errno) {
    if (system_errno == ENOENT || system_errno == ESRCH || system_errno == 0) {
        return;
    }
    facts->is_refused = facts->is_refused || system_errno == EACCES || system_errno == EPERM;
    bugpack_error reason = BUGPACK_ERROR_INIT;
    (void)bp_fail_errno(&reason, system_errno, "x");
    bp_facts_note(facts, what, reason.message + strlen("x: "));
}

void bp_task_snapshot_release(bp_task_snapshot *snapshot) {
    free(snapshot->threads);
    *snapshot = (bp_task_snapshot){0};
}

void bp_thread_reading_release(bp_thread_reading *thread) {
    free(thread->affinity);
    free(thread->kernel_stack);
    *thread = (bp_thread_reading){.tid = 0};
}
