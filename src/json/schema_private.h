/*
 * A schema as json/schema_read.c makes it and json/schema_check.c applies it: to objects and arrays
 * as json/schema_expand.c prepares it, to values by themselves with json/schema_value.c.
 */
#ifndef BP_JSON_SCHEMA_PRIVATE_H
#define BP_JSON_SCHEMA_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <cjson/cJSON.h>
#include <pcre2.h>

#include "json/schema.h"

/* Of one schema. */
enum {
    BP_SCHEMA_KEY_MAX = 256,
    BP_SCHEMA_KEY_WORDS = BP_SCHEMA_KEY_MAX / 64,
    BP_SCHEMA_NODE_MAX = 512,
    BP_SCHEMA_LIST_MAX = 64,
    BP_SCHEMA_KEY_BYTES_MAX = 64,
    BP_SCHEMA_PART_MAX = 4096 /* applied to the values that are open at a time */
};

/* What a value can be; a whole number is an integer and a number. */
enum {
    BP_SCHEMA_OBJECT = 1 << 0,
    BP_SCHEMA_ARRAY = 1 << 1,
    BP_SCHEMA_STRING = 1 << 2,
    BP_SCHEMA_INTEGER = 1 << 3,
    BP_SCHEMA_NUMBER = 1 << 4,
    BP_SCHEMA_BOOLEAN = 1 << 5,
    BP_SCHEMA_NULL = 1 << 6
};

typedef struct bp_schema_expansion bp_schema_expansion;

/* One schema object. Other nodes are places in `nodes`; -1 is none. */
typedef struct bp_schema_node {
    bool is_never;  /* no value will do */
    unsigned types; /* 0: any */
    int16_t items, additional, names, condition, on_true, on_false, negated, reference;
    int16_t *members; /* by key; NULL: none */
    const char *reference_name;
    uint64_t required[BP_SCHEMA_KEY_WORDS];
    const cJSON *dependent; /* object of key to keys that must then be there */
    const cJSON *constants; /* the first, or NULL; with `is_enumeration` more behind it */
    bool is_enumeration, is_exclusive, is_unique, is_date_time;
    double minimum, maximum;
    size_t min_length, max_length, min_items, max_items, min_members, max_members;
    pcre2_code *pattern;
    uint8_t all_first, all_count, any_first, any_count, one_first, one_count; /* in `lists` */
    bp_schema_expansion *expansion; /* NULL: not needed yet */
} bp_schema_node;

/* What the outcome of a part is for, in the one that it belongs to. */
typedef enum bp_schema_role {
    BP_SCHEMA_PART,   /* must hold: a member, an element, allOf, $ref */
    BP_SCHEMA_FORM,   /* of oneOf */
    BP_SCHEMA_CHOICE, /* of anyOf */
    BP_SCHEMA_NEGATED,
    BP_SCHEMA_CONDITION,
    BP_SCHEMA_ON_TRUE,
    BP_SCHEMA_ON_FALSE
} bp_schema_role;

/* A node that is applied to an object or an array together with another one. */
typedef struct bp_schema_part {
    const bp_schema_node *node;
    int16_t owner; /* the part that it belongs to; -1: none */
    uint8_t role;
    bool is_final; /* no condition or choice is above it: if it fails, all does */
} bp_schema_part;

/* The node that a part has for a member or an element. */
typedef struct bp_schema_child {
    int16_t part, node;
} bp_schema_child;

/* Where the children for an element begin, for a member that no part names, and for key 0. */
enum { BP_SCHEMA_ELEMENT_SLOT, BP_SCHEMA_OTHER_SLOT, BP_SCHEMA_KEY_SLOT };

/* A node with all that it says about the same value, however it refers to it. */
struct bp_schema_expansion {
    bp_schema_part *parts;
    bp_schema_child *children;
    size_t part_count, part_capacity, child_count, child_capacity;
    size_t first_children[BP_SCHEMA_KEY_SLOT + BP_SCHEMA_KEY_MAX + 1]; /* by slot */
};

struct bp_json_schema {
    cJSON *tree; /* names and constants are in it */
    bp_schema_node nodes[BP_SCHEMA_NODE_MAX];
    size_t node_count;
    int16_t lists[BP_SCHEMA_LIST_MAX];
    size_t list_count;
    const char *keys[BP_SCHEMA_KEY_MAX];
    size_t key_bytes[BP_SCHEMA_KEY_MAX];
    size_t key_count;
    uint16_t slots[2 * BP_SCHEMA_KEY_MAX]; /* places in `keys`, from 1, by hash */
    bool names_keys;                       /* a node says what keys are allowed */
    pcre2_match_data *match;
};

/* The place of a key in `keys`, or -1. */
int bp_schema_find_key(const bp_json_schema *schema, const char *text, size_t byte_count);

static inline bool bp_schema_has_key(const uint64_t *set, int key) {
    return (set[key / 64] >> (key % 64) & 1) != 0;
}

/* The expansion of a node, made when it is first asked for; the schema's. NULL without memory. */
const bp_schema_expansion *bp_schema_expand(bp_json_schema *schema, int node);
void bp_schema_expansion_free(bp_schema_expansion *expansion);

/* What checking a value needs. */
typedef struct bp_schema_values {
    const bp_json_schema *schema;
    bp_buffer decoded;
    bool is_out_of_memory; /* sticks; then what is returned is not to be used */
    uint64_t steps;
} bp_schema_values;

/* The characters of a string or a key, with its escapes decoded. Valid until the next call. */
const char *bp_schema_decode(bp_schema_values *values, const bp_json_token *token,
                             size_t *ret_bytes);

/* The place of a value among the constants of a node, or -1. */
int bp_schema_find_constant(bp_schema_values *values, const bp_schema_node *node,
                            const bp_json_token *token);

/* What a node says of a value by itself: type, values, bounds. Then the same with all that it
 * refers to, for one that is no object and no array; -1 is a node that takes any. NULL, or what is
 * wrong. */
const char *bp_schema_check_value(bp_schema_values *values, const bp_schema_node *node,
                                  const bp_json_token *token);
const char *bp_schema_check_scalar(bp_schema_values *values, int place, const bp_json_token *token);

#endif
