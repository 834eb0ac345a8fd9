/*
 * What the library asks the probe for on macOS, where a session is about its own process alone:
 * reading threads, files and stacks needs Linux.
 */
#include "base/status.h"
#include "heap/thread_heap.h"
#include "machine/machine_capture.h"
#include "machine/system.h"
#include "process/open_files.h"
#include "process/threads.h"
#include "profile/profile.h"
#include "profile/profile_ring.h"
#include "stacks/core_file.h"
#include "stacks/stacks.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static const char needs_linux[] = "this needs Linux";

static bugpack_status refuse(bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "%s", needs_linux);
}

bugpack_status bp_heap_prober_new(const bp_heap_prober_options *options,
                                  bp_heap_prober **ret_prober, bugpack_error *error) {
    return refuse(error);
}

void bp_heap_prober_free(bp_heap_prober *prober) {
}

bugpack_status bp_heap_probe(bp_heap_prober *prober, pid_t pid, const bp_heap_plan *plan,
                             bp_thread_heap_reading *ret_reading, bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_machine_capture(const bp_machine_root *root, const bp_machine_plan *plan,
                                  bp_sink *sink, void *context, bp_machine_summary *ret_summary,
                                  bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_threads_read(pid_t pid, uint64_t deadline_ns, bp_process_threads *ret_process,
                               bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_threads_find_files(bp_process_threads *processes, size_t count,
                                     uint64_t deadline_ns, bp_fd_search *ret_search,
                                     bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_threads_find_processes(bp_process_threads *processes, size_t count,
                                         uint64_t deadline_ns, bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_open_files_read(pid_t pid, const uint64_t *wanted, size_t file_max,
                                  uint64_t deadline_ns, bp_open_files *ret_process,
                                  bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_open_files_find_ends(bp_open_files *processes, size_t count, uint64_t deadline_ns,
                                       bp_fd_search *ret_search, bugpack_error *error) {
    return refuse(error);
}

void bp_open_files_forget_ends(void) {
}

void bp_open_files_find_locks(bp_open_files *processes, size_t count) {
}

bp_known_uint bp_system_oom_kills(void) {
    return (bp_known_uint){.known = false};
}

bool bp_system_read_groups_again(const bp_system *before, bp_system *system) {
    return true;
}

void bp_system_read_groups(pid_t pid, bp_system *ret_system) {
    (void)pid;
    *ret_system = (bp_system){.cgroup_count = 0};
}

bugpack_status bp_system_read(const bp_system_plan *plan, bp_system *ret_system,
                              bugpack_error *error) {
    return refuse(error);
}

struct bp_profile_ring {
    char unused;
};
static bp_profile_ring no_ring;

bp_profile_ring *bp_profile_ring_open(pid_t pid, uint32_t rate_hz) {
    return &no_ring;
}

const char *bp_profile_ring_trouble(const bp_profile_ring *ring) {
    return needs_linux;
}

void bp_profile_ring_close(bp_profile_ring *ring) {
}

bugpack_status bp_profile_ring_copy(const bp_profile_ring *ring, uint64_t until_ns,
                                    bp_profile_samples **ret_samples, bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_profiler_begin(const bp_profile_plan *plan, bp_profiler **ret_profiler,
                                 bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_profiler_end(bp_profiler *profiler, bp_profile *ret_profile,
                               bugpack_error *error) {
    return refuse(error);
}

void bp_profiler_abandon(bp_profiler *profiler) {
}

bugpack_status bp_stacks_read(pid_t pid, const bp_stacks_plan *plan, bp_stacks *ret_stacks,
                              bugpack_error *error) {
    return refuse(error);
}

void bp_stacks_prepare_children(void) {
}

bugpack_status bp_stacks_read_crash(const bp_crash_page *page, const bp_stacks_plan *plan,
                                    bool is_host, bp_stacks *ret_stacks, bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_core_file_read(const char *path, const char *exe, bp_core_file *ret_core,
                                 bugpack_error *error) {
    return refuse(error);
}

void bp_core_file_release(bp_core_file *file) {
}

bp_frame_finder bp_frame_finder_new(const bp_debug_places *places) {
    return (bp_frame_finder){NULL, NULL, NULL};
}
