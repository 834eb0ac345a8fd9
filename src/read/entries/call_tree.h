/*
 * profile.folded as a tree: how many samples each thread and function has, with what it calls. The
 * text may be hostile.
 */
#ifndef BP_ENTRIES_CALL_TREE_H
#define BP_ENTRIES_CALL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "model/frame_text.h"

enum {
    BP_CALL_TREE_NODE_MAX = 1 << 18,
    BP_CALL_TREE_NAME_MAX = 1 << 17, /* all different */
    BP_CALL_TREE_DEPTH_MAX = 512,    /* of a stack, with its thread; what is deeper is one "…" */
    BP_CALL_TREE_LABEL_BYTES = 256   /* of a name that is shown whole, with its NUL */
};

/* A thread, or a function that another called. Nodes are named by their index; 0 is the root, which
 * has no name, and as a child or sibling means none. */
typedef struct bp_call_node {
    uint32_t name, parent;
    uint32_t first_child, next; /* most samples first; once the profile has ended */
    uint64_t samples;           /* with those of its children */
} bp_call_node;

typedef struct bp_call_name {
    size_t text, byte_count; /* in `texts`, where a NUL follows */
    uint64_t self_samples;   /* in this function, and in none that it called, of all threads */
} bp_call_name;

/* All zero is an empty one. */
typedef struct bp_call_tree {
    bp_call_node *nodes;
    size_t node_count, node_capacity;
    bp_call_name *names;
    size_t name_count, name_capacity;
    bp_buffer texts;
    uint32_t *node_slots, *name_slots; /* places, from 1, by hash; 0 is free */
    uint64_t seed;
    uint64_t line_count, bad_line_count;
    uint64_t left_samples; /* of lines that found no room */
} bp_call_tree;

/* Adds a line, as a bp_json_line_taker whose context is the tree. One that is malformed, or finds
 * no room, is only counted. NO_MEMORY; then it is empty.
 */
bugpack_status bp_call_tree_add(void *tree, const char *line, size_t line_bytes);
/* After the last line. NO_MEMORY. */
bugpack_status bp_call_tree_end(bp_call_tree *tree);
void bp_call_tree_release(bp_call_tree *tree);

uint64_t bp_call_tree_samples(const bp_call_tree *tree);
const char *bp_call_tree_text(const bp_call_tree *tree, const bp_call_name *name);
const char *bp_call_tree_node_name(const bp_call_tree *tree, uint32_t node);
/* True if a function has at least half of the samples of its thread. */
bool bp_call_tree_is_half(const bp_call_tree *tree, uint32_t node, uint32_t thread);
/* The node of the threads of that name; 0: they have no samples. */
uint32_t bp_call_tree_thread(const bp_call_tree *tree, const char *name);
/* The samples in a function itself, of all threads. */
uint64_t bp_call_tree_self(const bp_call_tree *tree, const char *function);

/* The functions with most samples of their own, most first; how many, at most `max`. */
size_t bp_call_tree_top(const bp_call_tree *tree, const bp_call_name *ret_names[], size_t max);

/*
 * Where a thread spends its time: from it to the heaviest child, and on, while that one has at
 * least half of the samples of the thread; innermost first, without the kernel below a system call,
 * and folded as the frames of a stack are (entries/frames.h). `samples` are those of the first
 * function, with what it calls; where it calls itself, of the outermost in that row.
 */
typedef struct bp_call_path {
    uint32_t nodes[BP_CALL_TREE_DEPTH_MAX];
    size_t count; /* 0: no function has half of the samples */
    uint64_t samples;
    uint32_t caller; /* of the first function; 0: none */
} bp_call_path;
void bp_call_tree_find_path(const bp_call_tree *tree, uint32_t thread, bp_call_path *ret_path);
/* "count_primes < price_all < main"; "" for an empty one. */
void bp_call_tree_print_path(const bp_call_tree *tree, const bp_call_path *path,
                             char out[BP_FRAME_LIST_BYTES]);
/* "count_primes": a name for a line with several. */
void bp_call_tree_short_name(const bp_call_tree *tree, uint32_t node,
                             char out[BP_FRAME_NAME_BYTES]);

#endif
