/* Diagnosis of a process that nobody can wake. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "diagnose/evidence.h"

/* True if the kernel itself may write to an eventfd of the process: for its asynchronous I/O, a
 * virtual machine, or a device. */
static bool may_be_told_by_kernel(const bp_evidence *evidence) {
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full",    "/dev/random",
                                          "/dev/tty",  "/dev/pts/", "/dev/urandom", NULL};
    for (size_t i = 0; i < evidence->files.count; i++) {
        const bp_json_tree *file = evidence->files.rows[i];
        const char *kind = bp_json_tree_text_or(file, "kind", "");
        bool is_device = strcmp(kind, "character_device") == 0 &&
                         !bp_array_has_start(devices, bp_json_tree_text_or(file, "target", ""));
        if (is_device || strcmp(kind, "other") == 0) {
            return true;
        }
    }
    return !bp_evidence_has_all_files(evidence) ||
           bp_json_tree_member(evidence->process, "mappings") == NULL ||
           bp_json_tree_is_true(evidence->process, "asynchronous_io");
}

/* The pipe or eventfd that a thread reads and only its own process can write to; NULL for none.
 * That nobody else has it is known where all processes were looked at. */
static const bp_json_tree *find_own_file(const bp_evidence *evidence, const bp_thread *thread) {
    const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
    const bp_json_tree *search = bp_json_tree_object(evidence->waits, "other_ends");
    const char *kind = bp_json_tree_text_or(wait, "kind", "");
    const bp_json_tree *limit = bp_json_tree_member(wait, "timed");
    bool is_read = strncmp(thread->syscall, "read", strlen("read")) == 0;
    bool is_endless_poll = strstr(thread->syscall, "poll") != NULL && limit != NULL &&
                           !bp_json_tree_is_true(wait, "timed");
    bool is_event = strcmp(kind, "eventfd") == 0 && (is_read || is_endless_poll) &&
                    !may_be_told_by_kernel(evidence);
    bool is_own = (is_event || (strcmp(kind, "pipe") == 0 && is_read)) &&
                  bp_json_tree_is_true(search, "complete") &&
                  bp_evidence_is_own_end(evidence, wait);
    return is_own ? wait : NULL;
}

/* True if it waits, without a limit of time, for what only a thread of its own process can do: to
 * wake a futex, whose fourth argument is null (futex(2)), or to write to a pipe or eventfd. */
static bool waits_for_own_threads(const bp_evidence *evidence, const bp_thread *thread) {
    const bp_json_tree *call = bp_json_tree_object(thread->row, "syscall");
    bool is_futex = bp_json_tree_is_true(call, "own_futex") &&
                    strcmp(bp_thread_call_argument(thread, 3), "0x0") == 0;
    return is_futex || find_own_file(evidence, thread) != NULL;
}

/*
 * True if a signal may run a handler, which may wake a thread. Those of faults come from what a
 * thread does itself, 32 and 33 are of the C library, and SIGINT of Python raises KeyboardInterrupt
 * as long as nobody replaces it.
 */
static bool may_handle_signal(const bp_json_tree *handlers, bool is_python) {
    static const char *const of_runtimes[] = {"SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS",
                                              "SIGFPE", "SIGSEGV", "SIGPIPE", "SIGSYS",
                                              "32",     "33",      NULL};
    BP_JSON_EACH (handler, handlers) {
        const char *name = bp_json_tree_value(handler); /* "" for what is no text */
        bool is_interrupt = is_python && strcmp(name, "SIGINT") == 0;
        if (!is_interrupt && !bp_array_has_text(of_runtimes, name)) {
            return true;
        }
    }
    return false;
}

/* Threads in one function, of which the first is named. */
enum { group_max = 4 };
typedef struct thread_group {
    const bp_thread *first;
    uint64_t other_count;
    char function[BP_FRAME_NAME_BYTES];
} thread_group;

static size_t group_threads(const bp_evidence *evidence, thread_group groups[group_max],
                            uint64_t *ret_ungrouped_count) {
    size_t count = 0;
    *ret_ungrouped_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        char function[BP_FRAME_NAME_BYTES];
        size_t at = 0;
        if (bp_thread_has_ended(thread)) {
            continue;
        }
        bp_thread_print_function(evidence, thread, function);
        while (at < count && strcmp(groups[at].function, function) != 0) {
            at++;
        }
        if (at < count) {
            groups[at].other_count++;
        } else if (count < group_max) {
            groups[count].first = thread;
            groups[count].other_count = 0;
            memcpy(groups[count++].function, function, sizeof function);
        } else {
            ++*ret_ungrouped_count;
        }
    }
    return count;
}

