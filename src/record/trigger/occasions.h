/*
 * What has happened of one kind, by key, and when it may lead to another report: for all triggers
 * but that of gaps.
 */
#ifndef BP_TRIGGER_OCCASIONS_H
#define BP_TRIGGER_OCCASIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/log.h>

#include "base/lock.h"
#include "report/config.h"
#include "report/trigger_list.h"
#include "trigger/trigger.h"

/* One pause for all keys. Strings are borrowed. */
typedef struct bp_occasions_rule {
    bp_report_kind kind;
    bool has_no_keys; /* one row, of the key "" */
    bp_report_rate rate;
    const char *cooldown_reason; /* why there is no report; not NULL with a cool-down */
    const char *count_reason;    /* likewise, with a bound of the number */
} bp_occasions_rule;

/* The rows of the manifest: one for each of the first 64 keys, and one for all further ones. */
enum { BP_OCCASIONS_ROW_MAX = 64 + 1 };

/* The first member of a trigger with occasions. The context is for others, the rest is private. */
typedef struct bp_occasions {
    const bp_report_context *context;
    bp_occasions_rule rule;
    bp_lock lock; /* of what follows */
    unsigned pending_count;
    uint64_t report_count;     /* written */
    uint64_t written_ns;       /* monotonic: when the last one was */
    uint64_t suppressed_count; /* that no written report lists */
    size_t row_count;
    struct {
        char key[BUGPACK_CHANNEL_MAX_BYTES + 1]; /* "" for the row of all further ones */
        bp_trigger_entry entry;
    } rows[BP_OCCASIONS_ROW_MAX];
} bp_occasions;

/* Makes an object of `object_bytes`, which is 0 beyond that part. NULL without memory. */
void *bp_occasions_new(size_t object_bytes, const bp_report_context *context,
                       const bp_occasions_rule *rule, bugpack_error *error);
void bp_occasions_free(bp_occasions *occasions);

/*
 * Counts an occasion and says whether it leads to a report, which then is pending. A pending report
 * suppresses others as a written one does; when it fails, no cool-down has begun.
 * `ret_suppressed_count`: how many had none since the last report. Any thread, as all of these.
 */
bool bp_occasions_begin(bp_occasions *occasions, const char *key, uint64_t *ret_suppressed_count);

/* A pending report has ended as `status` says, and lists `listed_count` suppressed ones. */
void bp_occasions_end(bp_occasions *occasions, const char *key, uint64_t listed_count,
                      bugpack_status status);

/* The duration of the key's last one. */
void bp_occasions_note_duration(bp_occasions *occasions, const char *key, uint64_t duration_ns);

/* As bp_trigger has them, for such an object. */
bp_trigger_note *bp_occasions_note(void *trigger);
bugpack_status bp_occasions_list(void *trigger, const bp_trigger_note *noted, const bp_job *job,
                                 bp_trigger_list *list, bugpack_error *error);

#endif
