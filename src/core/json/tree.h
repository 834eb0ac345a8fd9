/*
 * Small documents that somebody else wrote, as a tree (cJSON's): for looking up values by name.
 * Numbers in a tree are doubles; json/token.h reads exact ones.
 */
#ifndef BP_JSON_TREE_H
#define BP_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "base/sink.h"
#include "json/json.h"

/* Bounds a tree together with its text. What reads reports has 64 MiB for everything. */
#define BP_JSON_TREE_MAX_BYTES ((size_t)20 << 20)

/* Bounds the time for a document of small elements: Linux has no more threads. */
#define BP_JSON_TREE_MAX_ELEMENTS ((size_t)1 << 22)

typedef struct cJSON bp_json_tree;

/*
 * Checks the text as bp_json_reformat does before cJSON sees it. Errors: as there, and CORRUPT for
 * one that would take more memory than BP_JSON_TREE_MAX_BYTES. The tree is released with
 * bp_json_tree_free.
 */
bugpack_status bp_json_tree_read(const void *text, size_t byte_count, bp_json_tree **ret_tree,
                                 bugpack_error *error);
/* The same with a bound of its own. */
bugpack_status bp_json_tree_read_within(const void *text, size_t byte_count, size_t max_bytes,
                                        bp_json_tree **ret_tree, bugpack_error *error);
void bp_json_tree_free(bp_json_tree *tree);

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

/* Moves the members of an object into a new one, which is the caller's. NULL without memory. */
bp_json_tree *bp_json_tree_take(bp_json_tree *object);

/* What a tree takes of memory, about. */
size_t bp_json_tree_memory(const bp_json_tree *tree);

/* These find members by exact name. NULL, or false, for one that is missing or of another type. */
const bp_json_tree *bp_json_tree_array(const bp_json_tree *object, const char *key);
const char *bp_json_tree_text(const bp_json_tree *object, const char *key);
/* The text, or `otherwise`. */
const char *bp_json_tree_text_or(const bp_json_tree *object, const char *key,
                                 const char *otherwise);
const bp_json_tree *bp_json_tree_object(const bp_json_tree *object, const char *key);
/* The key of a member, and the text that it is; "" for what is none. */
const char *bp_json_tree_key(const bp_json_tree *member);
const char *bp_json_tree_value(const bp_json_tree *member);
/* A whole number below 2^53, to which doubles are exact; and of an element or member. */
bool bp_json_tree_uint(const bp_json_tree *object, const char *key, uint64_t *ret_value);
bool bp_json_tree_value_uint(const bp_json_tree *member, uint64_t *ret_value);

/* A number between -2^53 and 2^53. 1e999 is none: a double has infinity for it. */
bool bp_json_tree_number(const bp_json_tree *object, const char *key, double *ret_value);

/* A member of any type by exact name, or NULL; then the one at a path such as "report.app", where
 * of an array the first element is meant. */
const bp_json_tree *bp_json_tree_member(const bp_json_tree *object, const char *key);
const bp_json_tree *bp_json_tree_at(const bp_json_tree *object, const char *path);
/* What an element or member, which may be NULL, is; NULL, or false, for one of another type. */
const char *bp_json_tree_value_text(const bp_json_tree *member);
bool bp_json_tree_value_number(const bp_json_tree *member, double *ret_value);
bool bp_json_tree_value_is_false(const bp_json_tree *member);

/* Whether the member is there and true. */
bool bp_json_tree_is_true(const bp_json_tree *object, const char *key);

/* The first element of an array, or member of an object, which may be NULL, and the one after an
 * element; NULL at the end.
 */
const bp_json_tree *bp_json_tree_first(const bp_json_tree *array);
const bp_json_tree *bp_json_tree_next(const bp_json_tree *element);
/* The first element of an array that is a member. */
const bp_json_tree *bp_json_tree_rows(const bp_json_tree *object, const char *key);

/* A loop over the elements from `first` on, which may be NULL. */
#define BP_JSON_EACH(element, first)                                                               \
    for (const bp_json_tree *element = (first); element != NULL;                                   \
         element = bp_json_tree_next(element))

/* Sets a member, in place of one that is there. False without memory. */
bool bp_json_tree_set_uint(bp_json_tree *object, const char *key, uint64_t value);
bool bp_json_tree_set_bool(bp_json_tree *object, const char *key, bool value);
bool bp_json_tree_set_text(bp_json_tree *object, const char *key, const char *value);
/* Removes a member if it is there. */
void bp_json_tree_remove(bp_json_tree *object, const char *key);
/* Appends an empty object to the array of that name, which is made if there is none; NULL without
 * memory. */
bp_json_tree *bp_json_tree_append(bp_json_tree *object, const char *key);

/* Appends the document, indented by two spaces. NO_MEMORY, LIMIT of the buffer. */
bugpack_status bp_json_tree_print(const bp_json_tree *tree, bp_buffer *out, bugpack_error *error);

/*
 * Builds a tree, member by member, for what renders one document in several ways. The first failure
 * sticks; from then on nothing is added. All zero is a maker whose root is no more than begun.
 */
enum { BP_JSON_MAKER_DEPTH = 8 };
typedef struct bp_json_maker {
    bp_json_tree *root; /* an object; the caller's */
    bp_json_tree *open[BP_JSON_MAKER_DEPTH];
    size_t depth;
    bool lacks_memory;
} bp_json_maker;

void bp_json_maker_begin(bp_json_maker *maker);
/* Keys are literals, and NULL in an array. What is not known, a NULL text or `is_known`, is left
 * out. A number is printed with so many decimals. */
void bp_json_make_object(bp_json_maker *maker, const char *key);
void bp_json_make_array(bp_json_maker *maker, const char *key);
void bp_json_make_end(bp_json_maker *maker);
void bp_json_make_text(bp_json_maker *maker, const char *key, const char *text);
void bp_json_make_number(bp_json_maker *maker, const char *key, bool is_known, double value,
                         unsigned decimals);
void bp_json_make_uint(bp_json_maker *maker, const char *key, bool is_known, uint64_t value);
void bp_json_make_bool(bp_json_maker *maker, const char *key, bool value);
/* Nothing for "", and for false. */
void bp_json_make_known_text(bp_json_maker *maker, const char *key, const char *text);
void bp_json_make_flag(bp_json_maker *maker, const char *key, bool is_set);

/* Adds what was made to a document: without the members whose names begin with '_'. */
void bp_json_add_made(bp_json *json, const char *key, const bp_json_tree *made);

#endif
