#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "json/schema_private.h"

enum { place_bytes = 200 };

/* What is wrong, as the end of a sentence; then a key in quotes if it is not -1. NULL: nothing. */
typedef struct fault {
    const char *why;
    int key;
} fault;

/* A part of the schema applied to an object or an array that is open. */
typedef struct eval {
    const bp_schema_node *node;
    uint8_t role;
    bool is_final, is_condition_false, is_negated_true;
    int owner; /* in `evals`; -1: none */
    fault fault;
    unsigned forms, choices;
    uint64_t seen_values; /* of an enumeration whose elements are unique */
} eval;

/* An object or an array that is open. Its evaluations are those of one expansion after the other.
 */
typedef struct frame {
    bool is_object;
    int first_eval;
    int key; /* of the member that comes next, or -1 */
    size_t count;
    uint64_t seen[BP_SCHEMA_KEY_WORDS];
} frame;

struct bp_json_check {
    bp_json_schema *schema;
    bp_schema_values values;
    eval evals[BP_SCHEMA_PART_MAX];
    int eval_count;
    frame frames[BP_JSON_DEPTH_MAX];
    size_t depth;
    fault fault; /* of the document */
    char place[place_bytes];
};

static const fault no_fault = {NULL, -1};

bp_json_check *bp_json_check_new(bp_json_schema *schema) {
    bp_json_check *check = calloc(1, sizeof *check);
    if (check != NULL) {
        check->schema = schema;
        check->fault = no_fault;
        check->values.schema = schema;
        bp_buffer_init(&check->values.decoded, SIZE_MAX / 4);
    }
    return check;
}

void bp_json_check_free(bp_json_check *check) {
    if (check != NULL) {
        bp_buffer_release(&check->values.decoded);
        free(check);
    }
}

uint64_t bp_json_check_steps(const bp_json_check *check) {
    return check->values.steps;
}

/* "threads[2].tid", of what is open down to the member that comes next. */
static void print_place(bp_json_check *check, size_t depth) {
    size_t used = 0;
    check->place[0] = '\0';
    for (size_t i = 0; i < depth && used < place_bytes; i++) {
        const frame *open = &check->frames[i];
        const char *key = open->key >= 0 ? check->schema->keys[open->key] : "*";
        int length = open->is_object ? snprintf(check->place + used, place_bytes - used, "%s%s",
                                                used > 0 ? "." : "", key)
                                     : snprintf(check->place + used, place_bytes - used, "[%zu]",
                                                open->count - 1);
        used += length > 0 ? (size_t)length : 0;
    }
}

/* Notes the first fault of an evaluation. `depth`: of the value that has it. */
static void fail_eval(bp_json_check *check, eval *one, fault wrong, size_t depth) {
    if (one->fault.why != NULL) {
        return;
    }
    one->fault = wrong;
    if (one->is_final && check->fault.why == NULL) {
        check->fault = wrong;
        print_place(check, depth);
    }
}

/* Applies a node to the object or array that begins, for one of the evaluations of what contains
 * it. */
static void push_evals(bp_json_check *check, int node, int owner, const bp_json_token *token) {
    const bp_schema_expansion *expansion = bp_schema_expand(check->schema, node);
    int base = check->eval_count;
    bool is_owner_final = owner < 0 || check->evals[owner].is_final;
    if (expansion == NULL) {
        check->values.is_out_of_memory = true;
        return;
    }
    if (expansion->part_count > (size_t)(BP_SCHEMA_PART_MAX - base)) {
        check->fault = check->fault.why != NULL ? check->fault : (fault){"is nested too deep", -1};
        print_place(check, check->depth);
        return;
    }
    check->eval_count += (int)expansion->part_count;
    for (int i = 0; i < (int)expansion->part_count; i++) {
        const bp_schema_part *part = &expansion->parts[i];
        eval *one = &check->evals[base + i];
        *one = (eval){.node = part->node,
                      .role = part->role,
                      .is_final = part->is_final && is_owner_final,
                      .owner = part->owner >= 0 ? base + part->owner : owner,
                      .fault = no_fault};
        const char *why = bp_schema_check_value(&check->values, part->node, token);
        if (why != NULL) {
            fail_eval(check, one, (fault){why, -1}, check->depth);
        }
    }
}

