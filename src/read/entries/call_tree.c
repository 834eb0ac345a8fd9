#include "entries/call_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "entries/frames.h"

enum {
    node_slot_count = 2 * BP_CALL_TREE_NODE_MAX, /* half of them stay free; a power of two */
    name_slot_count = 2 * BP_CALL_TREE_NAME_MAX
};
static const size_t texts_max_bytes = (size_t)6 << 20;
static const char ellipsis[] = "\u2026";

/* --- lines -------------------------------------------------------------------------------- */

/* No name may be empty, or hold what a terminal could obey. */
static bool is_stack(const char *stack, size_t byte_count) {
    if (byte_count == 0 || stack[0] == ';' || stack[byte_count - 1] == ';') {
        return false;
    }
    for (size_t i = 0; i < byte_count; i++) {
        unsigned char byte = (unsigned char)stack[i];
        bool is_empty = byte == ';' && stack[i + 1] == ';';
        if (is_empty || byte < 0x20 || byte == 0x7f) {
            return false;
        }
    }
    return bp_utf8_is_valid(stack, byte_count);
}

/* Divides a line without its newline: "THREAD;main;serve 182". False where it is malformed. */
static bool divide(const char *line, size_t line_bytes, size_t *ret_stack_bytes,
                   uint64_t *ret_samples) {
    uint64_t samples = 0, digit_weight = 1;
    size_t at = line_bytes;
    for (; at > 0 && line[at - 1] >= '0' && line[at - 1] <= '9'; at--) {
        uint64_t digit = (uint64_t)(line[at - 1] - '0');
        if (digit_weight > UINT32_MAX || (samples += digit * digit_weight) > UINT32_MAX) {
            return false;
        }
        digit_weight *= 10;
    }
    if (samples == 0 || at == 0 || line[at - 1] != ' ') {
        return false;
    }
    *ret_stack_bytes = at - 1;
    *ret_samples = samples;
    return is_stack(line, at - 1);
}

/* --- the tree ----------------------------------------------------------------------------- */

/* The slot of a name, or the free one where it belongs. */
static uint32_t *find_name(const bp_call_tree *tree, const char *text, size_t byte_count) {
    size_t at = (size_t)XXH3_64bits_withSeed(text, byte_count, tree->seed);
    for (;; at++) {
        uint32_t *slot = &tree->name_slots[at & (name_slot_count - 1)];
        const bp_call_name *name = *slot != 0 ? &tree->names[*slot - 1] : NULL;
        if (name == NULL ||
            (name->byte_count == byte_count &&
             memcmp(bp_buffer_text(&tree->texts) + name->text, text, byte_count) == 0)) {
            return slot;
        }
    }
}

/* The same of a node. */
static uint32_t *find_node(const bp_call_tree *tree, uint32_t parent, uint32_t name) {
    const uint32_t key[] = {parent, name};
    size_t at = (size_t)XXH3_64bits_withSeed(key, sizeof key, tree->seed);
    for (;; at++) {
        uint32_t *slot = &tree->node_slots[at & (node_slot_count - 1)];
        const bp_call_node *node = *slot != 0 ? &tree->nodes[*slot - 1] : NULL;
        if (node == NULL || (node->parent == parent && node->name == name)) {
            return slot;
        }
    }
}

/* LIMIT where there is no room for one more. */
static bugpack_status add_name(bp_call_tree *tree, const char *text, size_t byte_count,
                               uint32_t *ret_name) {
    uint32_t *slot = find_name(tree, text, byte_count);
    if (*slot == 0) {
        bp_call_name name = {.text = tree->texts.size, .byte_count = byte_count};
        if (tree->name_count == BP_CALL_TREE_NAME_MAX ||
            name.text + byte_count + 1 > texts_max_bytes) {
            return BUGPACK_ERR_LIMIT;
        }
        (void)bp_buffer_append(&tree->texts, text, byte_count);
        if (bp_buffer_append_char(&tree->texts, '\0') != BUGPACK_OK ||
            !bp_array_reserve(&tree->names, tree->name_count, &tree->name_capacity)) {
            return BUGPACK_ERR_NO_MEMORY;
        }
        tree->names[tree->name_count++] = name;
        *slot = (uint32_t)tree->name_count;
    }
    *ret_name = *slot - 1;
    return BUGPACK_OK;
}

/* The child of a node, which becomes that one. */
static bugpack_status add_node(bp_call_tree *tree, const char *text, size_t byte_count,
                               uint32_t *node) {
    uint32_t name = 0;
    bugpack_status status = add_name(tree, text, byte_count, &name);
    if (status != BUGPACK_OK) {
        return status;
    }
    uint32_t *slot = find_node(tree, *node, name);
    if (*slot == 0) {
        if (tree->node_count == BP_CALL_TREE_NODE_MAX) {
            return BUGPACK_ERR_LIMIT;
        }
        if (!bp_array_reserve(&tree->nodes, tree->node_count, &tree->node_capacity)) {
            return BUGPACK_ERR_NO_MEMORY;
        }
        tree->nodes[tree->node_count++] = (bp_call_node){.name = name, .parent = *node};
        *slot = (uint32_t)tree->node_count;
    }
    *node = *slot - 1;
    return BUGPACK_OK;
}

