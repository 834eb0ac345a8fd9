/*
 * Systems other than Linux: nothing is known of other processes, and each call says so.
 */
#include <stdlib.h>

#include "base/status.h"
#include "probe/calibration.h"
#include "probe/crash_trace.h"
#include "probe/machine_capture.h"
#include "probe/open_files.h"
#include "probe/process_list.h"
#include "probe/profile_ring.h"
#include "probe/session_copies.h"
#include "probe/system.h"
#include "probe/thread_heap.h"
#include "probe/thread_stop.h"
#include "probe/threads.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static const char no_profile[] = "this system has no way to sample threads";

struct bp_profile_ring {
    char unused;
};

struct bp_heap_prober {
    char unused;
};

bugpack_status bp_heap_prober_new(const bp_heap_prober_options *options,
                                  bp_heap_prober **ret_prober, bugpack_error *error) {
    bp_heap_prober *prober = calloc(1, sizeof *prober);
    if (prober == NULL) {
        return bp_fail_memory(error, "prepare a probe");
    }
    *ret_prober = prober;
    return BUGPACK_OK;
}

void bp_heap_prober_free(bp_heap_prober *prober) {
    free(prober);
}

bugpack_status bp_heap_probe(bp_heap_prober *prober, pid_t pid, const bp_heap_plan *plan,
                             bp_thread_heap_reading *ret_reading, bugpack_error *error) {
    *ret_reading =
        (bp_thread_heap_reading){.pid = (uint64_t)pid,
                                 .failure = BP_HEAP_FAILURE_UNSUPPORTED,
                                 .reason = "this system has no way to look into another process"};
    return BUGPACK_OK;
}

bp_profile_ring *bp_profile_ring_open(pid_t pid, uint32_t rate_hz) {
    return calloc(1, sizeof(bp_profile_ring));
}

const char *bp_profile_ring_trouble(const bp_profile_ring *ring) {
    return no_profile;
}

void bp_profile_ring_close(bp_profile_ring *ring) {
    free(ring);
}

bugpack_status bp_profile_ring_copy(const bp_profile_ring *ring, uint64_t until_ns,
                                    bp_profile_samples **ret_samples, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "%s", no_profile);
}

void bp_profile_samples_free(bp_profile_samples *samples) {
}

int bp_calibration_help(int argument_count, char **arguments) {
    return 1;
}

int bp_stop_help(int argument_count, char **arguments) {
    return 1;
}

bugpack_status bp_machine_capture(const bp_machine_root *root, const bp_machine_plan *plan,
                                  int dir_fd, bp_sink *sink, void *context,
                                  bp_machine_summary *ret_summary, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                   "all threads of the machine cannot be read on this system");
}

bugpack_status bp_threads_read(pid_t pid, uint64_t deadline_ns, bp_process_threads *ret_process,
                               bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                   "this system has no way to see where a thread stands");
}

bugpack_status bp_threads_find_files(bp_process_threads *processes, size_t count,
                                     uint64_t deadline_ns, bp_fd_search *ret_search,
                                     bugpack_error *error) {
    *ret_search = (bp_fd_search){.was_needed = false};
    return BUGPACK_OK;
}

bugpack_status bp_threads_find_processes(bp_process_threads *processes, size_t count,
                                         uint64_t deadline_ns, bugpack_error *error) {
    return BUGPACK_OK;
}

bugpack_status bp_open_files_read(pid_t pid, const uint64_t *wanted, size_t file_max,
                                  uint64_t deadline_ns, bp_open_files *ret_process,
                                  bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                   "the open files of a process cannot be read on this system");
}

bugpack_status bp_open_files_find_ends(bp_open_files *processes, size_t count, uint64_t deadline_ns,
                                       bp_fd_search *ret_search, bugpack_error *error) {
    *ret_search = (bp_fd_search){.was_needed = false};
    return BUGPACK_OK;
}

void bp_open_files_find_locks(bp_open_files *processes, size_t count) {
    (void)processes;
    (void)count;
}

bp_known_uint bp_system_oom_kills(void) {
    return (bp_known_uint){.known = false};
}

bugpack_status bp_system_read(const bp_system_plan *plan, bp_system *ret_system,
                              bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the machine is not described on this system");
}

bugpack_status bp_process_list_read(int dir_fd, bool with_cgroups, bp_process_list *ret_list,
                                    bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                   "this system's processes cannot be searched: name one by its id");
}

bool bp_process_list_is_there(const bp_listed_process *process) {
    return false;
}

void bp_session_copies_release(bp_session_copies *copies) {
}

bugpack_status bp_session_copies_take(pid_t pid, int dir_fd, const bp_cancel_token *token,
                                      bp_session_copies *ret_copies, bugpack_error *error) {
    *ret_copies = (bp_session_copies){.count = 0};
    return BUGPACK_OK;
}

bugpack_status bp_crash_trace_start(pid_t pid, const char *program, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this system has no way to read stacks");
}

const bp_crash_page *bp_crash_trace_finish(int number, const char **ret_reason) {
    *ret_reason = "this system has no way to read stacks";
    return NULL;
}