/* `pipe` is one, or an eventfd, that the process alone can write to, NULL for none; `has_shared`:
 * one waits in memory that another process could have. */
static void find_sleepers(bp_evidence *evidence, uint64_t count, const bp_json_tree *pipe,
                          bool has_shared) {
    bool is_of_python = bp_evidence_is_of_python(evidence);
    uint64_t ungrouped_count;
    thread_group groups[group_max];
    size_t group_count = group_threads(evidence, groups, &ungrouped_count);
    bp_argument arguments[4 * group_max + 8] = {BP_COUNT(count)};
    size_t at = 1;
    for (size_t i = 0; i < group_max; i++) {
        bool is_there = i < group_count;
        const thread_group *group = &groups[is_there ? i : 0];
        const char *separator = i == 0 ? ": thread " : "; thread ";
        arguments[at++] = BP_TEXT(is_there ? separator : "");
        arguments[at++] = bp_thread_argument(group->first);
        arguments[at++] = BP_TEXT(is_there ? group->function : "");
        arguments[at++] = BP_COUNT(is_there ? group->other_count : 0);
    }
    arguments[at++] = BP_COUNT(ungrouped_count);
    arguments[at++] =
        BP_TEXT(has_shared ? "; no other process has the memory of the lock or semaphore" : "");
    char pipe_name[96] = "";
    if (pipe != NULL) {
        bool is_pipe = strcmp(bp_json_tree_text_or(pipe, "kind", ""), "pipe") == 0;
        (void)snprintf(pipe_name, sizeof pipe_name, "%s %" PRIu64 "%s",
                       is_pipe ? "pipe" : "eventfd", bp_json_tree_uint_or(pipe, "fd", 0),
                       is_pipe ? ", whose other end it has not closed" : "");
    }
    arguments[at++] = BP_TEXT(pipe_name);
    bool lacks_python =
        is_of_python && bp_json_tree_rows(groups[0].first->stack, "python_frames") == NULL;
    arguments[at++] = BP_TEXT(lacks_python ? "py-spy dump --pid" : "");
    arguments[at++] = BP_COUNT(bp_json_tree_uint_or(evidence->waits, "pid", 0));
    arguments[at] = BP_END;
#define GROUP "{[{}{}]}{[ in {}]}{[ and {} more there]}"
    bp_find_as(
        evidence, evidence->running, "threads.json",
        "nobody can wake this process: its {} thread{|s} wait{s|} for "
        "{another, of which there is none|each other alone}, without a limit of time" GROUP GROUP
            GROUP GROUP "{[; and {} more]}{}{[; nobody else can write to {}]}{[; {} {} shows the "
        "functions of Python]}",
        arguments);
#undef GROUP
}

/*
 * Every thread waits for another of the same process, and none for anything from outside or for a
 * time: a lost wakeup, a semaphore that nobody posts, a barrier that is one short, the end of a
 * pipe that the process itself holds open, an eventfd that nobody else has. A server that is idle
 * has a thread that reads, polls or accepts. What has a reason of its own, a deadlock or an owner
 * that has ended, is said by that. One of bugpack's threads may wake those that wait for it.
 */
void bp_diagnose_nobody_wakes(bp_evidence *evidence) {
    const bp_json_tree *handlers = bp_json_tree_array(evidence->waits, "signal_handlers");
    bool is_of_python = bp_evidence_is_of_python(evidence);
    const bp_json_tree *pipe = NULL;
    bool has_shared = false;
    uint64_t count = 0;
    if (handlers == NULL || evidence->deadlocks.total_count > 0 ||
        bp_json_tree_object(evidence->waits, "traced_by") != NULL ||
        may_handle_signal(bp_json_tree_first(handlers), is_of_python)) {
        return;
    }
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
        if (bp_thread_has_ended(thread)) {
            continue;
        }
        if (!thread->is_listed || thread->is_own || !waits_for_own_threads(evidence, thread) ||
            !bp_thread_waited(evidence, thread) || bp_json_tree_is_true(wait, "owner_ended")) {
            return;
        }
        pipe = pipe == NULL ? find_own_file(evidence, thread) : pipe;
        has_shared = has_shared || bp_json_tree_is_true(bp_json_tree_object(thread->row, "syscall"),
                                                        "shared_futex");
        count++;
    }
    /* A single thread of Python may wait for Ctrl-C, but not in a lock of other processes or in a
     * pipe. */
    if (count < (is_of_python && !has_shared && pipe == NULL ? 2 : 1) ||
        bp_evidence_has_open(evidence, "io_uring")) {
        return;
    }
    find_sleepers(evidence, count, pipe, has_shared);
}
