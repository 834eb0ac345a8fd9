#include <math.h>
#include <stdlib.h>
#include <string.h>

/* XXH3, inlined; no library is linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/status.h"
#include "json/schema_private.h"
#include "json/tree.h"

/* A schema being read. The first failure sticks. */
typedef struct reading {
    bp_json_schema *schema;
    const char *failure, *about;
} reading;

static int refuse(reading *state, const char *failure, const char *about) {
    if (state->failure == NULL) {
        state->failure = failure;
        state->about = about != NULL ? about : "";
    }
    return -1;
}

/* The slot of a key, or the free one where it belongs. The keys are ours, so nobody chooses them to
 * collide. */
static size_t find_slot(const bp_json_schema *schema, const char *text, size_t byte_count) {
    size_t slot = (size_t)XXH3_64bits(text, byte_count) % (2 * BP_SCHEMA_KEY_MAX);
    while (schema->slots[slot] != 0) {
        size_t place = schema->slots[slot] - 1u;
        if (schema->key_bytes[place] == byte_count &&
            memcmp(schema->keys[place], text, byte_count) == 0) {
            break;
        }
        slot = (slot + 1) % (2 * BP_SCHEMA_KEY_MAX);
    }
    return slot;
}

int bp_schema_find_key(const bp_json_schema *schema, const char *text, size_t byte_count) {
    return byte_count > BP_SCHEMA_KEY_BYTES_MAX
               ? -1
               : schema->slots[find_slot(schema, text, byte_count)] - 1;
}

static int add_key(reading *state, const char *text) {
    bp_json_schema *schema = state->schema;
    size_t byte_count = text != NULL ? strlen(text) : SIZE_MAX;
    if (byte_count > BP_SCHEMA_KEY_BYTES_MAX) {
        return refuse(state, "a key is none, or too long", text);
    }
    size_t slot = find_slot(schema, text, byte_count);
    if (schema->slots[slot] == 0) {
        if (schema->key_count == BP_SCHEMA_KEY_MAX) {
            return refuse(state, "it has too many keys", NULL);
        }
        schema->key_bytes[schema->key_count] = byte_count;
        schema->keys[schema->key_count++] = text;
        schema->slots[slot] = (uint16_t)schema->key_count;
    }
    return schema->slots[slot] - 1;
}

static int16_t read_node(reading *state, const cJSON *object);

static void read_members(reading *state, bp_schema_node *node, const cJSON *members) {
    node->members = malloc(BP_SCHEMA_KEY_MAX * sizeof *node->members);
    if (node->members == NULL) {
        (void)refuse(state, "memory is short", NULL);
        return;
    }
    memset(node->members, 0xFF, BP_SCHEMA_KEY_MAX * sizeof *node->members);
    for (const cJSON *member = members->child; member != NULL; member = member->next) {
        int key = add_key(state, member->string);
        int16_t child = read_node(state, member);
        if (key >= 0) {
            node->members[key] = child;
        }
    }
}

static void read_required(reading *state, bp_schema_node *node, const cJSON *names) {
    for (const cJSON *name = names->child; name != NULL; name = name->next) {
        int key = add_key(state, name->valuestring);
        if (key >= 0) {
            node->required[key / 64] |= (uint64_t)1 << key % 64;
        }
    }
}

static void read_dependent(reading *state, bp_schema_node *node, const cJSON *object) {
    node->dependent = object;
    for (const cJSON *member = object->child; member != NULL; member = member->next) {
        (void)add_key(state, member->string);
        for (const cJSON *name = member->child; name != NULL; name = name->next) {
            (void)add_key(state, name->valuestring);
        }
    }
}

static unsigned read_type(reading *state, const char *name) {
    static const char *const names[] = {"object", "array",   "string", "integer",
                                        "number", "boolean", "null"};
    for (unsigned i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            return 1u << i;
        }
    }
    (void)refuse(state, "it has an unknown type", name);
    return 0;
}

static void read_types(reading *state, bp_schema_node *node, const cJSON *value) {
    for (const cJSON *one = value->child; one != NULL; one = one->next) {
        node->types |= read_type(state, one->valuestring);
    }
    if (value->child == NULL) {
        node->types = read_type(state, value->valuestring);
    }
}

