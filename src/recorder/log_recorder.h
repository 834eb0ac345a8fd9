/*
 * The log: records into a ring on the host's threads, logs.jsonl out of it on ours.
 */
#ifndef BP_RECORDER_LOG_RECORDER_H
#define BP_RECORDER_LOG_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/log.h>

#include "base/buffer.h"
#include "ring/ring.h"

typedef struct bp_log_recorder bp_log_recorder;

/* A recorder whose ring has `capacity_bytes`. Records below `level` are dropped. */
bugpack_status bp_log_recorder_new(size_t capacity_bytes, bugpack_level level,
                                   bp_log_recorder **ret_recorder, bugpack_error *error);
void bp_log_recorder_free(bp_log_recorder *recorder);

/* Whether a record of this level would be kept: asked before a message is formatted. Any thread. */
bool bp_log_recorder_wants(const bp_log_recorder *recorder, bugpack_level level);

/*
 * Keeps one record of the calling thread. `channel` may be NULL. A message over
 * BUGPACK_LOG_MESSAGE_MAX_BYTES, or over what a small ring takes, is cut; `was_cut` says that the
 * caller cut it already. Any thread.
 */
void bp_log_recorder_append(bp_log_recorder *recorder, bugpack_level level, const char *channel,
                            const void *message, size_t message_bytes, bool was_cut);

/* The instant now, for a view that holds nothing later. Any thread. */
uint64_t bp_log_recorder_mark(bp_log_recorder *recorder);

/* What a written log covers. */
typedef struct bp_log_extent {
    bp_ring_view view;
    uint64_t from_wall_ns; /* of the oldest record; 0 when there is none */
    uint64_t to_wall_ns;   /* of the newest record */
} bp_log_extent;

/* Appends logs.jsonl: the records up to `mark`, oldest first, one JSON object a line. Any thread.
 */
bugpack_status bp_log_recorder_print(bp_log_recorder *recorder, uint64_t mark, bp_buffer *out,
                                     bp_log_extent *ret_extent, bugpack_error *error);

#endif
