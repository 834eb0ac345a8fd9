/*
 * Trees of documents that somebody else wrote, checked, and bounded in memory.
 */
#ifndef BP_JSON_TREE_READER_H
#define BP_JSON_TREE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "base/sink.h"
#include "json/tree.h"

/* Bounds a tree together with its text. What reads reports has 64 MiB for everything. */
#define BP_JSON_TREE_MAX_BYTES ((size_t)20 << 20)

/* Bounds the time for a document of small elements: Linux has no more threads. */
#define BP_JSON_TREE_MAX_ELEMENTS ((size_t)1 << 22)

/*
 * Checks the text as bp_json_reformat does. Errors: as there, and CORRUPT for
 * one that would take more memory than BP_JSON_TREE_MAX_BYTES. The tree is released with
 * bp_json_tree_free.
 */
bugpack_status bp_json_tree_read(const void *text, size_t byte_count, bp_json_tree **ret_tree,
                                 bugpack_error *error);
/* The same with a bound of its own. */
bugpack_status bp_json_tree_read_within(const void *text, size_t byte_count, size_t max_bytes,
                                        bp_json_tree **ret_tree, bugpack_error *error);
/* Takes an element, which is borrowed, unless bp_json_tree_take takes it over. Anything but OK ends
 * the reading. */
typedef bugpack_status bp_json_tree_taker(void *context, bp_json_tree *element,
                                          bugpack_error *error);

/* An array that is a member of the root, and what takes the objects in it; or an object that is
 * one, which is taken itself. */
typedef struct bp_json_tree_list {
    const char *key;
    bp_json_tree_taker *take;
    bool is_object;
} bp_json_tree_list;

/*
 * Gives the objects in some arrays of the object `text`, each as a tree of its own, in the order of
 * the text: for documents of any size, of which no more than an element is held. The row after the
 * last of `lists` has no key. `ret_rest`, which may be NULL, is the document with these
 * members empty, to be released by the caller.
 *
 * Errors: those of bp_json_tree_read, where the bound of an element is 8 MiB, and CORRUPT for
 * more than BP_JSON_TREE_MAX_ELEMENTS; those of the giver
 * and of the takers. The elements before what is wrong have been given.
 */
bugpack_status bp_json_tree_each(const bp_giver *text, const bp_json_tree_list *lists,
                                 void *context, bp_json_tree **ret_rest, bugpack_error *error);

#endif
