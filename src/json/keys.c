#include "json/keys.h"

#include <stdlib.h>

#include "base/id.h"
#include "json/string.h"

/* Up to this many keys, comparing each with each is faster than hashing and sorting. */
static const size_t few_keys = 8;

void bp_json_keys_release(bp_json_keys *keys) {
    free(keys->keys);
    *keys = (bp_json_keys){0};
}

bugpack_status bp_json_keys_add(bp_json_keys *keys, uint32_t offset) {
    if (keys->count == keys->capacity) {
        size_t capacity = keys->capacity == 0 ? 32 : keys->capacity * 2;
        bp_json_key *grown = NULL;
        if (capacity <= SIZE_MAX / sizeof *grown) { /* where size_t has 32 bits */
            grown = realloc(keys->keys, capacity * sizeof *grown);
        }
        if (grown == NULL) {
            return BUGPACK_ERR_NO_MEMORY;
        }
        keys->keys = grown;
        keys->capacity = capacity;
    }
    keys->keys[keys->count++] = (bp_json_key){.offset = offset};
    return BUGPACK_OK;
}

/* Compares two keys as decoded, whether or not they were written with escapes. */
static int compare_texts(const unsigned char *left, const unsigned char *right) {
    for (;;) {
        int32_t left_character = bp_json_next_character(&left);
        int32_t right_character = bp_json_next_character(&right);
        if (left_character != right_character) {
            return left_character < right_character ? -1 : 1;
        }
        if (left_character < 0) {
            return 0;
        }
    }
}

static const unsigned char *key_text(const unsigned char *text, bp_json_key key) {
    return text + key.offset + 1;
}

static int compare_keys(bp_json_key left, bp_json_key right, const unsigned char *text) {
    if (left.hash != right.hash) {
        return left.hash < right.hash ? -1 : 1;
    }
    int order = compare_texts(key_text(text, left), key_text(text, right));
    if (order != 0) {
        return order;
    }
    return left.offset < right.offset ? -1 : left.offset > right.offset;
}

static uint64_t new_seed(void) {
    char id[BP_ID_BYTES];
    bp_id_new(id);
    uint64_t seed = 1;
    for (size_t i = 0; i + 1 < sizeof id; i++) {
        seed = seed * 31 + (unsigned char)id[i];
    }
    return seed == 0 ? 1 : seed;
}

static uint32_t hash_key(const unsigned char *key, uint64_t seed) {
    uint64_t hash = seed;
    int32_t character;
    while ((character = bp_json_next_character(&key)) >= 0) {
        hash = (hash ^ (uint64_t)character) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

/* Restores the heap order below `root`: no key is larger than the one above it. */
static void sift_down(bp_json_key *keys, size_t root, size_t count, const unsigned char *text) {
    bp_json_key moving = keys[root];
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count && compare_keys(keys[child], keys[child + 1], text) < 0) {
            child++;
        }
        if (compare_keys(keys[child], moving, text) <= 0) {
            break;
        }
        keys[root] = keys[child];
        root = child;
    }
    keys[root] = moving;
}

/* Heap sort: in place, without recursion, and never worse than n log n; qsort promises none. */
static void sort_keys(bp_json_key *keys, size_t count, const unsigned char *text) {
    for (size_t root = count / 2; root-- > 0;) {
        sift_down(keys, root, count, text);
    }
    for (size_t last = count - 1; last > 0; last--) {
        bp_json_key largest = keys[0];
        keys[0] = keys[last];
        keys[last] = largest;
        sift_down(keys, 0, last, text);
    }
}

static bool find_among_few(const bp_json_key *keys, size_t count, const unsigned char *text,
                           uint32_t *ret_offset) {
    for (size_t later = 1; later < count; later++) {
        for (size_t earlier = 0; earlier < later; earlier++) {
            if (compare_texts(key_text(text, keys[earlier]), key_text(text, keys[later])) == 0) {
                *ret_offset = keys[later].offset;
                return true;
            }
        }
    }
    return false;
}

static bool find_among_many(bp_json_key *keys, size_t count, const unsigned char *text,
                            uint64_t seed, uint32_t *ret_offset) {
    for (size_t i = 0; i < count; i++) {
        keys[i].hash = hash_key(key_text(text, keys[i]), seed);
    }
    sort_keys(keys, count, text);
    bool found = false;
    for (size_t i = 1; i < count; i++) {
        /* Equal keys stand in the order of the text, so the second of a pair is the repetition. */
        bool repeats = keys[i - 1].hash == keys[i].hash &&
                       compare_texts(key_text(text, keys[i - 1]), key_text(text, keys[i])) == 0;
        if (repeats && (!found || keys[i].offset < *ret_offset)) {
            *ret_offset = keys[i].offset;
            found = true;
        }
    }
    return found;
}

bool bp_json_keys_end(bp_json_keys *keys, size_t first, const unsigned char *text,
                      uint32_t *ret_offset) {
    size_t count = keys->count - first;
    keys->count = first;
    if (count < 2) {
        return false;
    }
    if (count <= few_keys) {
        return find_among_few(keys->keys + first, count, text, ret_offset);
    }
    if (keys->seed == 0) {
        keys->seed = new_seed();
    }
    return find_among_many(keys->keys + first, count, text, keys->seed, ret_offset);
}
