/*
 * The redaction rules of a session: the built-in ones and the host's. They are compiled when a
 * report needs them, on the thread that writes it.
 */
#ifndef BP_REPORT_REDACTION_H
#define BP_REPORT_REDACTION_H

#include <bugpack/error.h>

#include "recorder/recorder.h"
#include "redact/at_call.h"
#include "redact/rule_set.h"

/* The most texts of rules of a session. */
#define BP_REDACTION_TEXTS_MAX 16

typedef struct bp_redaction bp_redaction;

/* `recorder` is borrowed: its directory gets what a recovery by another process has to know. */
bugpack_status bp_redaction_new(bool is_off, bp_recorder *recorder, bp_redaction **ret_redaction,
                                bugpack_error *error);
/* NULL is fine. */
void bp_redaction_free(bp_redaction *redaction);

/* Applies the rules where something is recorded, too; those that are added later as well. Borrowed.
 * Reports get its tags. Once, before the first report. NO_MEMORY. */
bugpack_status bp_redaction_use_at_call(bp_redaction *redaction, bp_at_call *at_call,
                                        bugpack_error *error);

/* Loads the rules that another session has, or had before it died, and those of `with` (NULL:
 * none), which then says whether redaction is off. INVALID where they cannot be understood. */
bugpack_status bp_redaction_load(int dir_fd, const bp_redaction *with, bp_redaction **ret_redaction,
                                 bugpack_error *error);

/* Adds rules (docs/REDACTION.md) for all reports that are assembled from now on. INVALID with the
 * line, LIMIT, NO_MEMORY. Any thread. */
bugpack_status bp_redaction_add(bp_redaction *redaction, const char *name, const char *text,
                                size_t byte_count, bugpack_error *error);

/* The rules now, with a reference for bp_rule_set_drop, or NULL where redaction is off. NO_MEMORY.
 * Any thread. */
bugpack_status bp_redaction_hold(bp_redaction *redaction, bp_rule_set **ret_set,
                                 bugpack_error *error);

/* The key of the tags of all reports, borrowed; NULL: each has its own. */
const bp_tag_key *bp_redaction_key(const bp_redaction *redaction);

#endif
