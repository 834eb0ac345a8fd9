/*
 * The session of the process that a report is about, if that process embeds bugpack: its rings are
 * read in its memory, so that it need not answer.
 */
#ifndef BP_REPORT_HOSTED_H
#define BP_REPORT_HOSTED_H

#include "model/metadata.h"
#include "recorder/snapshot.h"
#include "report/redaction.h"

/* What is known of it beside its rings. */
typedef struct bp_hosted {
    bp_session_identity identity;
    bp_redaction *redaction; /* its rules and ours */
    bool had_before_write;   /* its callback cannot be called here */
} bp_hosted;

/* NULL is fine. */
void bp_hosted_free(bp_hosted *hosted);

/* Fills in its session and, where the app of the report has no name but that of the process, its
 * app. Texts are borrowed. */
void bp_hosted_describe(const bp_hosted *hosted, bp_metadata *metadata);

/*
 * Copies the rings of the process `pid` into temporary files in `dir_fd`, and recovers the records
 * as those of a dead session. It is a success, with NULL, where the process has no session, or may
 * not be read. `ours` are the rules of the report. Errors: NO_MEMORY, IO, INVALID (its rules), and
 * those of the token. The snapshot is to be released in any case.
 */
bugpack_status bp_hosted_take(pid_t pid, const bp_redaction *ours, int dir_fd,
                              const bp_cancel_token *token, bp_snapshot *snapshot,
                              bp_hosted **ret_hosted, bugpack_error *error);

#endif
