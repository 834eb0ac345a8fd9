#include "redact/tag.h"

#include <stdio.h>
#include <string.h>

#include "base/id.h"

void bp_tag_key_new(bp_tag_key *ret_key) {
    ret_key->is_there = bp_random_bytes(ret_key->words, sizeof ret_key->words);
}

void bp_tag_key_clear(bp_tag_key *key) {
    volatile uint64_t *words = key->words; /* or the compiler leaves the stores out */
    words[0] = words[1] = 0;
    key->is_there = false;
}

static uint64_t rotate(uint64_t word, unsigned count) {
    return word << count | word >> (64 - count);
}

static void mix(uint64_t v[4], unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

/* Up to eight bytes, the first one lowest. */
static uint64_t load(const unsigned char *bytes, size_t byte_count) {
    uint64_t word = 0;
    for (size_t i = 0; i < byte_count; i++) {
        word |= (uint64_t)bytes[i] << (8 * i);
    }
    return word;
}

uint64_t bp_tag_hash(const bp_tag_key *key, const void *bytes, size_t byte_count) {
    const unsigned char *next = bytes;
    uint64_t v[4] = {key->words[0] ^ 0x736F6D6570736575u, key->words[1] ^ 0x646F72616E646F6Du,
                     key->words[0] ^ 0x6C7967656E657261u, key->words[1] ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)byte_count << 56;
    for (; byte_count >= 8; next += 8, byte_count -= 8) {
        uint64_t word = load(next, 8);
        v[3] ^= word;
        mix(v, 2);
        v[0] ^= word;
    }
    last |= load(next, byte_count);
    v[3] ^= last;
    mix(v, 2);
    v[0] ^= last;
    v[2] ^= 0xFF;
    mix(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

bool bp_tag_begins(const void *text, size_t byte_count) {
    size_t length = sizeof BP_TAG_PREFIX - 1;
    return byte_count >= length && memcmp(text, BP_TAG_PREFIX, length) == 0;
}

size_t bp_tag_print(const bp_tag_key *key, const char *rule, uint64_t hash,
                    char ret_tag[BP_TAG_BYTES]) {
    int length = key->is_there ? snprintf(ret_tag, BP_TAG_BYTES, BP_TAG_PREFIX "%s-%012llx", rule,
                                          (unsigned long long)(hash >> 16))
                               : snprintf(ret_tag, BP_TAG_BYTES, BP_TAG_PREFIX "%s", rule);
    return (size_t)length;
}
