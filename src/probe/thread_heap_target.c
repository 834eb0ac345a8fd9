#include "probe/thread_heap_target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"

bugpack_status bp_heap_target_find(bp_heap_prober *prober, bp_heap_target *target,
                                   bugpack_error *error) {
    char path[32];
    bugpack_status status = BUGPACK_OK;
    (void)snprintf(path, sizeof path, "/proc/%d", (int)target->pid);
    int process_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (process_fd < 0) {
        return bp_fail_process_errno(error, errno, "cannot look at process %d", (int)target->pid);
    }
    if (target->found.failure == BP_HEAP_FAILURE_NONE) {
        /* Before its map is read, so that an exec in between is seen. */
        target->memory_fd = openat(process_fd, "mem", O_RDONLY | O_CLOEXEC);
        target->has_memory = target->memory_fd >= 0;
        status = bp_jemalloc_find(prober, process_fd, &target->found, error);
    }
    (void)close(process_fd);
    return status;
}

/* Of a program that is gone nothing can be read: that is the end of the file (mem_rw in
 * fs/proc/base.c). */
bool bp_heap_target_is_same(const bp_heap_target *target) {
    const bp_jemalloc_found *found = &target->found;
    char byte;
    return !target->has_memory || found->failure != BP_HEAP_FAILURE_NONE ||
           pread(target->memory_fd, &byte, 1,
                 (off_t)(found->jemalloc_base + found->jemalloc.code_address)) != 0;
}

void bp_heap_target_release(bp_heap_target *target) {
    if (target->has_memory) {
        (void)close(target->memory_fd);
    }
    free(target->found.path);
    target->has_memory = false;
    target->found = (bp_jemalloc_found){0};
}
