/* Diagnoses of calls that wait on an object: a file system, a FIFO, a queue, a semaphore. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "diagnose/evidence.h"

enum { clause_bytes = 512, path_max = 120 };

/* "for a reply of the sshfs file system": what a call waits for, as the end of a sentence. */
typedef struct blocked {
    char clause[clause_bytes];
    const bp_json_tree *process; /* that it depends on; NULL: none that is known */
    bp_diagnosis row;            /* CALL_WAITS: so does who waits for the next job */
} blocked;

static void copy_path(const char *path, const char *otherwise, char out[path_max]) {
    path = path[0] != '\0' ? path : otherwise;
    bp_utf8_copy_ends(out, path_max, path, strlen(path));
}

static uint64_t number_of(const bp_thread *thread, unsigned place) {
    const char *argument = bp_thread_call_argument(thread, place);
    return argument[0] != '\0' ? strtoull(argument, NULL, 16) : UINT64_MAX; /* not known */
}

/* open(2) of a FIFO waits in wait_for_partner (fs/pipe.c) until its other end is opened. */
static bool find_fifo(const bp_thread *thread, const char *path, blocked *found) {
    enum { ACCESS = 3, WRITE_ONLY = 1 };
    char cut[path_max];
    bool is_plain = strcmp(thread->syscall, "open") == 0;
    bool writes = (number_of(thread, is_plain ? 1 : 2) & ACCESS) == WRITE_ONLY;
    if ((!is_plain && strcmp(thread->syscall, "openat") != 0) ||
        strcmp(bp_json_tree_text_or(thread->row, "wait_channel", ""), "wait_for_partner") != 0) {
        return false;
    }
    copy_path(path, "a FIFO", cut);
    (void)snprintf(found->clause, clause_bytes, "until another process opens the FIFO %s for %s",
                   cut, writes ? "reading" : "writing");
    found->row = writes ? BP_DIAGNOSIS_CALL_BLOCKED : BP_DIAGNOSIS_CALL_WAITS;
    return true;
}

/* A named semaphore that nobody else has open: the process that posts it may have ended, or not
 * have begun. */
static bool find_named_semaphore(const bp_thread *thread, blocked *found) {
    const char *name =
        bp_json_tree_text_or(bp_json_tree_object(thread->row, "syscall"), "semaphore", "");
    char cut[path_max];
    copy_path(name, "", cut);
    (void)snprintf(found->clause, clause_bytes,
                   "for the semaphore /dev/shm/%s, which no other process has open", cut);
    found->row = BP_DIAGNOSIS_CALL_WAITS;
    return name[0] != '\0';
}

/* A terminal takes nothing while it is stopped, and a queue while it is full. */
static bool find_full(const bp_evidence *evidence, const bp_thread *thread, blocked *found) {
    static const char *const terminals[] = {"/dev/pts/", "/dev/tty", "/dev/console", NULL};
    const bp_json_tree *file = bp_evidence_file(evidence, number_of(thread, 0));
    char cut[path_max];
    copy_path(bp_json_tree_text_or(file, "target", ""), "?", cut);
    if (strncmp(thread->syscall, "write", 5) == 0 && bp_array_has_start(terminals, cut)) {
        (void)snprintf(found->clause, clause_bytes,
                       "for the terminal %s, which takes no output: it was stopped, as by Ctrl-S, "
                       "which Ctrl-Q ends, or the program that shows it does not read",
                       cut);
    } else if (strcmp(thread->syscall, "mq_timedsend") == 0 && file != NULL) {
        (void)snprintf(found->clause, clause_bytes,
                       "for room in the message queue %s, which is full", cut);
    } else if (strcmp(thread->syscall, "msgsnd") == 0) {
        (void)snprintf(found->clause, clause_bytes,
                       "for room in the message queue %" PRIu64 " of System V, which is full",
                       number_of(thread, 0));
    } else {
        return false;
    }
    found->row = BP_DIAGNOSIS_CALL_BLOCKED;
    return true;
}

/*
 * The process that changed a semaphore last took it, as far as a thread waits for it: a lock that
 * it holds. In a pool that waits for work it is one of those that wait, and nothing is said.
 */
