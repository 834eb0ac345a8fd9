/*
 * What was recorded up to one instant, from a running session's rings or a dead one's files. The
 * same artefacts are written from both.
 */
#ifndef BP_RECORDER_SNAPSHOT_H
#define BP_RECORDER_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/traffic.h>

#include "base/temp_file.h"
#include "recorder/session_files.h"
#include "recorder/traffic.h"
#include "ring/ring.h"

/* The records of one ring, or of the rings of all channels. */
typedef struct bp_snapshot_part {
    bool is_on;          /* false: this session has no such ring */
    bugpack_error error; /* status OK: the records are complete; the first of a channel */
    bp_temp_file records;
    bp_ring_view view;     /* of the one ring */
    char loss_reason[256]; /* why it would not outlive the host; "" when it would */
} bp_snapshot_part;

typedef struct bp_snapshot {
    const bp_cancel_token *token; /* borrowed; ends writing from it early; NULL: none */
    uint64_t wall_offset_ns;      /* wall time = monotonic time + this */
    bool is_recovered;            /* of a dead session: each ring has its line in the manifest */
    /* Why the newest records may be missing: rings are not synced, and the machine was restarted.
     * NULL: it was not. */
    const char *restart;
    bp_snapshot_part parts[BP_RING_KIND_TRAFFIC + 1]; /* by bp_ring_kind, which begins at 1 */
    bp_traffic_snapshot *channels;                    /* of the traffic; NULL: none */
    size_t channel_count, channel_capacity;
} bp_snapshot;

/* One without records. */
void bp_snapshot_init(bp_snapshot *snapshot, const bp_cancel_token *token, uint64_t wall_offset_ns);

/* Makes room for the next channel, and the file of all at the first. NULL with the part's error. */
bp_traffic_snapshot *bp_snapshot_next_channel(bp_snapshot *snapshot, int dir_fd);

void bp_snapshot_release(bp_snapshot *snapshot);

/* The bytes in its temporary files, which are open. */
uint64_t bp_snapshot_bytes(const bp_snapshot *snapshot);

/* True if every ring could be copied. */
bool bp_snapshot_is_whole(const bp_snapshot *snapshot);

/* The monotonic time of its newest record; 0: it has none. */
uint64_t bp_snapshot_newest_ns(const bp_snapshot *snapshot);

/* The number of descriptors that it holds. */
unsigned bp_snapshot_fds(const bp_snapshot *snapshot);

/* True if the host has closed one of its files. */
bool bp_snapshot_is_lost(const bp_snapshot *snapshot);

/* The bytes of a copy of a dead session's rings; 0 where nothing can be read. */
uint64_t bp_recover_used_bytes(int session_fd);

/*
 * Copies the rings of a session, whose directory is `session_fd`, into temporary files in `dir_fd`,
 * with pread alone. A missing file is a ring that was off. Of a damaged one the whole records are
 * recovered; its view, or the error CORRUPT of its part, says so.
 *
 * `is_alive`: its process may write meanwhile, be stopped, or hang. Of each ring the copy has what
 * was there when it began. A ring in memory cannot be read: its part has the error UNSUPPORTED.
 *
 * Fails with what may pass: space, descriptors, memory, and what the token says (NULL: none). The
 * snapshot is to be released in any case.
 */
bugpack_status bp_recover_rings(int session_fd, const bp_session_identity *identity, bool is_alive,
                                int dir_fd, const bp_cancel_token *token, bp_snapshot *ret_snapshot,
                                bugpack_error *error);

#endif