/* The tables are as large as they may get: the kernel gives the pages that are used. */
static bugpack_status begin(bp_call_tree *tree) {
    tree->node_slots = calloc(node_slot_count, sizeof *tree->node_slots);
    tree->name_slots = calloc(name_slot_count, sizeof *tree->name_slots);
    tree->seed = bp_clock_monotonic_ns() ^ (uint64_t)(uintptr_t)tree->node_slots << 20;
    bp_buffer_init(&tree->texts, texts_max_bytes);
    if (tree->node_slots == NULL || tree->name_slots == NULL ||
        !bp_array_reserve(&tree->nodes, 0, &tree->node_capacity)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    tree->nodes[tree->node_count++] = (bp_call_node){.name = 0};
    return BUGPACK_OK;
}

/* Finds the node of a stack. What it has to add stays without samples if the rest finds no room. */
static bugpack_status walk(bp_call_tree *tree, const char *stack, size_t byte_count,
                           uint32_t *ret_node) {
    const char *at = stack, *end = stack + byte_count;
    uint32_t node = 0;
    bugpack_status status = BUGPACK_OK;
    for (size_t depth = 1; at < end && status == BUGPACK_OK; depth++) {
        const char *semicolon = memchr(at, ';', (size_t)(end - at));
        const char *name_end = semicolon != NULL ? semicolon : end;
        if (depth == BP_CALL_TREE_DEPTH_MAX && semicolon != NULL) {
            status = add_node(tree, ellipsis, sizeof ellipsis - 1, &node);
            break;
        }
        status = add_node(tree, at, (size_t)(name_end - at), &node);
        at = name_end + 1;
    }
    *ret_node = node;
    return status;
}

bugpack_status bp_call_tree_add(void *context, const char *line, size_t line_bytes) {
    bp_call_tree *tree = context;
    size_t stack_bytes = 0;
    uint64_t samples = 0;
    uint32_t node = 0;
    tree->line_count++;
    if (!divide(line, line_bytes, &stack_bytes, &samples)) {
        tree->bad_line_count++;
        return BUGPACK_OK;
    }
    bugpack_status status = tree->node_count == 0 ? begin(tree) : BUGPACK_OK;
    status = status == BUGPACK_OK ? walk(tree, line, stack_bytes, &node) : status;
    if (status == BUGPACK_ERR_LIMIT) {
        tree->left_samples += samples;
        return BUGPACK_OK;
    }
    if (status != BUGPACK_OK) {
        bp_call_tree_release(tree);
        return status;
    }
    for (; node != 0; node = tree->nodes[node].parent) {
        tree->nodes[node].samples += samples;
    }
    tree->nodes[0].samples += samples;
    return BUGPACK_OK;
}

typedef struct ranked_node {
    uint64_t samples;
    uint32_t node;
} ranked_node;

/* Fewest first; of equal ones the last. */
static int compare_samples(const void *one, const void *other) {
    const ranked_node *left = one, *right = other;
    return left->samples != right->samples
               ? (left->samples > right->samples) - (left->samples < right->samples)
               : (left->node < right->node) - (left->node > right->node);
}

bugpack_status bp_call_tree_end(bp_call_tree *tree) {
    size_t count = tree->node_count;
    ranked_node *ranked = count > 0 ? malloc(count * sizeof *ranked) : NULL;
    if (ranked == NULL) {
        return count == 0 ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        ranked[i] = (ranked_node){tree->nodes[i].samples, (uint32_t)i};
    }
    qsort(ranked, count, sizeof *ranked, compare_samples);
    for (size_t i = 0; i < count; i++) {
        bp_call_node *node = &tree->nodes[ranked[i].node];
        if (ranked[i].node != 0 && node->samples > 0) { /* each goes to the front of its siblings */
            node->next = tree->nodes[node->parent].first_child;
            tree->nodes[node->parent].first_child = ranked[i].node;
        }
    }
    for (size_t i = 0; i < count; i++) {
        const bp_call_node *node = &tree->nodes[i];
        const bp_call_node *parent = &tree->nodes[node->parent];
        if (node->parent != 0) { /* a thread is no function */
            tree->names[node->name].self_samples += node->samples;
        }
        if (node->parent != 0 && parent->parent != 0) {
            tree->names[parent->name].self_samples -= node->samples;
        }
    }
    free(ranked);
    return BUGPACK_OK;
}

void bp_call_tree_release(bp_call_tree *tree) {
    free(tree->nodes);
    free(tree->names);
    bp_buffer_release(&tree->texts);
    free(tree->node_slots);
    free(tree->name_slots);
    *tree = (bp_call_tree){.node_count = 0};
}

/* --- what it says ------------------------------------------------------------------------- */

uint64_t bp_call_tree_samples(const bp_call_tree *tree) {
    return tree->node_count > 0 ? tree->nodes[0].samples : 0;
}

const char *bp_call_tree_text(const bp_call_tree *tree, const bp_call_name *name) {
    return bp_buffer_text(&tree->texts) + name->text;
}

bool bp_call_tree_is_half(const bp_call_tree *tree, uint32_t node, uint32_t thread) {
    uint64_t samples = tree->nodes[node].samples;
    return samples >= tree->nodes[thread].samples - samples;
}

const char *bp_call_tree_node_name(const bp_call_tree *tree, uint32_t node) {
    return bp_call_tree_text(tree, &tree->names[tree->nodes[node].name]);
}

uint32_t bp_call_tree_thread(const bp_call_tree *tree, const char *name) {
    uint32_t index = tree->node_count > 0 ? *find_name(tree, name, strlen(name)) : 0;
    uint32_t place = index != 0 ? *find_node(tree, 0, index - 1) : 0;
    return place != 0 && tree->nodes[place - 1].samples > 0 ? place - 1 : 0;
}

uint64_t bp_call_tree_self(const bp_call_tree *tree, const char *function) {
    uint32_t place = tree->node_count > 0 ? *find_name(tree, function, strlen(function)) : 0;
    return place != 0 ? tree->names[place - 1].self_samples : 0;
}

size_t bp_call_tree_top(const bp_call_tree *tree, const bp_call_name *ret_names[], size_t max) {
    size_t count = 0;
    for (size_t i = 0; i < tree->name_count; i++) {
        const bp_call_name *name = &tree->names[i];
        size_t at = count;
        while (at > 0 && name->self_samples > ret_names[at - 1]->self_samples) {
            at--;
        }
        if (name->self_samples > 0 && at < max) {
            count += count < max;
            memmove(&ret_names[at + 1], &ret_names[at], (count - at - 1) * sizeof *ret_names);
            ret_names[at] = name;
        }
    }
    return count;
}

/* --- the heaviest path -------------------------------------------------------------------- */

/* "[libc.so.6+0x1234]" is of a file. Other names have none here: what is of the C library
 * is known by how it begins. The address is the node. */
static bp_frame_text frame_of(const bp_call_tree *tree, uint32_t node) {
    static const char *const library[] = {
        "_start", "start_thread", "clone", "clone3", "execute_native_thread_routine", NULL};
    const char *name = bp_call_tree_node_name(tree, node);
    bool is_library = strncmp(name, "__", 2) == 0 || bp_array_has_text(library, name);
    const char *module = name[0] == '[' ? name + 1 : NULL;
    return (bp_frame_text){.symbol = name,
                           .demangled = strpbrk(name, "(<:") != NULL ? name : NULL,
                           .module = is_library ? "libc.so" : module,
                           .address = node};
}

static void take_node(void *context, const bp_frame_text *frame) {
    bp_call_path *path = context;
    if (strcmp(frame->symbol, "[...]") == 0) { /* what called the next one was not found */
        return;
    }
    path->nodes[path->count++] = (uint32_t)frame->address;
}

void bp_call_tree_find_path(const bp_call_tree *tree, uint32_t thread, bp_call_path *ret_path) {
    const bp_call_node *nodes = tree->nodes;
    bp_frame_fold fold = {.take = take_node, .context = ret_path};
    uint32_t node = thread;
    for (uint32_t next = nodes[node].first_child;
         next != 0 && bp_call_tree_is_half(tree, next, thread); next = nodes[node].first_child) {
        bool is_kernel = strcmp(bp_call_tree_node_name(tree, next), "[kernel]") == 0;
        if (is_kernel && node != thread) { /* the call says more */
            break;
        }
        node = next;
    }
    ret_path->count = 0;
    for (; node != thread; node = nodes[node].parent) {
        const bp_frame_text frame = frame_of(tree, node);
        bp_frame_fold_add(&fold, &frame);
    }
    bp_frame_fold_end(&fold);
    size_t outermost = 0;
    while (outermost + 1 < ret_path->count &&
           nodes[ret_path->nodes[outermost + 1]].name == nodes[ret_path->nodes[0]].name) {
        outermost++;
    }
    ret_path->samples = ret_path->count > 0 ? nodes[ret_path->nodes[outermost]].samples : 0;
    ret_path->caller = outermost + 1 < ret_path->count ? ret_path->nodes[outermost + 1] : 0;
}

void bp_call_tree_print_path(const bp_call_tree *tree, const bp_call_path *path,
                             char out[BP_FRAME_LIST_BYTES]) {
    bp_frame_list list = {.used = 0};
    for (size_t i = 0; i < path->count; i++) {
        const bp_frame_text frame = frame_of(tree, path->nodes[i]);
        bp_frame_list_add(&list, &frame);
    }
    bp_frame_list_end(&list, true);
    memcpy(out, list.text, sizeof list.text);
}

void bp_call_tree_short_name(const bp_call_tree *tree, uint32_t node,
                             char out[BP_FRAME_NAME_BYTES]) {
    const bp_frame_text frame = frame_of(tree, node);
    bp_frame_short_name(&frame, out);
}
