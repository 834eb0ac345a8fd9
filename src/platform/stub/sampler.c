/*
 * No sampler, and no allocator that could be asked.
 */
#include "base/status.h"
#include "platform/allocator.h"
#include "platform/child_end.h"
#include "platform/process_facts.h"
#include "platform/task.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/*
 * There is never an object: opening fails, so nothing else can be called but with NULL. They
 * answer all the same, because a caller that gets here has a bug that must not become a crash.
 */
static bugpack_status unsupported(bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "there is no sampler for this system");
}

bugpack_status bp_task_open(pid_t pid, bp_task **ret_task, bugpack_error *error) {
    return unsupported(error);
}

bugpack_status bp_task_open_tree(pid_t pid, bp_task **ret_task, bugpack_error *error) {
    return bp_task_open(pid, ret_task, error);
}

void bp_task_close(bp_task *task) {
}

bugpack_status bp_task_clone(const bp_task *task, bp_task **ret_clone, bugpack_error *error) {
    return unsupported(error);
}

void bp_task_name(const bp_task *task, char *out, size_t out_bytes) {
    if (out_bytes > 0) {
        out[0] = '\0';
    }
}

pid_t bp_task_pid(const bp_task *task) {
    return 0;
}

bool bp_task_program_now(bp_task *task, bp_task_program *ret_program) {
    return false;
}

bugpack_status bp_task_read_totals(bp_task *task, bp_task_totals *ret_totals,
                                   bugpack_error *error) {
    return unsupported(error);
}

bugpack_status bp_task_count_files(bp_task *task, uint64_t *ret_count, bugpack_error *error) {
    return unsupported(error);
}

bool bp_task_uptime(bp_task *task, uint64_t *ret_uptime_ns) {
    return false;
}

bugpack_status bp_task_snapshot_take(bp_task *task, bool with_names, bp_task_snapshot *ret_snapshot,
                                     bugpack_error *error) {
    return unsupported(error);
}

bugpack_status bp_task_snapshot_take_last(bp_task *task, bool with_names,
                                          bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    return bp_task_snapshot_take(task, with_names, ret_snapshot, error);
}

bugpack_status bp_process_facts_read(bp_task *task, bp_process_facts *ret_facts,
                                     bugpack_error *error) {
    return unsupported(error);
}

void bp_task_reread_names(bp_task *task) {
}

bugpack_status bp_task_read_switches(const bp_task *task, bp_task_snapshot *snapshot,
                                     bugpack_error *error) {
    return BUGPACK_OK;
}

bugpack_status bp_allocator_read(bp_heap_reading *ret_reading, bugpack_error *error) {
    (void)ret_reading;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "there is no way to ask an allocator here");
}

int bp_child_end_status(const siginfo_t *info) {
    return info->si_status;
}

uint64_t bp_child_cpu_ns(pid_t pid) {
    return 0;
}
