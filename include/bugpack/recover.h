/*
 * Recovery: each session that died becomes a report of the kind `crash`.
 */
#ifndef BUGPACK_RECOVER_H
#define BUGPACK_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/report.h>

BUGPACK_BEGIN_DECLS

/* Selects the sessions to recover. 0 is the default of every field (bugpack/common.h). */
typedef struct bugpack_recover_options {
    size_t struct_size;
    /* Where the session directories are. NULL: in all directories that a session may choose by
     * itself (bugpack_options, recorder.dir; macOS: $TMPDIR/bugpack, where rings are in memory and
     * nothing is left). */
    const char *recorder_dir;
    /* Where the reports are written; NULL: where each session wrote its own. */
    const char *report_dir;
    /* Sessions of this app only; NULL: of any. */
    const char *app_name;
    /* metadata.json has the name of this machine also for a session that did not ask for it. */
    bool with_hostname;
    /* Called for each report, also one that failed; that session is tried again next time. */
    bugpack_report_callback *on_report;
    void *context; /* of on_report, which is called on the calling thread */
    /* No report is begun if it would leave the file system with fewer free bytes. Default 16 MiB;
     * BUGPACK_OFF: no check. */
    uint64_t min_free_bytes;
    /* As in bugpack_options. A session whose report is refused is kept for the next try. */
    bugpack_before_publish_callback *before_publish;
    void *before_publish_context;
    /* The largest zip, as limits.max_zip_bytes of bugpack_options. */
    uint64_t max_zip_bytes;
} bugpack_recover_options;

#define BUGPACK_RECOVER_OPTIONS_INIT BUGPACK_INIT(bugpack_recover_options)

/*
 * Writes a report for each dead session, and removes its directory. A running session is not
 * touched, nor one that somebody else is recovering: two calls at once give one report. It is a
 * success if there is no session. Blocks until all reports are written.
 *
 * A report fails, and its session is kept for the next try, if a part of it cannot be written or
 * read now: space, descriptors, memory. The report says what its files have lost. So that
 * sessions whose reports cannot be written do not fill a file system in memory, the oldest are
 * dropped beyond 16 of an app, or a quarter of the file system; the newest is always kept.
 *
 * bugpack_open does this by itself for its own app, in the background.
 *
 * Errors: INVALID (options), DENIED (recorder_dir is not this user's alone), UNSUPPORTED (no
 * directory is known), NO_MEMORY, LIMIT (over 1023 sessions in a directory), IO: recorder_dir does
 * not exist, or a directory or a session could not be looked at; all others were recovered. IO or
 * DENIED: report_dir cannot be used; nothing was done. Any thread.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_recover(const bugpack_recover_options *options,
                                                             bugpack_error *error);

BUGPACK_END_DECLS

#endif