/* The next element, or the member of the key, is a value: what to do for an evaluation of what
 * contains it, and the node that it has for it. */
typedef void child_taker(bp_json_check *check, int node, int owner, const bp_json_token *token);

static void take_child(bp_json_check *check, const bp_json_token *token, child_taker *take) {
    frame *open = &check->frames[check->depth - 1];
    int slot = open->is_object ? BP_SCHEMA_KEY_SLOT + open->key : BP_SCHEMA_ELEMENT_SLOT;
    int end = check->eval_count;
    open->count += !open->is_object;
    for (int first = open->first_eval; first < end;) {
        const bp_schema_expansion *expansion = check->evals[first].node->expansion;
        for (size_t i = expansion->first_children[slot]; i < expansion->first_children[slot + 1];
             i++) {
            const bp_schema_child *child = &expansion->children[i];
            take(check, child->node, first + child->part, token);
        }
        first += (int)expansion->part_count;
    }
}

static void begin(bp_json_check *check, const bp_json_token *token) {
    int first = check->eval_count;
    if (check->depth == 0) {
        push_evals(check, 0, -1, token);
    } else {
        take_child(check, token, push_evals);
    }
    check->frames[check->depth++] =
        (frame){.is_object = token->text[0] == '{', .first_eval = first, .key = -1};
}

/* A key that an object must have and lacks, or -1. */
static int find_missing(const bp_json_check *check, const frame *open, const bp_schema_node *node) {
    for (int word = 0; word < BP_SCHEMA_KEY_WORDS; word++) {
        uint64_t missing = node->required[word] & ~open->seen[word];
        if (missing != 0) {
            return word * 64 + __builtin_ctzll(missing);
        }
    }
    const cJSON *member = node->dependent != NULL ? node->dependent->child : NULL;
    for (; member != NULL; member = member->next) {
        int key = bp_schema_find_key(check->schema, member->string, strlen(member->string));
        for (const cJSON *name = member->child; bp_schema_has_key(open->seen, key) && name != NULL;
             name = name->next) {
            int other =
                bp_schema_find_key(check->schema, name->valuestring, strlen(name->valuestring));
            if (!bp_schema_has_key(open->seen, other)) {
                return other;
            }
        }
    }
    return -1;
}

/* What is wrong with the whole of an object or an array. */
static fault find_fault(const bp_json_check *check, const frame *open, const eval *one) {
    const bp_schema_node *node = one->node;
    size_t smallest = open->is_object ? node->min_members : node->min_items;
    size_t largest = open->is_object ? node->max_members : node->max_items;
    int missing = open->is_object ? find_missing(check, open, node) : -1;
    if (one->fault.why != NULL) {
        return one->fault;
    }
    if (missing >= 0) {
        return (fault){"lacks", missing};
    }
    if (open->count < smallest || open->count > largest) {
        return (fault){open->count < smallest ? "has too few parts" : "has too many parts", -1};
    }
    if (node->one_count > 0 && one->forms != 1) {
        return (fault){"has none of its forms, or several", -1};
    }
    if ((node->any_count > 0 && one->choices == 0) || one->is_negated_true) {
        return (fault){one->is_negated_true ? "is what it must not be" : "has none of its forms",
                       -1};
    }
    return no_fault;
}

