#ifndef BP_PLATFORM_LINUX_TASK_PRIVATE_H
#define BP_PLATFORM_LINUX_TASK_PRIVATE_H

#include <stdatomic.h>

#include "platform/linux/process.h"

struct bp_task {
    atomic_uint reference_count;
    bp_process process;
    bool has_tree;
    bp_process_tree tree; /* of the process and its descendants; root.fd is open for it */
};

#endif
