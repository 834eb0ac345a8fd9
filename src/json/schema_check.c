#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "json/schema_private.h"

enum { eval_max = 4096, place_bytes = 200 };

/* What the outcome of an evaluation is for, in the one that it belongs to. */
typedef enum role {
    ROLE_PART,   /* must hold: a member, an element, allOf, $ref */
    ROLE_FORM,   /* of oneOf */
    ROLE_CHOICE, /* of anyOf */
    ROLE_NEGATED,
    ROLE_CONDITION,
    ROLE_ON_TRUE,
    ROLE_ON_FALSE
} role;

/* What is wrong, as the end of a sentence; then a key in quotes if it is not -1. NULL: nothing. */
typedef struct fault {
    const char *why;
    int key;
} fault;

/* A node of the schema applied to an object or an array that is open. */
typedef struct eval {
    int16_t node;
    uint8_t role;
    bool is_final;   /* no condition or choice is above it: if it fails, all does */
    int owner;       /* in `evals`; -1: none */
    int next_active; /* the next one of the same frame that says something about its parts; -1 */
    fault fault;
    const int16_t *members; /* of its node; NULL: none */
    int16_t others;         /* the node for other members, or for elements; -1: none */
    bool is_condition_false, is_negated_true;
    unsigned forms, choices;
    uint64_t seen_values; /* of an enumeration whose elements are unique */
} eval;

/* An object or an array that is open. */
typedef struct frame {
    bool is_object;
    int first_eval, first_active;
    int key; /* of the member that comes next, or -1 */
    size_t count;
    uint64_t seen[BP_SCHEMA_KEY_WORDS];
} frame;

struct bp_json_check {
    const bp_json_schema *schema;
    bp_schema_values values;
    eval evals[eval_max];
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

static void push_eval(bp_json_check *check, int node, role what, int owner) {
    if (node < 0 || check->eval_count == eval_max) {
        if (node >= 0 && check->fault.why == NULL) {
            check->fault = (fault){"is nested too deep", -1};
            print_place(check, check->depth);
        }
        return;
    }
    bool is_owner_final = owner < 0 || check->evals[owner].is_final;
    check->evals[check->eval_count++] = (eval){.node = (int16_t)node,
                                               .role = (uint8_t)what,
                                               .is_final = what == ROLE_PART && is_owner_final,
                                               .owner = owner,
                                               .fault = no_fault};
}

/* The node for the next member or element, in an evaluation of what contains it; -1: any will do.
 */
static int find_child(const frame *open, const eval *one) {
    int child = one->members != NULL && open->key >= 0 ? one->members[open->key] : -1;
    return child >= 0 ? child : one->others;
}

/* Links the evaluations that say something about members or elements. */
static int list_active(bp_json_check *check, int first, bool is_object) {
    int next = -1;
    for (int i = check->eval_count - 1; i >= first; i--) {
        eval *one = &check->evals[i];
        const bp_schema_node *node = &check->schema->nodes[one->node];
        one->members = is_object ? node->members : NULL;
        one->others = is_object ? node->additional : node->items;
        one->next_active = next;
        bool is_active =
            one->members != NULL || one->others >= 0 || (is_object && node->names >= 0);
        next = is_active ? i : next;
    }
    return next;
}

static void begin(bp_json_check *check, const bp_json_token *token) {
    int first = check->eval_count;
    if (check->depth == 0) {
        push_eval(check, 0, ROLE_PART, -1);
    } else {
        frame *open = &check->frames[check->depth - 1];
        open->count += !open->is_object;
        for (int i = open->first_active; i >= 0; i = check->evals[i].next_active) {
            push_eval(check, find_child(open, &check->evals[i]), ROLE_PART, i);
        }
    }
    /* What belongs to an evaluation comes behind it, here and in the loop. */
    for (int i = first; i < check->eval_count && check->fault.why == NULL; i++) {
        const bp_schema_node *node = &check->schema->nodes[check->evals[i].node];
        push_eval(check, node->reference, ROLE_PART, i);
        push_eval(check, node->on_true, ROLE_ON_TRUE, i);
        push_eval(check, node->on_false, ROLE_ON_FALSE, i);
        push_eval(check, node->condition, ROLE_CONDITION, i);
        push_eval(check, node->negated, ROLE_NEGATED, i);
        for (int k = 0; k < node->all_count; k++) {
            push_eval(check, check->schema->lists[node->all_first + k], ROLE_PART, i);
        }
        for (int k = 0; k < node->one_count; k++) {
            push_eval(check, check->schema->lists[node->one_first + k], ROLE_FORM, i);
        }
        for (int k = 0; k < node->any_count; k++) {
            push_eval(check, check->schema->lists[node->any_first + k], ROLE_CHOICE, i);
        }
        const char *why = bp_schema_check_value(&check->values, node, token);
        if (why != NULL) {
            fail_eval(check, &check->evals[i], (fault){why, -1}, check->depth);
        }
    }
    frame opened = {.is_object = token->text[0] == '{', .first_eval = first, .key = -1};
    opened.first_active = list_active(check, first, opened.is_object);
    check->frames[check->depth++] = opened;
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
    const bp_schema_node *node = &check->schema->nodes[one->node];
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
        switch ((role)one->role) {
        case ROLE_PART:
            if (owner != NULL && wrong.why != NULL) {
                fail_eval(check, owner, wrong, check->depth);
            }
            break;
        case ROLE_FORM:
            owner->forms += wrong.why == NULL;
            break;
        case ROLE_CHOICE:
            owner->choices += wrong.why == NULL;
            break;
        case ROLE_NEGATED:
            owner->is_negated_true = wrong.why == NULL;
            break;
        case ROLE_CONDITION:
            owner->is_condition_false = wrong.why != NULL;
            break;
        case ROLE_ON_TRUE: /* the condition is known: it was behind them */
        case ROLE_ON_FALSE:
            if (wrong.why != NULL && owner->is_condition_false == (one->role == ROLE_ON_FALSE)) {
                fail_eval(check, owner, wrong, check->depth);
            }
            break;
        }
    }
    check->eval_count = open->first_eval;
}

