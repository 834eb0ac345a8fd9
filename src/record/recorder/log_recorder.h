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

#include "base/sink.h"
#include "base/temp_file.h"
#include "ring/ring.h"

typedef struct bp_log_recorder bp_log_recorder;

/* Takes ownership of the ring on success. Records below `level` are dropped. */
bugpack_status bp_log_recorder_new(bp_ring *ring, bugpack_level level,
                                   bp_log_recorder **ret_recorder, bugpack_error *error);

/* Closes the ring and refuses records from then on. Writers may be inside, or come later. */
void bp_log_recorder_close(bp_log_recorder *recorder);

/* Frees the ring too. No other thread may be inside. NULL is fine. */
void bp_log_recorder_free(bp_log_recorder *recorder);

/* True if a message of this level is worth formatting. Any thread. */
bool bp_log_recorder_wants(const bp_log_recorder *recorder, bugpack_level level);

/* Changes the level while the session runs. Any thread. */
void bp_log_recorder_set_level(bp_log_recorder *recorder, bugpack_level level);

/*
 * Records one message of the calling thread, which is `part` (bugpack/log.h) of its line.
 * `channel` may be NULL. A message over BUGPACK_LOG_MESSAGE_MAX_BYTES, or over the limit of a small
 * ring, is cut; BP_PART_WAS_CUT: the caller cut it already. The thread's name may be
 * BP_THREAD_NAME_STALE_NS old. Any thread.
 */
void bp_log_recorder_append(bp_log_recorder *recorder, bugpack_level level, const char *channel,
                            const void *message, size_t message_bytes, unsigned part);

/* A record of the log; its texts have no NUL, and are there during the call. */
typedef struct bp_log_text {
    const char *channel, *message;
    size_t channel_bytes, message_bytes;
    uint64_t sequence, monotonic_ns;
} bp_log_text;
typedef void bp_log_reader(void *context, const bp_log_text *line);

/* Gives `reader` what was logged since the last call, as bp_ring_follow does. Without memory the
 * same records come again. One thread for each follower. */
void bp_log_recorder_follow(bp_log_recorder *recorder, bp_ring_follower *follower, size_t max_bytes,
                            bp_log_reader *reader, void *context, uint64_t *ret_lost_count,
                            bool *ret_is_rest);

/*
 * Prints logs.jsonl from copied or recovered records: one JSON object a line, in their order.
 * Invalid records are skipped. NO_MEMORY, IO where not all of `records` can be read, or the sink's
 * error.
 */
bugpack_status bp_log_print(const bp_temp_file *records, uint64_t wall_offset_ns, bp_sink *sink,
                            void *context, bugpack_error *error);

#endif
