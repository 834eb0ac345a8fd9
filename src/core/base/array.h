/*
 * Arrays that grow by doubling.
 */
#ifndef BP_BASE_ARRAY_H
#define BP_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Makes room for one item after the first `count` of `*items`, which was allocated with malloc or
 * is NULL, and updates it and `*capacity`. False without memory: then nothing has changed.
 */
#define bp_array_reserve(items, count, capacity)                                                   \
    bp_array_reserve_bytes((items), sizeof **(items), (count), (capacity))
bool bp_array_reserve_bytes(void *items, size_t item_bytes, size_t count, size_t *capacity);

/* Compares items that begin with an uint64_t, for qsort and bsearch. */
int bp_array_compare_u64(const void *one, const void *other);

/* The item that begins with this number, of an array that is sorted so; NULL: none. */
const void *bp_array_find_u64(uint64_t key, const void *items, size_t count, size_t item_bytes);

/* The index of the first sorted item that is not before the key, or `count`: `compare` as for
 * bsearch. */
size_t bp_array_find_first(const void *key, const void *items, size_t count, size_t item_bytes,
                           int (*compare)(const void *key, const void *item));

/* True if a text is one of a list that ends with NULL; or begins with one of them. */
bool bp_array_has_text(const char *const *texts, const char *text);
bool bp_array_has_start(const char *const *starts, const char *text);

#endif