static void take_key(bp_json_check *check, const bp_json_token *token) {
    frame *open = &check->frames[check->depth - 1];
    open->count++;
    size_t byte_count;
    const char *text = bp_schema_decode(&check->values, token, &byte_count);
    open->key = bp_schema_find_key(check->schema, text, byte_count);
    if (open->key >= 0) {
        open->seen[open->key / 64] |= (uint64_t)1 << open->key % 64;
    }
    for (int i = check->schema->names_keys ? open->first_active : -1; i >= 0;
         i = check->evals[i].next_active) {
        const char *why = bp_schema_check_scalar(
            &check->values, check->schema->nodes[check->evals[i].node].names, token);
        if (why != NULL) {
            fail_eval(check, &check->evals[i], (fault){"has a key that is not allowed", -1},
                      check->depth - 1);
        }
    }
}

static void take_scalar(bp_json_check *check, const bp_json_token *token) {
    if (check->depth == 0) {
        check->fault = (fault){bp_schema_check_scalar(&check->values, 0, token), -1};
        return;
    }
    frame *open = &check->frames[check->depth - 1];
    open->count += !open->is_object;
    for (int i = open->first_active; i >= 0; i = check->evals[i].next_active) {
        eval *one = &check->evals[i];
        check->values.steps++;
        int child = find_child(open, one);
        const char *why = bp_schema_check_scalar(&check->values, child, token);
        if (why == NULL && check->schema->nodes[one->node].is_unique && !open->is_object) {
            int value =
                bp_schema_find_constant(&check->values, &check->schema->nodes[child], token);
            why = (one->seen_values >> value & 1) != 0 ? "is there twice" : NULL;
            one->seen_values |= (uint64_t)1 << value;
        }
        if (why != NULL) {
            fail_eval(check, one, (fault){why, -1}, check->depth);
        }
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
