/*
 * Passes bytes on in one direction, from a descriptor to a descriptor, and shows them to an
 * observer.
 */
#ifndef BP_RUN_PUMP_H
#define BP_RUN_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

/* Sees every byte once, in order, as soon as it is read. */
typedef void bp_run_pump_observer(void *context, const char *bytes, size_t byte_count);

/* The most bytes read and not yet written; then a slow reader slows the writer down. */
enum { BP_RUN_PUMP_BYTES = 128 * 1024 };

/* In the caller's storage; released with bp_run_pump_release. One thread. */
typedef struct bp_run_pump {
    int from_fd; /* does not block; -1 once it has ended */
    int to_fd;   /* `given_fd`, or our own open file of the same thing */
    int given_fd;
    bool may_block;      /* writing may wait, so write only when poll allows it */
    bool is_broken;      /* nobody reads any more: the bytes are dropped */
    bool is_drained;     /* the last read found nothing */
    size_t begin, end;   /* what is to be written */
    uint64_t lost_bytes; /* could not be written, while somebody may read */
    int lost_errno;      /* of the last of these writes */
    char *buffer;
    bp_run_pump_observer *observe;
    void *context;
} bp_run_pump;

/* `from_fd` stays the caller's to close. Errors: NO_MEMORY. */
bugpack_status bp_run_pump_init(bp_run_pump *pump, int from_fd, int to_fd,
                                bp_run_pump_observer *observe, void *context, bugpack_error *error);
void bp_run_pump_release(bp_run_pump *pump);

bool bp_run_pump_wants_to_read(const bp_run_pump *pump);
bool bp_run_pump_wants_to_write(const bp_run_pump *pump);

/* Reads what there is, at most `most_bytes` and what fits. Returns how much it was. */
size_t bp_run_pump_read(bp_run_pump *pump, size_t most_bytes);

/*
 * Writes what can be written without waiting; `is_ready`: poll has said that some can. Only a
 * reader that is gone ends the writing. After any other failure, as of a full disk, what was to be
 * written is counted as lost, and what comes later is tried again, as the command itself would.
 */
void bp_run_pump_write(bp_run_pump *pump, bool is_ready);

#endif
