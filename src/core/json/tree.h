/*
 * A document as a tree (cJSON's): for looking up values by name. A number is a double, which is
 * printed as it was read or made. json/tree_reader.h and json/tree_maker.h make trees.
 */
#ifndef BP_JSON_TREE_H
#define BP_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "json/json.h"
#include "json/token.h"

typedef struct cJSON bp_json_tree;

void bp_json_tree_free(bp_json_tree *tree);

/* A scalar of a checked text. A number that a double may not hold has its text beside it. NULL
 * without memory. */
bp_json_tree *bp_json_tree_scalar(const bp_json_token *token);
/* True if a scalar is a number that needs no text. */
bool bp_json_tree_is_small(const bp_json_token *scalar, uint64_t *ret_value);
/* The text of a key or a string, or the token as it is, from cJSON's allocator. */
char *bp_json_tree_copy(const bp_json_token *token);

/* Moves the members of an object into a new one, which is the caller's. NULL without memory. */
bp_json_tree *bp_json_tree_take(bp_json_tree *object);

/* The memory of a tree, about. */
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
/* A whole number below 2^53, to which doubles are exact, or `otherwise`; and of an element or
 * member. */
bool bp_json_tree_uint(const bp_json_tree *object, const char *key, uint64_t *ret_value);
uint64_t bp_json_tree_uint_or(const bp_json_tree *object, const char *key, uint64_t otherwise);
bool bp_json_tree_value_uint(const bp_json_tree *member, uint64_t *ret_value);

/* A number between -2^53 and 2^53. 1e999 is none: a double has infinity for it. */
bool bp_json_tree_number(const bp_json_tree *object, const char *key, double *ret_value);

/* A member of any type by exact name, or NULL; then the one at a path such as "report.app", where
 * of an array the first element is meant. */
const bp_json_tree *bp_json_tree_member(const bp_json_tree *object, const char *key);
const bp_json_tree *bp_json_tree_at(const bp_json_tree *object, const char *path);
/* The value of an element or member, which may be NULL; NULL, or false, if its type is another. */
const char *bp_json_tree_value_text(const bp_json_tree *member);
bool bp_json_tree_value_number(const bp_json_tree *member, double *ret_value);
bool bp_json_tree_value_is_false(const bp_json_tree *member);

/* True if the member is there and true. */
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
/* The same before an element of an array. */
bp_json_tree *bp_json_tree_insert(bp_json_tree *array, bp_json_tree *element);
/* True if one element comes before the other. */
typedef bool bp_json_tree_order(const bp_json_tree *one, const bp_json_tree *other);
/* Moves the last element of an array, which has one, before the first one that it is before. */
void bp_json_tree_settle(bp_json_tree *array, bp_json_tree_order *is_before);

/* Appends an object as a document. Errors: those of bp_json_finish. */
bugpack_status bp_json_tree_print(const bp_json_tree *object, bp_buffer *out, bugpack_error *error);

/* Adds a tree, which may be NULL, to a document. */
void bp_json_add_tree(bp_json *json, const char *key, const bp_json_tree *tree);

#endif
