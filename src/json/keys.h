/*
 * Finds a key that an object has twice, whatever a hostile text does to make that slow.
 *
 * An object's keys are only noted while it is read, eight bytes each, and looked at when it ends:
 * a few are compared with each other, many are sorted by a hash that is seeded at random, and by
 * their text where hashes are equal. So the time is n log n even for a text that was made so that
 * all its hashes collide, and nothing recurses.
 */
#ifndef BP_JSON_KEYS_H
#define BP_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

/* One key of an object that is still open. */
typedef struct bp_json_key {
    uint32_t hash;
    uint32_t offset; /* of its opening quote in the text */
} bp_json_key;

/* The keys of all objects that are open now, outermost first. All zero is empty. */
typedef struct bp_json_keys {
    bp_json_key *keys;
    size_t count, capacity;
    uint64_t seed; /* 0 until it is needed */
} bp_json_keys;

void bp_json_keys_release(bp_json_keys *keys);

/* Notes one more key. NO_MEMORY when there is no room for it. */
bugpack_status bp_json_keys_add(bp_json_keys *keys, uint32_t offset);

/*
 * Ends the innermost object, whose keys are those from `first` on, and forgets them. When two of
 * them are equal once their escapes are decoded, returns true, with the offset of the earliest key
 * in the text that was there before. `text` holds only checked strings at the offsets.
 */
bool bp_json_keys_end(bp_json_keys *keys, size_t first, const unsigned char *text,
                      uint32_t *ret_offset);

#endif
