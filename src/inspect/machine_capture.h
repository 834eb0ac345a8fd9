/*
 * One counter of every thread in a host-threads.json, of schema 1 or 2.
 */
#ifndef BP_INSPECT_MACHINE_CAPTURE_H
#define BP_INSPECT_MACHINE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "base/sink.h"
#include "platform/machine_threads.h"

/* What threads are grouped by. */
typedef enum bp_machine_key {
    BP_MACHINE_BY_PROCESS,
    BP_MACHINE_BY_CGROUP,
    BP_MACHINE_BY_THREAD
} bp_machine_key;

/* A thread is the same in two captures of one boot if these three are. */
typedef struct bp_captured_id {
    uint64_t tgid, tid;
    bool has_start;
    uint64_t start_ticks;
} bp_captured_id;

typedef struct bp_machine_reading {
    bp_captured_id identity;
    size_t name_offset; /* of the group's name in `names`, with its NUL; "" if unknown */
    bool is_expected;   /* such a thread has this counter: a kernel thread has no memory */
    bool is_measured;
    uint64_t value;
} bp_machine_reading;

typedef struct bp_captured_host {
    bp_machine_reading *threads; /* ascending by identity */
    size_t count, capacity;
    bp_buffer names;
    bp_buffer groups; /* a document of its members `cgroups` and `pressure` */
    size_t measured_count;
    bool is_complete;     /* no thread was missed */
    char captured_at[40]; /* "" if unknown; captures of one clock order like these texts */
    char boot_id[40];     /* "" if unknown */
    bool has_uptime;
    uint64_t uptime_ticks; /* when it began, in the unit of start_ticks */
} bp_captured_host;

/*
 * Reads a capture as it is given. Errors: CORRUPT (says where or what), NO_MEMORY, those of what
 * gives it. The caller releases `ret_capture`, which is untouched on failure.
 */
bugpack_status bp_captured_host_read(const bp_giver *text, bp_machine_key key,
                                     bp_machine_counter counter, bp_captured_host *ret_capture,
                                     bugpack_error *error);
void bp_captured_host_release(bp_captured_host *capture);

/* As for qsort. One without a start comes before those of the same ids that have one. */
int bp_captured_id_compare(const bp_captured_id *one, const bp_captured_id *other);

#endif
