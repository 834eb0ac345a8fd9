/*
 * Copies of what the sessions of another process keep in memory: their rings and small files, found
 * through the anchor (ring/anchor.h). Nothing is stopped, no file is opened, and nothing runs in
 * the process: it may hang, or be stopped. What is copied may be anything. Linux only.
 */
#ifndef BP_PROBE_SESSION_COPIES_H
#define BP_PROBE_SESSION_COPIES_H

#include <stdbool.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "base/cancel.h"
#include "base/temp_file.h"
#include "ring/anchor.h"

typedef struct bp_copied_file {
    uint32_t kind, number;                /* as in the anchor */
    char name[BP_ANCHOR_FILE_NAME_BYTES]; /* of a file; "" of a ring */
    bp_temp_file file;                    /* of a file */
    uint64_t base;                        /* of a ring: where it begins in `rings` */
} bp_copied_file;

/* Of one session. Starts zeroed. */
typedef struct bp_session_copies {
    bp_copied_file *items; /* owned */
    size_t count;
    bp_temp_file rings; /* all of them: a process may have thousands; valid if there are items */
    size_t ring_count;
    uint64_t rings_bytes; /* what they take in there */
    uint64_t used_bytes;  /* of the rings */
    size_t unread_count;  /* rings that changed too fast, or were closed meanwhile */
    bool is_clock_ours;   /* it is in our time namespace, so that its monotonic clock shows ours */
} bp_session_copies;

void bp_session_copies_release(bp_session_copies *copies);

/*
 * Copies the first session of a process into temporary files in `dir_fd`. Of a ring that is written
 * meanwhile, the copy has what was there when its copy began. It is a success, with counts of 0,
 * where there is no session, or where the process may not be read. NO_MEMORY, IO, and those of the
 * token. The caller releases the copies.
 */
bugpack_status bp_session_copies_take(pid_t pid, int dir_fd, const bp_cancel_token *token,
                                      bp_session_copies *ret_copies, bugpack_error *error);

#endif
