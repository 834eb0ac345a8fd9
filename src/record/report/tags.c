#include "report/tags.h"

#include <stdlib.h>
#include <string.h>

#include <bugpack/session.h>

#include "base/status.h"
#include "base/utf8.h"

void bp_tags_init(bp_tags *tags) {
    *tags = (bp_tags){.current = NULL};
    bp_lock_init(&tags->lock, BP_LOCK_TAGS);
}

void bp_tags_release(bp_tags *tags) {
    bp_tag_set_drop(tags->current);
    bp_lock_destroy(&tags->lock);
}

/* A copy of `from` without `key`, with room for one more; NULL without memory. */
static bp_tag_set *copy_without(const bp_tag_set *from, const char *key) {
    size_t count = from == NULL ? 0 : from->count;
    bp_tag_set *set = calloc(1, sizeof *set + (count + 1) * sizeof set->tags[0]);
    if (set != NULL) {
        atomic_init(&set->reference_count, 1);
        for (size_t i = 0; i < count; i++) {
            if (strcmp(from->tags[i].key, key) != 0) {
                set->tags[set->count++] = from->tags[i];
            }
        }
    }
    return set;
}

bugpack_status bp_tags_set(bp_tags *tags, const char *key, const char *value,
                           bugpack_error *error) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "_.-";
    bugpack_status status = bp_check_text("key", key, 1, BUGPACK_TAG_KEY_MAX_BYTES, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (key[strspn(key, allowed)] != '\0') {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "key \"%s\" has a character that is not one of A-Z a-z 0-9 _ . -", key);
    }
    bp_lock_acquire(&tags->lock);
    bp_tag_set *old = tags->current;
    bp_tag_set *set = copy_without(old, key);
    if (set == NULL) {
        status = bp_fail_memory(error, "set a tag");
    } else if (value != NULL && set->count == BUGPACK_TAGS_MAX) {
        status = bp_fail(error, BUGPACK_ERR_LIMIT,
                         "cannot set tag \"%s\": a session has at most %d", key, BUGPACK_TAGS_MAX);
    } else {
        if (value != NULL) {
            bp_tag *tag = &set->tags[set->count++];
            memcpy(tag->key, key, strlen(key));
            /* With some bytes over the limit, so that the cut sees whether it would split a
             * character. */
            size_t value_bytes = strnlen(value, BUGPACK_TAG_VALUE_MAX_BYTES + 4);
            memcpy(tag->value, value, bp_utf8_cut(value, value_bytes, BUGPACK_TAG_VALUE_MAX_BYTES));
        }
        tags->current = set;
        set = old;
    }
    bp_lock_release(&tags->lock);
    bp_tag_set_drop(set);
    return status;
}

bp_tag_set *bp_tags_hold(bp_tags *tags) {
    if (tags == NULL) {
        return NULL;
    }
    bp_lock_acquire(&tags->lock);
    bp_tag_set *set = bp_tag_set_retain(tags->current);
    bp_lock_release(&tags->lock);
    return set;
}

bp_tag_set *bp_tag_set_retain(bp_tag_set *set) {
    if (set != NULL) {
        (void)atomic_fetch_add_explicit(&set->reference_count, 1, memory_order_relaxed);
    }
    return set;
}

void bp_tag_set_drop(bp_tag_set *set) {
    if (set != NULL &&
        atomic_fetch_sub_explicit(&set->reference_count, 1, memory_order_acq_rel) == 1) {
        free(set);
    }
}
