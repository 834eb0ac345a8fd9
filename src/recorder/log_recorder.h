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

#include "base/temp_file.h"
#include "ring/ring.h"

typedef struct bp_log_recorder bp_log_recorder;

/* A recorder that takes the ring over. Records below `level` are dropped. */
bugpack_status bp_log_recorder_new(bp_ring *ring, bugpack_level level,
                                   bp_log_recorder **ret_recorder, bugpack_error *error);
/* Frees the ring too. No other thread may be inside. NULL is fine. */
void bp_log_recorder_free(bp_log_recorder *recorder);

/* Gives the ring's memory back (bp_ring_retire), and wants no record from then on. Writers may be
 * inside, or come later. */
void bp_log_recorder_retire(bp_log_recorder *recorder);

/* Whether a record of this level would be kept: asked before a message is formatted. Any thread. */
bool bp_log_recorder_wants(const bp_log_recorder *recorder, bugpack_level level);

/* Changes the level while the session runs. Any thread. */
void bp_log_recorder_set_level(bp_log_recorder *recorder, bugpack_level level);

/*
 * Keeps one record of the calling thread. `channel` may be NULL. A message over
 * BUGPACK_LOG_MESSAGE_MAX_BYTES, or over what a small ring takes, is cut; `was_cut` says that the
 * caller cut it already. The thread's name may be BP_THREAD_NAME_STALE_NS old. Any thread.
 */
void bp_log_recorder_append(bp_log_recorder *recorder, bugpack_level level, const char *channel,
                            const void *message, size_t message_bytes, bool was_cut);

/* The ring, borrowed: to be copied when a report freezes it, and closed at the end. */
bp_ring *bp_log_recorder_ring(bp_log_recorder *recorder);

/*
 * Writes logs.jsonl from copied or salvaged records: one JSON object a line, in their order. Wall
 * times are monotonic times plus `wall_offset_ns`. One that is not a log record is passed over.
 */
bugpack_status bp_log_print(const bp_temp_file *records, uint64_t wall_offset_ns, bp_temp_file *out,
                            bugpack_error *error);

#endif
