#include "facts/waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* The place of a node, which is made if it is not there; BP_WAITS_NODE_MAX where there is no room.
 */
static size_t find_node(bp_waits *waits, uint64_t id, const char *name, const char *state) {
    size_t i = 0;
    while (i < waits->node_count && waits->nodes[i].id != id) {
        i++;
    }
    if (i == BP_WAITS_NODE_MAX) {
        waits->is_cut = true;
        return i;
    }
    bp_waits_node *node = &waits->nodes[i];
    if (i == waits->node_count) {
        waits->node_count++;
        *node = (bp_waits_node){.id = id, .count = 1};
    }
    if (node->name[0] == '\0') {
        bp_utf8_copy(node->name, sizeof node->name, name);
    }
    if (node->state[0] == '\0') {
        bp_utf8_copy(node->state, sizeof node->state, state);
    }
    return i;
}

static void add_edge(bp_waits *waits, size_t from, size_t to, const char *label) {
    if (from >= BP_WAITS_NODE_MAX || to >= BP_WAITS_NODE_MAX || from == to) {
        return;
    }
    for (size_t i = 0; i < waits->edge_count; i++) {
        if (waits->edges[i].from == from && waits->edges[i].to == to) {
            return;
        }
    }
    if (waits->edge_count == BP_WAITS_EDGE_MAX) {
        waits->is_cut = true;
        return;
    }
    bp_waits_edge *edge = &waits->edges[waits->edge_count++];
    *edge = (bp_waits_edge){.from = from, .to = to};
    bp_utf8_copy(edge->label, sizeof edge->label, label);
    waits->nodes[from].waits = true;
    waits->nodes[to].is_waited_for = true;
}

/* Counts a thread with one of its name that waits for the same; false if there is none. */
static bool is_counted(bp_waits *waits, const bp_thread *thread, uint64_t to_id,
                       const char *label) {
    for (size_t i = 0; i < waits->edge_count && !thread->is_waited_for; i++) {
        const bp_waits_edge *edge = &waits->edges[i];
        bp_waits_node *from = &waits->nodes[edge->from];
        if (waits->nodes[edge->to].id == to_id && from->id != thread->tid && !from->is_waited_for &&
            strcmp(edge->label, label) == 0 && strcmp(from->name, thread->name) == 0) {
            from->count++;
            return true;
        }
    }
    return false;
}

/* A process that is waited for: { pid, name, state }. */
static void add_process(bp_waits *waits, const bp_thread *thread, const bp_json_tree *process,
                        uint64_t own_pid, const char *label) {
    uint64_t pid = 0;
    if (!bp_json_tree_uint(process, "pid", &pid) || pid == own_pid || pid == thread->tid ||
        is_counted(waits, thread, pid, label)) {
        return;
    }
    size_t from = find_node(waits, thread->tid, thread->name, thread->state);
    add_edge(waits, from,
             find_node(waits, pid, bp_json_tree_text_or(process, "name", "?"),
                       bp_json_tree_text_or(process, "state", "")),
             label);
}

/* In a chain each process waits for the next. */
static void add_chain(bp_waits *waits, const bp_json_tree *wait) {
    BP_JSON_EACH (link, bp_json_tree_rows(wait, "chain")) {
        const bp_json_tree *next = bp_json_tree_next(link);
        uint64_t pid = 0, next_pid = 0;
        if (!bp_json_tree_uint(link, "pid", &pid) || !bp_json_tree_uint(next, "pid", &next_pid)) {
            return;
        }
        size_t from = find_node(waits, pid, bp_json_tree_text_or(link, "name", "?"),
                                bp_json_tree_text_or(link, "state", ""));
        size_t to = find_node(waits, next_pid, bp_json_tree_text_or(next, "name", "?"),
                              bp_json_tree_text_or(next, "state", ""));
        add_edge(waits, from, to, bp_json_tree_text_or(link, "waits_for", ""));
    }
}

static void add_thread(bp_waits *waits, const bp_evidence *process, const bp_thread *thread,
                       uint64_t own_pid) {
    static const char *const keys[] = {"holder", "process"};
    const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
    const bp_json_tree *end = bp_json_tree_rows(wait, "other_end");
    const bp_json_tree *chain = bp_json_tree_rows(wait, "chain");
    char label[48];
    uint64_t fd = 0;
    bp_utf8_copy(label, sizeof label, thread->waits_for_kind);
    for (char *at = label; (at = strchr(at, '_')) != NULL;) {
        *at = ' ';
    }
    if (bp_json_tree_uint(wait, "fd", &fd)) {
        (void)snprintf(label, sizeof label, "%.16s %" PRIu64, thread->waits_for_kind, fd);
    }
    const bp_thread *holder =
        thread->waits_for_tid != 0 ? bp_evidence_thread(process, thread->waits_for_tid) : NULL;
    if (holder != NULL && !is_counted(waits, thread, holder->tid, label)) {
        size_t from = find_node(waits, thread->tid, thread->name, thread->state);
        add_edge(waits, from, find_node(waits, holder->tid, holder->name, holder->state), label);
    }
    for (; end != NULL; end = bp_json_tree_next(end)) {
        add_process(waits, thread, end, own_pid, label);
    }
    for (size_t i = 0; i < 2 && holder == NULL; i++) {
        add_process(waits, thread, bp_json_tree_object(wait, keys[i]), own_pid, label);
    }
    add_process(waits, thread, chain, own_pid, label);
    add_chain(waits, wait);
}

