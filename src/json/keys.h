/*
 * Finds a key that an object has twice, in n log n time also for a hostile text.
 *
 * While an object is open its keys are only listed. They are sorted and compared when it ends.
 */
#ifndef BP_JSON_KEYS_H
#define BP_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

typedef struct bp_json_key {
    size_t offset; /* of its opening quote in the text */
    const unsigned char *text;
} bp_json_key;

/* The keys of all objects that are open now, outermost first. All zero is empty. */
typedef struct bp_json_keys {
    bp_json_key *keys;
    size_t count, capacity;
} bp_json_keys;

void bp_json_keys_release(bp_json_keys *keys);

/* Lists one more key. NO_MEMORY when there is no space for it. */
bugpack_status bp_json_keys_add(bp_json_keys *keys, size_t offset);

/*
 * Removes the keys from `first` on, which are those of the innermost object. Returns true when two
 * of them are equal once their escapes are decoded, with the offset of the earliest repetition.
 * `text` holds checked strings at the offsets.
 */
bool bp_json_keys_end(bp_json_keys *keys, size_t first, const void *text, size_t *ret_offset);

#endif
