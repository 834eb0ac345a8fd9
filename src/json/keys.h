/*
 * Finds a key that an object has twice, in constant time for each key, also of a hostile text.
 *
 * A key is a hash of its characters by a seed that nobody outside knows, in a table of the objects
 * that are open: the text itself may be gone by the time that the key comes again.
 */
#ifndef BP_JSON_KEYS_H
#define BP_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

/* Equal for equal keys of one object, and with 128 bits for no others. */
typedef struct bp_json_key {
    uint64_t low, high;
} bp_json_key;

/* The keys of all objects that are open now, outermost first. All zero is empty. */
typedef struct bp_json_keys {
    bp_json_key *keys;
    size_t count, capacity;
    uint32_t *slots; /* places in `keys`, from 1, by hash; 0 is free */
    size_t slot_count;
    uint64_t seed;
} bp_json_keys;

void bp_json_keys_release(bp_json_keys *keys);

/*
 * Adds a key, a checked string of `byte_count` bytes with its quotes, to the innermost object,
 * whose keys are those from `first` on. `ret_is_repeated`: it was there before, and was not added.
 * NO_MEMORY when there is no space for it.
 */
bugpack_status bp_json_keys_add(bp_json_keys *keys, size_t first, const void *text,
                                size_t byte_count, bool *ret_is_repeated);

/* Removes the keys from `first` on, which are those of the innermost object. */
void bp_json_keys_end(bp_json_keys *keys, size_t first);

#endif