void bp_waits_add(bp_waits *waits, const bp_evidence *process) {
    uint64_t own_pid = bp_json_tree_uint_or(process->process, "pid", 0);
    for (size_t i = 0; i < process->thread_count; i++) {
        const bp_thread *thread = &process->threads[i];
        if (thread->waits_for_kind[0] != '\0' || thread->waits_for_tid != 0) {
            add_thread(waits, process, thread, own_pid);
        }
    }
}

/* The first node that a node waits for, or the node itself. */
static size_t next_of(const bp_waits *waits, size_t node) {
    for (size_t i = 0; i < waits->edge_count; i++) {
        if (waits->edges[i].from == node) {
            return waits->edges[i].to;
        }
    }
    return node;
}

static bool is_in_circle(const bp_waits *waits, size_t node) {
    size_t at = next_of(waits, node);
    for (size_t steps = 0; steps < waits->node_count && at != node; steps++) {
        at = next_of(waits, at);
    }
    return at == node && next_of(waits, node) != node;
}

/* The longest way to a node from one that nobody waits for; in a circle it ends somewhere. */
static void find_depths(const bp_waits *waits, size_t depths[BP_WAITS_NODE_MAX]) {
    for (size_t round = 0; round < waits->node_count; round++) {
        for (size_t i = 0; i < waits->edge_count; i++) {
            const bp_waits_edge *edge = &waits->edges[i];
            bool is_both = waits->nodes[edge->from].is_cause && waits->nodes[edge->to].is_cause;
            size_t depth = depths[edge->from] + 1;
            depths[edge->to] = !is_both && depth > depths[edge->to] ? depth : depths[edge->to];
        }
    }
}

void bp_waits_end(bp_waits *waits) {
    bp_waits_node sorted[BP_WAITS_NODE_MAX];
    size_t depths[BP_WAITS_NODE_MAX] = {0}, places[BP_WAITS_NODE_MAX];
    size_t count = 0;
    for (size_t i = 0; i < waits->node_count; i++) {
        waits->nodes[i].is_cause =
            is_in_circle(waits, i) || (waits->nodes[i].is_waited_for && !waits->nodes[i].waits);
    }
    find_depths(waits, depths);
    for (size_t depth = 0; depth <= waits->node_count; depth++) {
        for (size_t i = 0; i < waits->node_count; i++) {
            if (depths[i] == depth) {
                places[i] = count;
                sorted[count++] = waits->nodes[i];
            }
        }
    }
    memcpy(waits->nodes, sorted, count * sizeof *sorted);
    for (size_t i = 0; i < waits->edge_count; i++) {
        waits->edges[i].from = places[waits->edges[i].from];
        waits->edges[i].to = places[waits->edges[i].to];
    }
}

static void print_node(const bp_waits_node *node, bp_buffer *out) {
    if (node->count > 1) {
        (void)bp_buffer_printf(out, "%" PRIu64 " x %s", node->count, node->name);
    } else {
        (void)bp_buffer_printf(out, "%s (%" PRIu64 ")", node->name, node->id);
    }
}

bool bp_waits_print(const bp_waits *waits, size_t node, bp_buffer *out) {
    bool begins = waits->nodes[node].waits && !waits->nodes[node].is_waited_for;
    bool is_seen[BP_WAITS_NODE_MAX] = {false};
    if (!begins && is_in_circle(waits, node)) { /* from its first, which is as good as any */
        size_t at = next_of(waits, node);
        begins = true;
        for (; at != node; at = next_of(waits, at)) {
            begins = begins && at > node;
        }
    }
    if (!begins) {
        return false;
    }
    print_node(&waits->nodes[node], out);
    while (waits->nodes[node].waits && !is_seen[node]) {
        is_seen[node] = true;
        size_t i = 0;
        while (waits->edges[i].from != node) {
            i++;
        }
        node = waits->edges[i].to;
        (void)bp_buffer_printf(out, " -> %s -> ", waits->edges[i].label);
        print_node(&waits->nodes[node], out);
    }
    (void)bp_buffer_printf(out, " %s", is_seen[node] ? "in a circle" : waits->nodes[node].state);
    return true;
}
