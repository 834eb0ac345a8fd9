/*
 * What a dead session's directory still holds, as if it had been frozen.
 */
#ifndef BP_RECORDER_RECOVERY_H
#define BP_RECORDER_RECOVERY_H

#include "recorder/session_dir.h"
#include "recorder/snapshot.h"

/* How a session names its files. `%u` is a channel's number. */
#define BP_RING_FILE_LOG "log.ring"
#define BP_RING_FILE_NOTIFICATIONS "notifications.ring"
#define BP_RING_FILE_HISTORY "history.ring"
#define BP_RING_FILE_TRAFFIC "traffic-%u.ring"
#define BP_RING_FILE_PINS "pins-%u.ring"
#define BP_RING_FILE_CHANNEL "channel-%u"

/*
 * Copies the rings in `session_dir_fd` into spools in `dir_fd`, with pread alone. A file that is
 * missing is a ring that was off; one that is damaged gives what is whole.
 */
void bp_recover_rings(int session_dir_fd, const bp_session_identity *identity, int dir_fd,
                      bp_snapshot *ret_snapshot);

#endif
