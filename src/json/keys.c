#include "json/keys.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"
#include "json/literal.h"

void bp_json_keys_release(bp_json_keys *keys) {
    free(keys->keys);
    *keys = (bp_json_keys){0};
}

bugpack_status bp_json_keys_add(bp_json_keys *keys, size_t offset) {
    if (!bp_array_reserve(&keys->keys, keys->count, &keys->capacity)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    keys->keys[keys->count++] = (bp_json_key){.offset = offset};
    return BUGPACK_OK;
}

/* Compares two keys as decoded, whether or not they were written with escapes. */
static int compare_texts(const unsigned char *left, const unsigned char *right) {
    while (*left == *right && *left != '"' && *left != '\\') {
        left++;
        right++;
    }
    /* UTF-8 sorts by its bytes as by its characters, also from inside a sequence. */
    if (*left >= 0x80 && *right >= 0x80) {
        return *left < *right ? -1 : 1;
    }
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

static int compare_keys(const void *left, const void *right) {
    const bp_json_key *one = left;
    const bp_json_key *other = right;
    int difference = compare_texts(one->text, other->text);
    return difference != 0 ? difference
                           : (one->offset > other->offset) - (one->offset < other->offset);
}

bool bp_json_keys_end(bp_json_keys *keys, size_t first, const void *text, size_t *ret_offset) {
    size_t count = keys->count - first;
    bool found = false;
    keys->count = first;
    if (count < 2) {
        return false;
    }
    bp_json_key *own = keys->keys + first;
    for (size_t i = 0; i < count; i++) {
        own[i].text = (const unsigned char *)text + own[i].offset + 1;
    }
    /* A merge sort in glibc; other C libraries bound their worst case too. */
    qsort(own, count, sizeof *own, compare_keys);
    for (size_t i = 1; i < count; i++) {
        /* Equal keys are in the order of the text, so the second of a pair is the repetition. */
        if (compare_texts(own[i - 1].text, own[i].text) == 0 &&
            (!found || own[i].offset < *ret_offset)) {
            *ret_offset = own[i].offset;
            found = true;
        }
    }
    return found;
}
