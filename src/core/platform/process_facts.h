/*
 * The facts of process.json.
 *
 * Every group can be absent: another user's process shows its command line but not its open files.
 * `denied` names what is absent, for the manifest.
 */
#ifndef BP_PLATFORM_PROCESS_FACTS_H
#define BP_PLATFORM_PROCESS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "platform/machine.h"
#include "platform/task.h"

/* A number that may not be known. */
typedef struct bp_known_uint {
    bool known;
    uint64_t value;
} bp_known_uint;

/* One resource limit; `unlimited` instead of the number where there is none. */
typedef struct bp_resource_limit {
    char name[32]; /* as the kernel calls it: "Max open files" */
    char unit[16]; /* "files", "bytes", …, "" */
    bool soft_unlimited, hard_unlimited;
    uint64_t soft, hard;
} bp_resource_limit;

/* A file mapped with execute permission: the executable or a shared object. */
typedef struct bp_loaded_object {
    char *path;        /* any bytes but NUL */
    uint64_t address;  /* where its lowest mapping begins */
    char build_id[65]; /* hexadecimal, "" when it has none or the file could not be read */
    bool deleted;      /* the file was replaced or removed since it was mapped */
} bp_loaded_object;

typedef struct bp_process_facts {
    pid_t pid;
    bp_known_uint parent_pid, uid, gid; /* the ids are the effective ones */
    char name[64];                      /* any bytes */
    char state;                         /* 'R', 'S', …, 0 when unknown */
    bool is_kernel_thread;
    bp_buffer command_line;        /* the arguments, each ended by NUL; empty for a kernel thread */
    char *executable;              /* NULL when unknown */
    char *working_directory;       /* NULL when unknown */
    bp_known_uint started_wall_ns; /* since 1970, exact to a clock tick */
    /* With the process id, these name the process for good: when it began, in clock ticks since the
     * boot, and the id of the boot, "" when unknown. */
    bp_known_uint start_ticks;
    char boot_id[BP_MACHINE_BOOT_ID_BYTES];
    bp_known_uint thread_count, fd_count;
    bp_known_uint user_thread_count;  /* of all processes of the user, near RLIMIT_NPROC alone */
    bp_known_uint map_count, map_max; /* its mappings of memory, and vm.max_map_count */
    bool has_aio; /* the kernel does asynchronous I/O for it (io_setup(2)), as far as is known */
    /* Of all threads; in another process, of those that are running now. */
    bp_known_uint voluntary_switches, involuntary_switches;
    bp_known_uint minor_faults, major_faults;
    bp_known_uint rss_kb, peak_rss_kb, swap_kb;
    bp_known_uint vm_size_kb, data_kb; /* what RLIMIT_AS and RLIMIT_DATA limit */
    /* Children that have ended and that nobody waited for; and the name that most of them have. */
    bp_known_uint zombie_count;
    char zombie_name[64];                    /* any bytes */
    bp_known_uint read_bytes, written_bytes; /* storage I/O */
    bp_known_uint read_chars, written_chars; /* through read(2) and write(2) */
    bp_known_uint read_calls, write_calls;
    char *cgroup; /* "/user.slice/…"; NULL when unknown */
    bool has_oom;
    int64_t oom_score, oom_score_adj;
    bp_resource_limit *limits;
    size_t limit_count;
    bp_loaded_object *objects; /* ascending by address */
    size_t object_count;
    bool objects_known;
    bool lacks_build_ids; /* some could not be read for want of something, as `denied` says */
    /* A clause about what could not be read, and why: "open files and loaded objects: Permission
     * denied"; "" when everything was read. */
    char denied[256];
    bool is_refused; /* some of it for want of permission */
} bp_process_facts;

void bp_process_facts_release(bp_process_facts *facts);

/*
 * Reads all facts of the task. Fails as a whole only with NO_PROCESS, NO_MEMORY or UNSUPPORTED.
 * Waits up to 100 ms for a process that is within execve(2) or exiting, as it has no arguments
 * then. Bounds: 1 MiB of command line, 4,096 objects.
 */
bugpack_status bp_process_facts_read(bp_task *task, bp_process_facts *ret_facts,
                                     bugpack_error *error);

/*
 * For the readers of facts: notes in `denied` that `what` could not be read. Things that fail for
 * the same reason as the one before share it: "open files, loaded objects: Permission denied".
 * ENOENT and ESRCH are no denial, and are not noted.
 */
void bp_facts_deny(bp_process_facts *facts, const char *what, int system_errno);

/* The same with a reason in words. */
void bp_facts_note(bp_process_facts *facts, const char *what, const char *reason);

#endif
