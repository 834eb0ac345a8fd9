/*
 * What a dead session's directory still holds, as if it had been frozen.
 */
#ifndef BP_RECORDER_SALVAGE_H
#define BP_RECORDER_SALVAGE_H

#include "recorder/frozen.h"
#include "recorder/home.h"

/* How a session names its files. `%u` is a channel's number. */
#define BP_RING_FILE_LOG "log.ring"
#define BP_RING_FILE_NOTIFICATIONS "notifications.ring"
#define BP_RING_FILE_HISTORY "history.ring"
#define BP_RING_FILE_TRAFFIC "traffic-%u.ring"
#define BP_RING_FILE_PINS "pins-%u.ring"
#define BP_RING_FILE_CHANNEL "channel-%u"

/*
 * Copies the rings in `home_fd` into spools in `dir_fd`, with pread alone. A file that is missing
 * is a ring that was off; one that is damaged gives what is whole.
 */
void bp_salvage(int home_fd, const bp_home_identity *identity, int dir_fd, bp_frozen *ret_frozen);

#endif
