/*
 * A dead session's directory, read as a snapshot.
 */
#ifndef BP_RECORDER_RECOVERY_H
#define BP_RECORDER_RECOVERY_H

#include "recorder/session_dir.h"
#include "recorder/snapshot.h"

/*
 * Copies the rings in `session_dir_fd` into temporary files in `dir_fd`, with pread alone. A
 * missing file is a ring that was off; of a damaged one the whole records are recovered.
 */
void bp_recover_rings(int session_dir_fd, const bp_session_identity *identity, int dir_fd,
                      bp_snapshot *ret_snapshot);

#endif
