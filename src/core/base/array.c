#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool bp_array_reserve_bytes(void *items, size_t item_bytes, size_t count, size_t *capacity) {
    if (count < *capacity) {
        return true;
    }
    size_t wanted = *capacity == 0 ? 16 : *capacity * 2;
    void *array;
    memcpy(&array, items, sizeof array);
    if (wanted > SIZE_MAX / 2 / item_bytes ||
        (array = realloc(array, wanted * item_bytes)) == NULL) {
        return false;
    }
    memcpy(items, &array, sizeof array);
    *capacity = wanted;
    return true;
}

int bp_array_compare_u64(const void *one, const void *other) {
    uint64_t left = *(const uint64_t *)one;
    uint64_t right = *(const uint64_t *)other;
    return (left > right) - (left < right);
}

const void *bp_array_find_u64(uint64_t key, const void *items, size_t count, size_t item_bytes) {
    return count == 0 ? NULL : bsearch(&key, items, count, item_bytes, bp_array_compare_u64);
}

size_t bp_array_find_first(const void *key, const void *items, size_t count, size_t item_bytes,
                           int (*compare)(const void *key, const void *item)) {
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(key, (const char *)items + middle * item_bytes) > 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool bp_array_has_text(const char *const *texts, const char *text) {
    while (*texts != NULL && strcmp(*texts, text) != 0) {
        texts++;
    }
    return *texts != NULL;
}

bool bp_array_has_start(const char *const *starts, const char *text) {
    while (*starts != NULL && strncmp(text, *starts, strlen(*starts)) != 0) {
        starts++;
    }
    return *starts != NULL;
}