static bool find_semaphore(const bp_json_tree *wait, blocked *found) {
    const bp_json_tree *holder = bp_json_tree_object(wait, "holder");
    const bp_json_tree *last = bp_json_tree_rows(wait, "chain");
    bool has_ended = bp_json_tree_is_true(wait, "holder_ended");
    const char *state = bp_json_tree_text_or(holder, "state", "");
    if (holder == NULL || bp_json_tree_text(last, "waits_for") != NULL) {
        return false;
    }
    (void)snprintf(found->clause, clause_bytes,
                   "for semaphore %" PRIu64 " of set %" PRIu64
                   " of System V; the last that changed "
                   "it%s was",
                   bp_json_tree_uint_or(wait, "number", 0), bp_json_tree_uint_or(wait, "set", 0),
                   has_ended ? ", and has ended," : "");
    found->process = holder;
    bool is_left = has_ended || strcmp(state, "stopped") == 0;
    found->row = is_left ? BP_DIAGNOSIS_CALL_BLOCKED : BP_DIAGNOSIS_CALL_WAITS;
    return true;
}

static bool find_blocked(const bp_evidence *evidence, const bp_thread *thread, blocked *ret_found) {
    const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
    const char *path =
        bp_json_tree_text_or(bp_json_tree_object(thread->row, "syscall"), "path", "");
    blocked found = {.row = BP_DIAGNOSIS_CALL_UNANSWERED};
    if (evidence->window_ms < BP_EVIDENCE_ANSWER_WINDOW_MS || !bp_thread_is_idle(thread) ||
        thread->is_own) {
        return false;
    }
    bool is_found = strcmp(thread->waits_for_kind, "filesystem") == 0;
    if (is_found) {
        char cut[path_max], point[path_max];
        copy_path(path, "a file", cut);
        copy_path(bp_json_tree_text_or(wait, "path", ""), "?", point);
        found.process = bp_json_tree_object(wait, "holder");
        (void)snprintf(
            found.clause, clause_bytes, "of %s for an answer of the file system at %s (%s %s)%s",
            cut, point, bp_json_tree_text_or(wait, "type", "?"),
            bp_json_tree_text_or(wait, "source", "?"), found.process != NULL ? ", served by" : "");
    } else if (strcmp(thread->waits_for_kind, "semaphore") == 0) {
        is_found = find_semaphore(wait, &found);
    } else {
        is_found = find_fifo(thread, path, &found) || find_named_semaphore(thread, &found) ||
                   find_full(evidence, thread, &found);
    }
    *ret_found = found;
    return is_found;
}

void bp_diagnose_call_blocked(bp_evidence *evidence) {
    const bp_thread *first = NULL;
    uint64_t other_count = 0;
    blocked shown = {.process = NULL};
    for (size_t i = 0; i < evidence->thread_count; i++) {
        blocked found;
        bool is_there = find_blocked(evidence, &evidence->threads[i], &found);
        if (is_there && found.row == evidence->running) {
            other_count += first != NULL;
            shown = first == NULL ? found : shown;
            first = first == NULL ? &evidence->threads[i] : first;
        }
    }
    if (first != NULL) {
        bool is_named = bp_json_tree_text_or(shown.process, "name", "")[0] != '\0';
        bp_argument id = BP_COUNT(bp_json_tree_uint_or(shown.process, "pid", 0));
        bp_find(evidence,
                "thread {} waits in {} {}{[ {}]}" AND_MORE_THREADS "; for all of the {} measured",
                bp_thread_argument(first), BP_TEXT(first->syscall), BP_TEXT(shown.clause),
                is_named ? bp_process_argument(shown.process) : id, BP_COUNT(other_count),
                BP_SECS(evidence->window_ms));
    }
}

/* A call keeps the file, and goes on waiting, when another thread closes the descriptor (close(2)).
 * A call on a descriptor that is closed before it begins fails at once. */
void bp_diagnose_closed_descriptor(bp_evidence *evidence) {
    const bp_thread *first = NULL;
    uint64_t other_count = 0;
    char function[BP_FRAME_NAME_BYTES];
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (bp_json_tree_is_true(thread->row, "descriptor_closed") && bp_thread_is_idle(thread) &&
            !thread->is_own) {
            other_count += first != NULL;
            first = first == NULL ? thread : first;
        }
    }
    if (first != NULL && evidence->window_ms >= BP_EVIDENCE_ANSWER_WINDOW_MS) {
        bp_thread_print_function(evidence, first, function);
        bp_find(
            evidence,
            "thread {} waits in {}{[, called by {},]} on descriptor {}, which another thread has "
            "closed: that does not end the call" AND_MORE_THREADS "; for all of the {} measured",
            bp_thread_argument(first), BP_TEXT(first->syscall), BP_TEXT(function),
            BP_COUNT(number_of(first, 0)), BP_COUNT(other_count), BP_SECS(evidence->window_ms));
    }
}
