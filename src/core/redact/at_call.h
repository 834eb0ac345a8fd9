/*
 * Redaction where a text is recorded, on the host's threads, so that no ring holds a secret.
 *
 * A text without a keyword costs one pass of the automaton and no lock. Others take the lock of one
 * of a few redactors, the same one for all texts of a thread.
 */
#ifndef BP_REDACT_AT_CALL_H
#define BP_REDACT_AT_CALL_H

#include "base/entry_guard.h"
#include "redact/redactor.h"
#include "redact/tag.h"

typedef struct bp_at_call bp_at_call;

/* Without rules yet: texts are not let through. `owner` is only compared. NO_MEMORY. */
bugpack_status bp_at_call_new(const void *owner, bp_at_call **ret_at_call, bugpack_error *error);

/* Applies this set from now on, and retains it. LIMIT after the 32nd. Any thread. */
bugpack_status bp_at_call_use(bp_at_call *at_call, bp_rule_set *set, bugpack_error *error);

/* The key of its tags, for reports that have the same. */
const bp_tag_key *bp_at_call_key(const bp_at_call *at_call);

/* Lets no text through any more, waits for those inside, and frees all but what late calls look at.
 * NULL is fine. */
void bp_at_call_close(bp_at_call *at_call);
/* Nobody may be inside. NULL is fine. */
void bp_at_call_free(bp_at_call *at_call);

/* A text without its secrets, on its caller's stack. */
typedef struct bp_clean_text {
    const void *bytes;
    size_t byte_count;
    bp_lock *lock; /* NULL: the text is as it was */
    bp_guard_entry entry;
} bp_clean_text;

/*
 * Takes the secrets out of a text that the calling thread records on `channel` (NULL for none), and
 * that is `part` of its line. False when it is closed: record nothing. Else an end follows, on the
 * same thread. Where there is no memory for it, the whole text is replaced.
 */
bool bp_at_call_begin(bp_at_call *at_call, uint64_t thread_id, const char *channel, unsigned part,
                      const void *bytes, size_t byte_count, bp_clean_text *ret_text);
void bp_at_call_end(bp_clean_text *text);

#endif
