/*
 * The pieces that process facts are read in.
 */
#ifndef BP_PLATFORM_LINUX_FACTS_PRIVATE_H
#define BP_PLATFORM_LINUX_FACTS_PRIVATE_H

#include "platform/facts_denied.h"
#include "platform/linux/task_private.h"
#include "platform/process_facts.h"

/*
 * Fills the context switches of the whole process: for our own the kernel's sum, for another the
 * sum over the threads that live now, because its status counts those of its first thread only.
 */
bugpack_status bp_facts_read_switches(bp_task *task, bp_process_facts *facts, bugpack_error *error);

/* Reads the mapped files and their build ids. NO_MEMORY is the only failure. */
bugpack_status bp_facts_read_objects(const bp_task *task, bp_process_facts *facts,
                                     bugpack_error *error);

/*
 * The build id of the file `path` that the task has mapped as `inode` on `device`, with `start` to
 * `end` being one of its mappings. "" in `out` when there is none or the file is another by now.
 * `root_fd` is the task's root directory, -1 for our own process. Sets `ret_is_there` when the file
 * of that name is the one that is mapped.
 */
typedef struct bp_mapped_file {
    const char *path;
    uint64_t device_major, device_minor, inode;
    uint64_t start, end;
} bp_mapped_file;
void bp_facts_read_build_id(const bp_task *task, int root_fd, const bp_mapped_file *file,
                            char out[65], bool *ret_is_there);

#endif
