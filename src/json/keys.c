#include "json/keys.h"

#include <stdlib.h>
#include <string.h>

/* XXH3, inlined; no library is linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "json/literal.h"

enum { slots_min = 32 };

void bp_json_keys_release(bp_json_keys *keys) {
    free(keys->keys);
    free(keys->slots);
    *keys = (bp_json_keys){0};
}

static bool hash_decoded(const unsigned char *text, size_t byte_count, uint64_t seed,
                         XXH128_hash_t *ret_hash) {
    char *decoded = malloc(byte_count); /* no character becomes longer */
    size_t length = 0;
    int32_t character;
    if (decoded == NULL) {
        return false;
    }
    text++;
    while ((character = bp_json_next_character(&text)) >= 0) {
        length += bp_utf8_put((uint32_t)character, decoded + length);
    }
    *ret_hash = XXH3_128bits_withSeed(decoded, length, seed);
    free(decoded);
    return true;
}

/* However the key was written: with escapes or without. False without memory. */
static bool hash_key(const unsigned char *text, size_t byte_count, uint64_t seed,
                     bp_json_key *ret_key) {
    XXH128_hash_t hash;
    if (memchr(text, '\\', byte_count) == NULL) {
        hash = XXH3_128bits_withSeed(text + 1, byte_count - 2, seed);
    } else if (!hash_decoded(text, byte_count, seed, &hash)) {
        return false;
    }
    *ret_key = (bp_json_key){hash.low64, hash.high64};
    return true;
}

/* The slot of a key, or the free one where it belongs. */
static size_t find_slot(const bp_json_keys *keys, const bp_json_key *key) {
    size_t at = (size_t)key->low & (keys->slot_count - 1);
    while (keys->slots[at] != 0) {
        const bp_json_key *other = &keys->keys[keys->slots[at] - 1];
        if (other->low == key->low && other->high == key->high) {
            break;
        }
        at = (at + 1) & (keys->slot_count - 1);
    }
    return at;
}

/* Keeps half of the slots free. They are filled in the order of the keys, as before. */
static bool reserve(bp_json_keys *keys) {
    if (!bp_array_reserve(&keys->keys, keys->count, &keys->capacity)) {
        return false;
    }
    if (2 * (keys->count + 1) <= keys->slot_count) {
        return true;
    }
    size_t slot_count = keys->slot_count > 0 ? 2 * keys->slot_count : slots_min;
    uint32_t *slots = keys->count < UINT32_MAX / 4 ? calloc(slot_count, sizeof *slots) : NULL;
    if (slots == NULL) {
        return false;
    }
    if (keys->seed == 0) {
        keys->seed = bp_clock_monotonic_ns() ^ (uint64_t)(uintptr_t)slots << 20;
    }
    free(keys->slots);
    keys->slots = slots;
    keys->slot_count = slot_count;
    for (size_t i = 0; i < keys->count; i++) {
        slots[find_slot(keys, &keys->keys[i])] = (uint32_t)(i + 1);
    }
    return true;
}

bugpack_status bp_json_keys_add(bp_json_keys *keys, size_t first, const void *text,
                                size_t byte_count, bool *ret_is_repeated) {
    static const uint64_t spread = 0x9E3779B97F4A7C15;
    bp_json_key key;
    /* No two objects that are open begin at the same place. */
    if (!reserve(keys) || !hash_key(text, byte_count, keys->seed + first * spread, &key)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    size_t slot = find_slot(keys, &key);
    *ret_is_repeated = keys->slots[slot] != 0;
    if (!*ret_is_repeated) {
        keys->keys[keys->count++] = key;
        keys->slots[slot] = (uint32_t)keys->count;
    }
    return BUGPACK_OK;
}

/* The newest first: then no slot behind a freed one was passed over because of it. */
void bp_json_keys_end(bp_json_keys *keys, size_t first) {
    while (keys->count > first) {
        keys->count--;
        keys->slots[find_slot(keys, &keys->keys[keys->count])] = 0;
    }
}
