/* Diagnoses of interpreters and databases, whose locks and stacks the kernel does not know. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/evidence.h"

/* Who looks further: executables by the beginning of their names. */
typedef struct bp_runtime {
    const char *executable, *tool; /* the tool before the process id */
} bp_runtime;

static const bp_runtime runtimes[] = {
    {"python", "py-spy dump --pid"},
    {"ruby", "rbspy snapshot --pid"},
};

static const bp_runtime *find_runtime(const bp_evidence *evidence) {
    const char *path = bp_json_tree_text_or(evidence->process, "executable", "");
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < sizeof runtimes / sizeof runtimes[0]; i++) {
        if (strncmp(name, runtimes[i].executable, strlen(runtimes[i].executable)) == 0) {
            return &runtimes[i];
        }
    }
    return NULL;
}

/* True if it waits on a futex without a limit of time: its fourth argument is null (futex(2)),
 * which those that only wake have not. */
static bool waits_for_ever(const bp_thread *thread) {
    enum { operation_at = 1, limit_at = 3 };
    enum { command_mask = 0x7f, command_wait = 0, command_wait_bitset = 9 }; /* linux/futex.h */
    const bp_json_tree *argument =
        bp_json_tree_rows(bp_json_tree_object(thread->row, "syscall"), "arguments");
    uint64_t values[limit_at + 1];
    size_t count = 0;
    for (; argument != NULL && count <= limit_at; argument = bp_json_tree_next(argument)) {
        values[count++] = strtoull(bp_json_tree_value(argument), NULL, 16);
    }
    if (strcmp(thread->syscall, "futex") != 0 || count <= limit_at || values[limit_at] != 0) {
        return false;
    }
    uint64_t command = values[operation_at] & command_mask;
    return (command == command_wait || command == command_wait_bitset) && thread->cpu_ms <= 0;
}

/* No thread waits for anything from outside, or for a time: what they wait for can only come from
 * each other, or from a signal. A server that is idle has one that reads, polls or accepts. */
void bp_diagnose_interpreter(bp_evidence *evidence) {
    const bp_runtime *runtime = find_runtime(evidence);
    uint64_t count = 0, pid = 0;
    if (runtime == NULL || !bp_json_tree_uint(evidence->process, "pid", &pid)) {
        return;
    }
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (bp_thread_has_ended(thread)) {
            continue;
        }
        if (!thread->is_listed || !waits_for_ever(thread)) {
            return;
        }
        count++;
    }
    if (count >= 2) {
        bp_find(evidence,
                "all threads of this {} ({}) wait for locks without a limit of time, and none for "
                "anything outside; {} {} shows where",
                BP_TEXT(runtime->executable), BP_COUNT(count), BP_TEXT(runtime->tool),
                BP_COUNT(pid));
    }
}

/*
 * The locks of a database are in its own memory. A session of PostgreSQL writes into its title what
 * it does, and " waiting" behind that while another session holds the lock it needs ("Standard Unix
 * Tools" in its manual). It is said of one that did not run in the window.
 */
void bp_diagnose_database_lock(bp_evidence *evidence) {
    static const char begin[] = "postgres: ", end[] = " waiting";
    static const double window_min_ms = 100;
    const bp_json_tree *argument = bp_json_tree_rows(evidence->process, "command_line");
    const char *title = argument != NULL ? bp_json_tree_value_text(argument) : NULL;
    size_t length = title != NULL ? strlen(title) : 0;
    uint64_t pid = 0;
    if (length < sizeof begin + sizeof end || strncmp(title, begin, sizeof begin - 1) != 0 ||
        strcmp(title + length - (sizeof end - 1), end) != 0 || evidence->thread_count != 1 ||
        evidence->window_ms < window_min_ms || !bp_thread_is_idle(&evidence->threads[0]) ||
        !bp_json_tree_uint(evidence->process, "pid", &pid)) {
        return;
    }
    bp_find(evidence,
            "this session waits for a lock of the database, as its title says: \"{}\"; it did not "
            "run for all of the {} measured; SELECT pg_blocking_pids({}) names the sessions that "
            "hold it",
            BP_CUT_TEXT(title, 160), BP_SECS(evidence->window_ms), BP_TID(pid));
}
