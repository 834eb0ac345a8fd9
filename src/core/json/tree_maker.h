/*
 * A tree that is built member by member, for what renders one document in several ways.
 */
#ifndef BP_JSON_TREE_MAKER_H
#define BP_JSON_TREE_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/tree.h"

/* The first failure sticks; from then on nothing is added. A zeroed maker has an open, empty root.
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
/* Opens an array again if the object has one of that name. */
void bp_json_make_array(bp_json_maker *maker, const char *key);
void bp_json_make_end(bp_json_maker *maker);
void bp_json_make_text(bp_json_maker *maker, const char *key, const char *text);
void bp_json_make_number(bp_json_maker *maker, const char *key, bool is_known, double value,
                         unsigned decimals);
void bp_json_make_uint(bp_json_maker *maker, const char *key, bool is_known, uint64_t value);
/* Moves the last element of the open array to its place in an order. If there are then over
 * `max_count`, the last one is removed: returns its `count`, or 1, and else 0. */
uint64_t bp_json_make_settled(bp_json_maker *maker, size_t max_count,
                              bp_json_tree_order *is_before);
/* An element that is an object of the same tree, a second time. */
void bp_json_make_again(bp_json_maker *maker, const bp_json_tree *object);
void bp_json_make_bool(bp_json_maker *maker, const char *key, bool value);
/* Nothing for "", and for false. */
void bp_json_make_known_text(bp_json_maker *maker, const char *key, const char *text);
void bp_json_make_flag(bp_json_maker *maker, const char *key, bool is_set);

#endif