static void read_list(reading *state, const cJSON *value, uint8_t *ret_first, uint8_t *ret_count) {
    bp_json_schema *schema = state->schema;
    int count = cJSON_GetArraySize(value);
    if (count == 0 || schema->list_count + (size_t)count > BP_SCHEMA_LIST_MAX) {
        (void)refuse(state, "a list is empty, or there are too many", value->string);
        return;
    }
    *ret_first = (uint8_t)schema->list_count;
    *ret_count = (uint8_t)count;
    schema->list_count += (size_t)count;
    for (int i = 0; i < count; i++) {
        schema->lists[*ret_first + i] = read_node(state, cJSON_GetArrayItem(value, i));
    }
}

static void read_pattern(reading *state, bp_schema_node *node, const char *text) {
    int code;
    PCRE2_SIZE at;
    if (text == NULL) {
        (void)refuse(state, "a pattern is no text", NULL);
        return;
    }
    pcre2_code_free(node->pattern);
    node->pattern = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                  PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &code, &at, NULL);
    if (node->pattern == NULL) {
        (void)refuse(state, "a pattern is not understood", text);
        return;
    }
    (void)pcre2_jit_compile(node->pattern, PCRE2_JIT_COMPLETE); /* or it is slower */
}

/* A limit that is a number: which field of the node has it. */
static size_t *find_limit(bp_schema_node *node, const char *keyword) {
    const struct {
        const char *keyword;
        size_t *field;
    } limits[] = {{"minLength", &node->min_length},      {"maxLength", &node->max_length},
                  {"minItems", &node->min_items},        {"maxItems", &node->max_items},
                  {"minProperties", &node->min_members}, {"maxProperties", &node->max_members}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (strcmp(limits[i].keyword, keyword) == 0) {
            return limits[i].field;
        }
    }
    return NULL;
}

/* A keyword whose value is a schema: which field of the node has it. */
static int16_t *find_child(bp_schema_node *node, const char *keyword) {
    const struct {
        const char *keyword;
        int16_t *field;
    } children[] = {{"items", &node->items},         {"additionalProperties", &node->additional},
                    {"propertyNames", &node->names}, {"if", &node->condition},
                    {"then", &node->on_true},        {"else", &node->on_false},
                    {"not", &node->negated}};
    for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
        if (strcmp(children[i].keyword, keyword) == 0) {
            return children[i].field;
        }
    }
    return NULL;
}

static void read_format(reading *state, bp_schema_node *node, const char *name) {
    node->is_date_time = name != NULL && strcmp(name, "date-time") == 0;
    if (!node->is_date_time) {
        (void)refuse(state, "it has an unknown format", name);
    }
}

/* The rest, which say something about a value by themselves. False for what is no keyword. */
static bool read_plain(reading *state, bp_schema_node *node, const cJSON *value) {
    const char *keyword = value->string;
    size_t *limit = find_limit(node, keyword);
    if (limit != NULL) {
        *limit = (size_t)value->valuedouble;
    } else if (strcmp(keyword, "minimum") == 0) {
        node->minimum = value->valuedouble;
    } else if (strcmp(keyword, "exclusiveMinimum") == 0) {
        node->minimum = value->valuedouble;
        node->is_exclusive = true;
    } else if (strcmp(keyword, "maximum") == 0) {
        node->maximum = value->valuedouble;
    } else if (strcmp(keyword, "const") == 0) {
        node->constants = value;
    } else if (strcmp(keyword, "enum") == 0) {
        node->constants = value->child;
        node->is_enumeration = true;
    } else if (strcmp(keyword, "pattern") == 0) {
        read_pattern(state, node, value->valuestring);
    } else if (strcmp(keyword, "format") == 0) {
        read_format(state, node, value->valuestring);
    } else if (strcmp(keyword, "uniqueItems") == 0) {
        node->is_unique = cJSON_IsTrue(value);
    } else {
        return false;
    }
    return true;
}

static void read_keyword(reading *state, bp_schema_node *node, const cJSON *value) {
    static const char *const notes[] = {"$schema", "$id", "title", "description", "$defs"};
    const char *keyword = value->string;
    int16_t *child = find_child(node, keyword);
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        if (strcmp(notes[i], keyword) == 0) {
            return;
        }
    }
    if (child != NULL) {
        *child = read_node(state, value);
    } else if (strcmp(keyword, "properties") == 0) {
        read_members(state, node, value);
    } else if (strcmp(keyword, "required") == 0) {
        read_required(state, node, value);
    } else if (strcmp(keyword, "dependentRequired") == 0) {
        read_dependent(state, node, value);
    } else if (strcmp(keyword, "type") == 0) {
        read_types(state, node, value);
    } else if (strcmp(keyword, "allOf") == 0) {
        read_list(state, value, &node->all_first, &node->all_count);
    } else if (strcmp(keyword, "anyOf") == 0) {
        read_list(state, value, &node->any_first, &node->any_count);
    } else if (strcmp(keyword, "oneOf") == 0) {
        read_list(state, value, &node->one_first, &node->one_count);
    } else if (strcmp(keyword, "$ref") == 0) {
        node->reference_name = value->valuestring;
    } else if (!read_plain(state, node, value)) {
        (void)refuse(state, "it has an unknown keyword", keyword);
    }
}

