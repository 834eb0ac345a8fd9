/*
 * The session of another process, which a report is about: its rings are read in their files, so
 * that it need not answer.
 */
#ifndef BP_REPORT_HOSTED_H
#define BP_REPORT_HOSTED_H

#include "model/metadata.h"
#include "recorder/snapshot.h"
#include "report/redaction.h"

/* Facts about it beside its rings. */
typedef struct bp_hosted {
    bp_session_identity identity;
    bp_redaction *redaction; /* its rules and ours */
} bp_hosted;

/* NULL is fine. */
void bp_hosted_free(bp_hosted *hosted);

/* Fills in its session and, where the app of the report has no name but that of the process, its
 * app. Texts are borrowed. */
void bp_hosted_describe(const bp_hosted *hosted, bp_metadata *metadata);

/*
 * Copies the rings of the process `pid`, which may write meanwhile, into temporary files in
 * `dir_fd`. It is a success, with NULL, where the process has no session with files, or may not be
 * read; the log of the snapshot says so where it has one in memory. A ring that cannot be copied,
 * or not before the token is due, has its reason in its part. `ours` are the rules of the report.
 * Errors: NO_MEMORY, IO, INVALID (its rules). The snapshot is to be released in any case.
 */
bugpack_status bp_hosted_take(pid_t pid, const bp_redaction *ours, int dir_fd,
                              const bp_cancel_token *token, bp_snapshot *snapshot,
                              bp_hosted **ret_hosted, bugpack_error *error);

#endif
