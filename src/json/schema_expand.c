#include <stdlib.h>

#include "base/array.h"
#include "json/schema_private.h"

static bool add_part(const bp_json_schema *schema, bp_schema_expansion *out, int node,
                     bp_schema_role role, int owner) {
    bool is_owner_final = owner < 0 || out->parts[owner].is_final;
    if (node < 0 || out->part_count > BP_SCHEMA_PART_MAX) {
        return true;
    }
    if (!bp_array_reserve(&out->parts, out->part_count, &out->part_capacity)) {
        return false;
    }
    out->parts[out->part_count++] =
        (bp_schema_part){.node = &schema->nodes[node],
                         .owner = (int16_t)owner,
                         .role = (uint8_t)role,
                         .is_final = role == BP_SCHEMA_PART && is_owner_final};
    return true;
}

/* All that belong to a part come behind it, and a condition behind what depends on it. */
static bool add_parts(const bp_json_schema *schema, bp_schema_expansion *out, int node) {
    bool is_done = add_part(schema, out, node, BP_SCHEMA_PART, -1);
    for (int i = 0; is_done && i < (int)out->part_count; i++) {
        const bp_schema_node *one = out->parts[i].node;
        const struct {
            int node;
            bp_schema_role role;
        } children[] = {{one->reference, BP_SCHEMA_PART},
                        {one->on_true, BP_SCHEMA_ON_TRUE},
                        {one->on_false, BP_SCHEMA_ON_FALSE},
                        {one->condition, BP_SCHEMA_CONDITION},
                        {one->negated, BP_SCHEMA_NEGATED}};
        const struct {
            int first, count;
            bp_schema_role role;
        } lists[] = {{one->all_first, one->all_count, BP_SCHEMA_PART},
                     {one->one_first, one->one_count, BP_SCHEMA_FORM},
                     {one->any_first, one->any_count, BP_SCHEMA_CHOICE}};
        for (size_t k = 0; k < sizeof children / sizeof children[0]; k++) {
            is_done = is_done && add_part(schema, out, children[k].node, children[k].role, i);
        }
        for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
            for (int n = 0; n < lists[k].count; n++) {
                is_done = is_done && add_part(schema, out, schema->lists[lists[k].first + n],
                                              lists[k].role, i);
            }
        }
    }
    return is_done;
}

/* The node of a member or an element in a node of what contains it; -1: any will do. */
static int find_child(const bp_schema_node *node, int slot) {
    if (slot == BP_SCHEMA_ELEMENT_SLOT) {
        return node->items;
    }
    int child = slot >= BP_SCHEMA_KEY_SLOT && node->members != NULL
                    ? node->members[slot - BP_SCHEMA_KEY_SLOT]
                    : -1;
    return child >= 0 ? child : node->additional;
}

static bool add_children(const bp_json_schema *schema, bp_schema_expansion *out) {
    for (int slot = 0; slot < (int)schema->key_count + BP_SCHEMA_KEY_SLOT; slot++) {
        for (size_t i = 0; i < out->part_count; i++) {
            int child = find_child(out->parts[i].node, slot);
            if (child >= 0 &&
                !bp_array_reserve(&out->children, out->child_count, &out->child_capacity)) {
                return false;
            }
            if (child >= 0) {
                out->children[out->child_count++] =
                    (bp_schema_child){.part = (int16_t)i, .node = (int16_t)child};
            }
        }
        out->first_children[slot + 1] = out->child_count;
    }
    return true;
}

const bp_schema_expansion *bp_schema_expand(bp_json_schema *schema, int node) {
    bp_schema_expansion **place = &schema->nodes[node].expansion;
    if (*place == NULL) {
        bp_schema_expansion *made = calloc(1, sizeof *made);
        if (made == NULL || !add_parts(schema, made, node) || !add_children(schema, made)) {
            bp_schema_expansion_free(made);
            return NULL;
        }
        *place = made;
    }
    return *place;
}

void bp_schema_expansion_free(bp_schema_expansion *expansion) {
    if (expansion != NULL) {
        free(expansion->parts);
        free(expansion->children);
        free(expansion);
    }
}