static void end(bp_json_check *check) {
    const frame *open = &check->frames[--check->depth];
    for (int i = check->eval_count - 1; i >= open->first_eval; i--) {
        eval *one = &check->evals[i];
        eval *owner = one->owner >= 0 ? &check->evals[one->owner] : NULL;
        fault wrong = find_fault(check, open, one);
        check->values.steps++;
        if (wrong.why != NULL) {
            fail_eval(check, one, wrong, check->depth);
        }
        switch ((bp_schema_role)one->role) {
        case BP_SCHEMA_PART:
            if (owner != NULL && wrong.why != NULL) {
                fail_eval(check, owner, wrong, check->depth);
            }
            break;
        case BP_SCHEMA_FORM:
            owner->forms += wrong.why == NULL;
            break;
        case BP_SCHEMA_CHOICE:
            owner->choices += wrong.why == NULL;
            break;
        case BP_SCHEMA_NEGATED:
            owner->is_negated_true = wrong.why == NULL;
            break;
        case BP_SCHEMA_CONDITION:
            owner->is_condition_false = wrong.why != NULL;
            break;
        case BP_SCHEMA_ON_TRUE: /* the condition is known: it was behind them */
        case BP_SCHEMA_ON_FALSE:
            if (wrong.why != NULL &&
                owner->is_condition_false == (one->role == BP_SCHEMA_ON_FALSE)) {
                fail_eval(check, owner, wrong, check->depth);
            }
            break;
        }
    }
    check->eval_count = open->first_eval;
}

bool bp_json_check_key(void *context, const bp_json_token *key, bool *ret_is_repeated) {
    bp_json_check *check = context;
    frame *open = &check->frames[check->depth - 1];
    size_t byte_count;
    const char *text = bp_schema_decode(&check->values, key, &byte_count);
    open->key = bp_schema_find_key(check->schema, text, byte_count);
    if (open->key < 0) {
        return false;
    }
    *ret_is_repeated = bp_schema_has_key(open->seen, open->key);
    open->seen[open->key / 64] |= (uint64_t)1 << open->key % 64;
    return true;
}

static void take_key(bp_json_check *check, const bp_json_token *token) {
    check->frames[check->depth - 1].count++;
    for (int i = check->frames[check->depth - 1].first_eval;
         check->schema->names_keys && i < check->eval_count; i++) {
        const char *why =
            bp_schema_check_scalar(&check->values, check->evals[i].node->names, token);
        if (why != NULL) {
            fail_eval(check, &check->evals[i], (fault){"has a key that is not allowed", -1},
                      check->depth - 1);
        }
    }
}

static void check_scalar(bp_json_check *check, int node, int owner, const bp_json_token *token) {
    eval *one = &check->evals[owner];
    const char *why = bp_schema_check_scalar(&check->values, node, token);
    check->values.steps++;
    if (why == NULL && one->node->is_unique && !check->frames[check->depth - 1].is_object) {
        int value = bp_schema_find_constant(&check->values, &check->schema->nodes[node], token);
        why = (one->seen_values >> value & 1) != 0 ? "is there twice" : NULL;
        one->seen_values |= (uint64_t)1 << value;
    }
    if (why != NULL) {
        fail_eval(check, one, (fault){why, -1}, check->depth);
    }
}

static void take_scalar(bp_json_check *check, const bp_json_token *token) {
    if (check->depth == 0) {
        check->fault = (fault){bp_schema_check_scalar(&check->values, 0, token), -1};
    } else {
        take_child(check, token, check_scalar);
    }
}

bugpack_status bp_json_check_token(bp_json_check *check, const bp_json_token *token,
                                   bugpack_error *error) {
    check->values.steps++;
    if (token->kind == BP_JSON_KEY) {
        take_key(check, token);
    } else if (token->kind == BP_JSON_SCALAR) {
        take_scalar(check, token);
    } else if (token->kind == BP_JSON_BEGIN) {
        begin(check, token);
    } else if (token->kind == BP_JSON_END) {
        end(check);
    }
    if (check->values.is_out_of_memory) {
        return bp_fail_memory(error, "check a JSON text");
    }
    if (check->fault.why == NULL) {
        return BUGPACK_OK;
    }
    bool has_place = check->place[0] != '\0';
    const char *key = check->fault.key >= 0 ? check->schema->keys[check->fault.key] : "";
    const char *quote = check->fault.key >= 0 ? "\"" : "";
    return bp_fail(error, BUGPACK_ERR_CORRUPT, "%s %s%s%s%s%s", has_place ? check->place : "it",
                   check->fault.why, key[0] != '\0' ? " " : "", quote, key, quote);
}