static int16_t read_node(reading *state, const cJSON *object) {
    bp_json_schema *schema = state->schema;
    bool is_schema = cJSON_IsObject(object) || cJSON_IsBool(object);
    if (!is_schema || schema->node_count == BP_SCHEMA_NODE_MAX) {
        return (int16_t)refuse(state, "a part is no schema, or there are too many", NULL);
    }
    size_t place = schema->node_count++;
    bp_schema_node *node = &schema->nodes[place];
    *node = (bp_schema_node){.is_never = cJSON_IsFalse(object),
                             .items = -1,
                             .additional = -1,
                             .names = -1,
                             .condition = -1,
                             .on_true = -1,
                             .on_false = -1,
                             .negated = -1,
                             .reference = -1,
                             .minimum = -HUGE_VAL,
                             .maximum = HUGE_VAL,
                             .max_length = SIZE_MAX,
                             .max_items = SIZE_MAX,
                             .max_members = SIZE_MAX};
    for (const cJSON *value = object->child; value != NULL && state->failure == NULL;
         value = value->next) {
        read_keyword(state, node, value);
    }
    schema->names_keys = schema->names_keys || node->names >= 0;
    bool has_values = node->items >= 0 && schema->nodes[node->items].is_enumeration;
    if (node->is_unique && !has_values) {
        return (int16_t)refuse(state, "it wants unique elements that have no list of values", NULL);
    }
    return (int16_t)place;
}

/* References are to the root or to a definition. A definition is read where one refers to it. */
static void resolve(reading *state) {
    static const char prefix[] = "#/$defs/";
    bp_json_schema *schema = state->schema;
    const cJSON *definitions = cJSON_GetObjectItemCaseSensitive(schema->tree, "$defs");
    for (size_t i = 0; i < schema->node_count && state->failure == NULL; i++) {
        const char *name = schema->nodes[i].reference_name;
        if (name == NULL) {
            continue;
        }
        const cJSON *target =
            strncmp(name, prefix, sizeof prefix - 1) == 0
                ? cJSON_GetObjectItemCaseSensitive(definitions, name + sizeof prefix - 1)
                : NULL;
        bool is_root = strcmp(name, "#") == 0;
        schema->nodes[i].reference = is_root ? 0 : read_node(state, target);
    }
}

bugpack_status bp_json_schema_read(const void *text, size_t byte_count, bp_json_schema **ret_schema,
                                   bugpack_error *error) {
    reading state = {.schema = calloc(1, sizeof *state.schema)};
    if (state.schema == NULL) {
        return bp_fail_memory(error, "read a schema");
    }
    bugpack_status status = bp_json_tree_read(text, byte_count, &state.schema->tree, error);
    if (status == BUGPACK_OK) {
        (void)read_node(&state, state.schema->tree);
        resolve(&state);
        state.schema->match = pcre2_match_data_create(1, NULL);
        if (state.failure != NULL) {
            status = bp_fail(error, BUGPACK_ERR_CORRUPT, "a schema cannot be read: %s: \"%s\"",
                             state.failure, state.about);
        } else if (state.schema->match == NULL) {
            status = bp_fail_memory(error, "read a schema");
        }
    }
    if (status != BUGPACK_OK) {
        bp_json_schema_free(state.schema);
        return status;
    }
    *ret_schema = state.schema;
    return BUGPACK_OK;
}

void bp_json_schema_free(bp_json_schema *schema) {
    if (schema == NULL) {
        return;
    }
    for (size_t i = 0; i < schema->node_count; i++) {
        pcre2_code_free(schema->nodes[i].pattern);
        free(schema->nodes[i].members);
        bp_schema_expansion_free(schema->nodes[i].expansion);
    }
    pcre2_match_data_free(schema->match);
    bp_json_tree_free(schema->tree);
    free(schema);
}
