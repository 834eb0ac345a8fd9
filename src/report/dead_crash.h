/*
 * What a dead session's handler of fatal signals left (platform/crash_page.h), as crash.json.
 */
#ifndef BP_REPORT_DEAD_CRASH_H
#define BP_REPORT_DEAD_CRASH_H

#include "platform/crash_page.h"
#include "recorder/session_files.h"
#include "report/bundle.h"

typedef struct bp_dead_crash {
    bp_crash_page *page; /* validated; NULL: the session did not die of a signal that it caught */
    const char *reason;  /* why there is none; NULL: it had no handler */
    bool is_lost;        /* there should be one */
} bp_dead_crash;

/* Reads it from the session's directory. NO_MEMORY, or IO where it cannot be read just now. The
 * caller releases it. */
bugpack_status bp_dead_crash_read(int session_dir_fd, const bp_session_identity *dead,
                                  bp_dead_crash *ret_crash, bugpack_error *error);
void bp_dead_crash_release(bp_dead_crash *crash);

/* Adds the entry, or the line that says why it is not there; nothing for a session without a
 * handler. */
bugpack_status bp_dead_crash_add(const bp_dead_crash *crash, bp_bundle *bundle,
                                 bugpack_error *error);

/* Writes the document about a validated page, with the backtrace where one can be had; it is
 * truncated where memory or time for that was missing. `is_host`: nothing is loaded into this
 * process for it. NO_MEMORY, LIMIT of the writer. */
bugpack_status bp_dead_crash_print(const bp_crash_page *page, bool is_host, bugpack_writer *writer,
                                   bugpack_error *error);

#endif
