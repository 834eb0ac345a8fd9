/*
 * The tags of a session. A set never changes: setting a tag makes a new one, so a job refers to the
 * tags of its trigger.
 */
#ifndef BP_REPORT_TAGS_H
#define BP_REPORT_TAGS_H

#include <stdatomic.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "base/lock.h"
#include "model/metadata.h"

typedef struct bp_tag_set {
    atomic_uint reference_count;
    size_t count;
    bp_tag tags[]; /* in the order of setting */
} bp_tag_set;

typedef struct bp_tags {
    bp_lock lock;
    bp_tag_set *current; /* NULL: none */
} bp_tags;

void bp_tags_init(bp_tags *tags);
void bp_tags_release(bp_tags *tags);

/* bugpack_set_tag, without the check of the session. */
bugpack_status bp_tags_set(bp_tags *tags, const char *key, const char *value, bugpack_error *error);

/* The tags now, with a reference; NULL for none. NULL gives NULL. */
bp_tag_set *bp_tags_hold(bp_tags *tags);
/* One reference more. NULL gives NULL. */
bp_tag_set *bp_tag_set_retain(bp_tag_set *set);
/* NULL is fine. */
void bp_tag_set_drop(bp_tag_set *set);

#endif
