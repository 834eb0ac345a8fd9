/*
 * Who waits for whom: threads of the processes of a report, and other processes, with an arrow to
 * what each waits for. Everything in it may be hostile.
 */
#ifndef BP_FACTS_WAITS_H
#define BP_FACTS_WAITS_H

#include "base/buffer.h"
#include "diagnose/evidence.h"

enum { BP_WAITS_NODE_MAX = 20, BP_WAITS_EDGE_MAX = 40 };

/* A thread by its id, or a process by that of its first thread. */
typedef struct bp_waits_node {
    uint64_t id;
    uint64_t count; /* threads of that name that wait for the same */
    char name[64], state[24];
    bool waits, is_waited_for;
    bool is_cause; /* it waits for nobody that is known, or for itself through others */
} bp_waits_node;

typedef struct bp_waits_edge {
    size_t from, to; /* places of nodes */
    char label[48];  /* "mutex", "pipe 3" */
} bp_waits_edge;

typedef struct bp_waits {
    bp_waits_node nodes[BP_WAITS_NODE_MAX]; /* who waits is before the one it waits for */
    size_t node_count;
    bp_waits_edge edges[BP_WAITS_EDGE_MAX];
    size_t edge_count;
    bool is_cut; /* there was more than finds room */
} bp_waits;

/* Adds what the threads of a process wait for. */
void bp_waits_add(bp_waits *waits, const bp_evidence *process);

/* After the last process: puts the nodes in their order, and marks the causes. */
void bp_waits_end(bp_waits *waits);

/* "reader (12) -> pipe 3 -> child (13) stopped": from a node along what it waits for. False where
 * the chain of another node has it. */
bool bp_waits_print(const bp_waits *waits, size_t node, bp_buffer *out);

#endif
