/*
 * system.json: the machine, and where on it the process runs.
 */
#ifndef BP_MODEL_SYSTEM_H
#define BP_MODEL_SYSTEM_H

#include <bugpack/error.h>

#include "base/buffer.h"
#include "platform/linux/system_text.h"
#include "platform/machine_threads.h"
#include "platform/process_facts.h"

/* Keys of /proc/meminfo, in kB. X(constant, group in the JSON, key in the JSON, key) */
#define BP_SYSTEM_MEMORY(X)                                                                        \
    X(TOTAL, "memory", "total_kb", "MemTotal")                                                     \
    X(AVAILABLE, "memory", "available_kb", "MemAvailable")                                         \
    X(FREE, "memory", "free_kb", "MemFree")                                                        \
    X(BUFFERS, "memory", "buffers_kb", "Buffers")                                                  \
    X(CACHED, "memory", "cached_kb", "Cached")                                                     \
    X(SHARED, "memory", "shared_kb", "Shmem")                                                      \
    X(SLAB, "memory", "reclaimable_slab_kb", "SReclaimable")                                       \
    X(DIRTY, "memory", "dirty_kb", "Dirty")                                                        \
    X(COMMITTED, "memory", "committed_kb", "Committed_AS")                                         \
    X(SWAP_TOTAL, "swap", "total_kb", "SwapTotal")                                                 \
    X(SWAP_FREE, "swap", "free_kb", "SwapFree")

enum {
#define BP_SYSTEM_CONSTANT(constant, group, name, key) BP_SYSTEM_##constant,
    BP_SYSTEM_MEMORY(BP_SYSTEM_CONSTANT)
#undef BP_SYSTEM_CONSTANT
        BP_SYSTEM_MEMORY_COUNT
};

/* The key of a row in /proc/meminfo. */
const char *bp_system_memory_key(size_t row);

/* More control groups above each other are not read. */
#define BP_SYSTEM_CGROUP_MAX 16

/* Directories of a process, whose file systems are described. X(constant, name in the JSON) */
#define BP_SYSTEM_PLACE(X)                                                                         \
    X(ROOT, "root")                                                                                \
    X(TMP, "tmp")                                                                                  \
    X(WORKING_DIRECTORY, "working_directory")

enum {
#define BP_SYSTEM_CONSTANT(constant, name) BP_SYSTEM_PLACE_##constant,
    BP_SYSTEM_PLACE(BP_SYSTEM_CONSTANT)
#undef BP_SYSTEM_CONSTANT
        BP_SYSTEM_PLACE_COUNT
};

/* More file systems of one process are not described. */
#define BP_SYSTEM_FILESYSTEM_MAX 64

typedef struct bp_filesystem {
    bool is_of[BP_SYSTEM_PLACE_COUNT]; /* several may be on one */
    char *file; /* one on it that is open for writing; any bytes but NUL; owned; NULL: none */
    uint64_t total_bytes, used_bytes;
    uint64_t available_bytes;          /* to an unprivileged user */
    uint64_t inode_count, inodes_free; /* 0 and 0: they are not counted */
    bool is_read_only;
} bp_filesystem;

/* Unknown facts are not `known`, "", NULL or 0. Starts zeroed. */
typedef struct bp_system {
    char distribution_id[64], distribution_version[64], distribution_name[128];
    char kernel_name[66], kernel_release[66], kernel_version[66], architecture[66];
    char hostname[256]; /* only where it was asked for */
    char cpu_model[128];
    bp_known_uint cpu_count, cpu_online_count, cpu_usable_count; /* the last: of the process */
    bp_known_uint memory[BP_SYSTEM_MEMORY_COUNT];
    bp_known_uint oom_kills; /* of the machine, since the session began */
    bool has_load;
    bp_load load;
    bp_pressure pressure[BP_PRESSURE_COUNT];
    uint64_t boot_wall_ns, uptime_ns;                /* the machine's sleep counts */
    bool has_process;                                /* else what follows is not known */
    const char *container;                           /* the name of what made it; static */
    bp_machine_cgroup cgroups[BP_SYSTEM_CGROUP_MAX]; /* each path from its group up; owned */
    size_t cgroup_count;
    bp_filesystem filesystems[BP_SYSTEM_FILESYSTEM_MAX];
    size_t filesystem_count;
    char *executable; /* owned */
    bool is_executable_deleted;
    /* Files that are there and could not be read, and the last reason. */
    size_t unread_count;
    int unread_errno;
} bp_system;

void bp_system_release(bp_system *system);

/* Drops what is known of the process. */
void bp_system_forget_process(bp_system *system);

/* Appends system.json. */
bugpack_status bp_system_print(const bp_system *system, bp_buffer *out, bugpack_error *error);

#endif
