#include "inspect/diagnose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "base/utf8.h"
#include "inspect/frames.h"

enum { thread_max = 1 << 17, chain_max = 64 };

/* From so many on it is said. A healthy server has tens of connections in CLOSE_WAIT for a moment;
 * a Java program has hundreds of threads, of many names. */
enum { close_wait_min = 50, same_name_min = 512 };
static const uint64_t deleted_min_bytes = (uint64_t)64 << 20;

/* A wait shorter than this may be any. */
static const double window_min_ms = 100;

struct bp_diagnosed_thread {
    uint64_t tid, holder; /* of what it waits for; 0: not known */
    bool is_idle;         /* did not run in the window */
    bool waits_for_rwlock;
    char name[32], state[24], syscall[24];
    char waits_for[128]; /* as in bp_summary_thread */
};

/* --- threads ------------------------------------------------------------------------------ */

static bool is_zero(const bp_json_tree *row, const char *key) {
    double value;
    return bp_json_tree_number(row, key, &value) && value == 0;
}

/* `ret_thread` becomes NULL for one without an id, and for one too many. */
static bugpack_status add_thread(bp_diagnosed *known, const bp_json_tree *row,
                                 bp_diagnosed_thread **ret_thread, bugpack_error *error) {
    uint64_t tid;
    *ret_thread = NULL;
    if (!bp_json_tree_uint(row, "tid", &tid) || known->thread_count == thread_max) {
        return BUGPACK_OK;
    }
    if (!bp_array_reserve(&known->threads, known->thread_count, &known->thread_capacity)) {
        return bp_fail_memory(error, "read a report");
    }
    bp_diagnosed_thread *thread = &known->threads[known->thread_count++];
    *thread = (bp_diagnosed_thread){.tid = tid};
    bp_utf8_copy(thread->name, sizeof thread->name, bp_json_tree_text(row, "name"));
    *ret_thread = thread;
    return BUGPACK_OK;
}

bugpack_status bp_diagnose_measured(bp_summary *summary, const bp_json_tree *row,
                                    bugpack_error *error) {
    bp_diagnosed_thread *thread;
    bugpack_status status = add_thread(&summary->diagnosed, row, &thread, error);
    if (thread != NULL) {
        thread->is_idle = is_zero(row, "cpu_ms") && is_zero(row, "voluntary_switches") &&
                          is_zero(row, "involuntary_switches") &&
                          !bp_json_tree_is_true(row, "born_in_window");
    }
    return status;
}

static int compare_tids(const void *one, const void *other) {
    const bp_diagnosed_thread *left = one, *right = other;
    return (left->tid > right->tid) - (left->tid < right->tid);
}

static bp_diagnosed_thread *find_thread(const bp_diagnosed *known, uint64_t tid) {
    const bp_diagnosed_thread key = {.tid = tid};
    return known->sorted_count == 0
               ? NULL
               : bsearch(&key, known->threads, known->sorted_count, sizeof key, compare_tids);
}

static void sort_threads(bp_diagnosed *known) {
    if (known->thread_count > 0) {
        qsort(known->threads, known->thread_count, sizeof *known->threads, compare_tids);
    }
    known->sorted_count = known->thread_count;
}

void bp_diagnose_end_measured(bp_summary *summary) {
    sort_threads(&summary->diagnosed);
}

/* The other end of what a thread waits on, if that process is stopped. */
static void see_peer(bp_summary *summary, const bp_diagnosed_thread *thread,
                     const bp_json_tree *wait) {
    bp_diagnosed *known = &summary->diagnosed;
    const bp_json_tree *end = bp_json_tree_first(bp_json_tree_array(wait, "other_end"));
    size_t end_count = 0, stopped_count = 0;
    const bp_json_tree *stopped = NULL;
    for (; end != NULL; end = bp_json_tree_next(end)) {
        const char *state = bp_json_tree_text_or(end, "state", "");
        bool is_stopped = strcmp(state, "stopped") == 0 || strcmp(state, "stopped by tracer") == 0;
        end_count++;
        stopped_count += is_stopped;
        stopped = is_stopped ? end : stopped;
    }
    if (end_count == 0 || stopped_count < end_count) {
        return; /* one that runs may answer */
    }
    if (known->peer_waiter_count++ == 0) {
        uint64_t pid = 0;
        (void)bp_json_tree_uint(stopped, "pid", &pid);
        (void)snprintf(known->peer, sizeof known->peer,
                       "thread %" PRIu64 " \"%s\" waits on a %.16s whose other end, %.40s (%" PRIu64
                       "), is %.24s",
                       thread->tid, thread->name, bp_json_tree_text_or(wait, "kind", "file"),
                       bp_json_tree_text_or(stopped, "name", "?"), pid,
                       bp_json_tree_text_or(stopped, "state", "?"));
    }
}

static void see_uninterruptible(bp_summary *summary, const bp_diagnosed_thread *thread,
                                const bp_json_tree *row) {
    bp_diagnosed *known = &summary->diagnosed;
    const bp_json_tree *frame = bp_json_tree_first(bp_json_tree_array(row, "kernel_stack"));
    char name[64];
    if (!thread->is_idle || strcmp(thread->state, "uninterruptible sleep") != 0 ||
        known->stuck_count++ > 0) {
        return;
    }
    bp_utf8_copy(name, sizeof name,
                 frame != NULL ? bp_json_tree_value(frame)
                               : bp_json_tree_text_or(row, "wait_channel", "?"));
    name[strcspn(name, "+")] = '\0';
    (void)snprintf(known->stuck, sizeof known->stuck,
                   "thread %" PRIu64 " \"%s\" is in uninterruptible sleep in %s%s%s", thread->tid,
                   thread->name, name, thread->syscall[0] != '\0' ? ", called by " : "",
                   thread->syscall);
}

bugpack_status bp_diagnose_thread(bp_summary *summary, const bp_json_tree *row,
                                  bugpack_error *error) {
    uint64_t tid = 0;
    const bp_json_tree *wait = bp_json_tree_object(row, "waits_for");
    const char *kind = bp_json_tree_text_or(wait, "kind", "");
    (void)bp_json_tree_uint(row, "tid", &tid);
    bp_diagnosed_thread *thread = find_thread(&summary->diagnosed, tid);
    bugpack_status status = BUGPACK_OK;
    if (thread == NULL) {
        status = add_thread(&summary->diagnosed, row, &thread, error);
    }
    if (thread == NULL) {
        return status;
    }
    bp_utf8_copy(thread->state, sizeof thread->state, bp_json_tree_text(row, "state"));
    bp_utf8_copy(thread->syscall, sizeof thread->syscall,
                 bp_json_tree_text(bp_json_tree_object(row, "syscall"), "name"));
    (void)bp_summary_read_wait(wait, thread->waits_for, sizeof thread->waits_for);
    if (strcmp(kind, "mutex") == 0 || strcmp(kind, "rwlock") == 0) {
        (void)bp_json_tree_uint(wait, "tid", &thread->holder);
        thread->waits_for_rwlock = kind[0] == 'r';
    }
    see_peer(summary, thread, wait);
    see_uninterruptible(summary, thread, row);
    return BUGPACK_OK;
}

/* Whom the holder itself waits for, to the end; NULL in a circle, which is a deadlock, and in a
 * chain that is longer than any real one. */
static const bp_diagnosed_thread *find_root(const bp_diagnosed *known, uint64_t tid) {
    const bp_diagnosed_thread *thread = find_thread(known, tid);
    unsigned steps = 0;
    while (thread != NULL && thread->holder != 0 && steps++ < chain_max) {
        const bp_diagnosed_thread *next = find_thread(known, thread->holder);
        if (next == NULL) {
            break;
        }
        thread = next;
    }
    return steps > chain_max ? NULL : thread;
}

static void add_waiter(bp_diagnosed *known, const bp_diagnosed_thread *root,
                       const bp_diagnosed_thread *waiter) {
    bp_diagnosed_holder *holder = known->holders;
    while (holder < known->holders + known->holder_count && holder->thread.tid != root->tid) {
        holder++;
    }
    if (holder == known->holders + known->holder_count) {
        if (known->holder_count == BP_DIAGNOSED_HOLDERS) {
            return;
        }
        known->holder_count++;
        *holder = (bp_diagnosed_holder){.thread = {.tid = root->tid}};
        memcpy(holder->thread.name, root->name, sizeof root->name);
        memcpy(holder->thread.state, root->state, sizeof root->state);
        memcpy(holder->thread.syscall, root->syscall, sizeof root->syscall);
        memcpy(holder->thread.waits_for, root->waits_for, sizeof root->waits_for);
    }
    holder->waiter_count++;
    holder->idle_count += waiter->is_idle;
    holder->rwlock_count += waiter->waits_for_rwlock;
}

static void release_threads(bp_diagnosed *known) {
    free(known->threads);
    known->threads = NULL;
    known->thread_count = known->thread_capacity = known->sorted_count = 0;
}

void bp_diagnose_end_threads(bp_summary *summary) {
    bp_diagnosed *known = &summary->diagnosed;
    sort_threads(known);
    for (size_t i = 0; i < known->thread_count; i++) {
        const bp_diagnosed_thread *waiter = &known->threads[i];
        const bp_diagnosed_thread *root =
            waiter->holder != 0 ? find_root(known, waiter->holder) : NULL;
        if (root != NULL && root != waiter) {
            add_waiter(known, root, waiter);
        }
    }
    release_threads(known); /* tens of MiB, if there are 100,000 */
}

void bp_diagnose_stack(bp_summary *summary, uint64_t tid, const bp_json_tree *stack) {
    bp_diagnosed *known = &summary->diagnosed;
    for (size_t i = 0; i < known->holder_count; i++) {
        if (known->holders[i].thread.tid == tid) {
            bp_frames_print(stack, &summary->finder, known->holders[i].thread.frames);
        }
    }
}

/* A lock is said to be held if somebody waited for it through the whole window, without running
 * once. For less, a program that works would be accused. */
static void find_holders(bp_summary *summary) {
    const bp_diagnosed *known = &summary->diagnosed;
    for (size_t i = 0; i < known->holder_count && summary->window_ms >= window_min_ms; i++) {
        const bp_diagnosed_holder *holder = &known->holders[i];
        const bp_summary_thread *thread = &holder->thread;
        const char *place = thread->frames[0] != '\0' ? thread->frames : thread->syscall;
        char rest[200] = "";
        if (holder->idle_count == 0) {
            continue;
        }
        if (thread->waits_for[0] != '\0') {
            (void)snprintf(rest, sizeof rest, ", waiting on %s", thread->waits_for);
        }
        bp_summary_find(
            summary, BP_DIAGNOSIS_LOCK_HELD, NULL,
            "%" PRIu64 " thread%s wait%s for a %s that thread %" PRIu64
            " \"%s\" holds, which is %s%s%s%s; %" PRIu64 " did so for all of the %.1f s measured",
            holder->waiter_count, holder->waiter_count == 1 ? "" : "s",
            holder->waiter_count == 1 ? "s" : "",
            holder->rwlock_count == holder->waiter_count ? "rwlock" : "mutex", thread->tid,
            thread->name, thread->state[0] != '\0' ? thread->state : "not listed",
            place[0] != '\0' ? " in " : "", place, rest, holder->idle_count,
            summary->window_ms / 1000);
    }
}

static void find_many(bp_summary *summary) {
    const bp_summary_name *most = NULL;
    for (size_t i = 0; i < summary->names.count; i++) {
        const bp_summary_name *name = &summary->names.rows[i];
        most = most == NULL || name->count > most->count ? name : most;
    }
    if (most != NULL && most->count >= same_name_min) {
        bp_summary_find(summary, BP_DIAGNOSIS_MANY_THREADS, NULL,
                        "%" PRIu64 " of its %" PRIu64 " threads are called \"%s\"", most->count,
                        summary->use.thread_count, most->name);
    }
}

/* --- files -------------------------------------------------------------------------------- */

static void see_socket(bp_diagnosed *known, const bp_json_tree *socket) {
    uint64_t waiting = 0, backlog = 0;
    known->close_wait_count += strcmp(bp_json_tree_text_or(socket, "state", ""), "close_wait") == 0;
    if (bp_json_tree_uint(socket, "waiting_connections", &waiting) &&
        bp_json_tree_uint(socket, "backlog", &backlog) && backlog > 0 && waiting >= backlog &&
        known->full_queue_count++ == 0) {
        known->waiting_connections = waiting;
        bp_utf8_copy(known->listener, sizeof known->listener,
                     bp_json_tree_text_or(socket, "local", "?"));
    }
}

void bp_diagnose_file(bp_summary *summary, const bp_json_tree *file) {
    bp_diagnosed *known = &summary->diagnosed;
    const char *target = bp_json_tree_text_or(file, "target", "");
    const char *access = bp_json_tree_text_or(file, "access", "read");
    uint64_t bytes = 0;
    see_socket(known, bp_json_tree_object(file, "socket"));
    if (bp_json_tree_is_true(file, "deleted") && strncmp(target, "/memfd:", 7) != 0 &&
        strncmp(target, "/dev/", 5) != 0 && strcmp(access, "read") != 0 &&
        bp_json_tree_uint(file, "size_bytes", &bytes) && bytes >= deleted_min_bytes) {
        known->deleted_count++;
        known->deleted_bytes += bytes;
        if (bytes > known->largest_deleted_bytes) {
            known->largest_deleted_bytes = bytes;
            bp_utf8_copy(known->deleted_file, sizeof known->deleted_file, target);
        }
    }
}

static void find_files(bp_summary *summary) {
    const bp_diagnosed *known = &summary->diagnosed;
    if (known->close_wait_count >= close_wait_min) {
        bp_summary_find(summary, BP_DIAGNOSIS_CLOSE_WAIT, NULL,
                        "%" PRIu64 " of its sockets are in CLOSE_WAIT: the other side has closed "
                        "them, the program has not",
                        known->close_wait_count);
    }
    if (known->full_queue_count > 0) {
        bp_summary_find(summary, BP_DIAGNOSIS_ACCEPT_QUEUE, NULL,
                        "%" PRIu64 " connections wait to be accepted on %s, as many as may",
                        known->waiting_connections, known->listener);
    }
    if (known->deleted_count > 0) {
        bp_summary_find(summary, BP_DIAGNOSIS_DELETED_FILE, NULL,
                        "%" PRIu64 " MiB are in %" PRIu64
                        " deleted file%s that it holds open, the largest %s",
                        known->deleted_bytes >> 20, known->deleted_count,
                        known->deleted_count == 1 ? "" : "s", known->deleted_file);
    }
}

void bp_diagnose_process(bp_summary *summary, const bp_json_tree *process) {
    bp_diagnosed *known = &summary->diagnosed;
    const char *executable = bp_json_tree_text_or(process, "executable", "");
    for (const bp_json_tree *row =
             bp_json_tree_first(bp_json_tree_array(process, "loaded_objects"));
         row != NULL; row = bp_json_tree_next(row)) {
        const char *path = bp_json_tree_text_or(row, "path", "?");
        size_t length = strlen(path);
        if (!bp_json_tree_is_true(row, "deleted")) {
            continue;
        }
        known->deleted_object_count++;
        if (strncmp(executable, path, length) == 0 &&
            (executable[length] == '\0' || executable[length] == ' ')) {
            bp_utf8_copy(known->deleted_executable, sizeof known->deleted_executable, path);
        }
    }
}

/* Libraries alone are replaced by every update of a machine, and nothing is wrong. */
static void find_deleted_code(bp_summary *summary) {
    const bp_diagnosed *known = &summary->diagnosed;
    char more[48] = "";
    if (known->deleted_executable[0] == '\0') {
        return;
    }
    if (known->deleted_object_count > 1) {
        (void)snprintf(more, sizeof more, ", and %" PRIu64 " of its libraries",
                       known->deleted_object_count - 1);
    }
    bp_summary_find(summary, BP_DIAGNOSIS_DELETED_CODE, NULL,
                    "the executable %s%s: deleted or replaced since it was started",
                    known->deleted_executable, more);
}

/* --- the end of a process ----------------------------------------------------------------- */

bool bp_diagnose_wants_output(const bp_summary *summary) {
    const bp_json_tree *end = bp_json_tree_object(summary->metadata, "exit");
    uint64_t status = 0;
    return end != NULL && (!bp_json_tree_uint(end, "status", &status) || status != 0);
}

bugpack_status bp_diagnose_output(bp_summary *summary, const char *channel, const char *text) {
    bp_diagnosed *known = &summary->diagnosed;
    bool is_output = strcmp(channel, "stderr") == 0 || strcmp(channel, "terminal") == 0;
    if (!is_output || text[strspn(text, " \t\r")] == '\0') {
        return BUGPACK_OK;
    }
    if (known->output == NULL) {
        known->output = calloc(BP_DIAGNOSED_LINES, sizeof *known->output);
    }
    if (known->output == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    bp_utf8_copy(known->output[known->output_count++ % BP_DIAGNOSED_LINES], sizeof *known->output,
                 text);
    return BUGPACK_OK;
}

/* How runtimes begin what they say of an end: the cause is in this line or the next, and what
 * follows is a trace. Of others the last line is the cause, as of Python. */
static const struct {
    const char *words;
    bool goes_on;                                                /* in the next line */
} endings[] = {{"terminate called after throwing", true},        /* libstdc++ */
               {"terminating due to uncaught exception", false}, /* libc++ */
               {"terminate called", false},
               {"Assertion `", false},      /* glibc */
               {"Assertion failed", false}, /* musl, macOS */
               {"*** ", false},             /* glibc's fortify and stack protector */
               {"free(): ", false},
               {"malloc(): ", false},
               {"double free or corruption", false},
               {"corrupted ", false},
               {"munmap_chunk(): ", false},
               {"realloc(): ", false},
               {"panicked at", true}, /* Rust */
               {"panic: ", false},    /* Go */
               {"fatal error: ", false},
               {"Exception in thread", false}, /* Java */
               {"AddressSanitizer: ", false},
               {"ThreadSanitizer: ", false},
               {"runtime error: ", false},
               {"error while loading shared libraries", false}};

static const char *output_line(const bp_diagnosed *known, uint64_t number) {
    const char *line = known->output[number % BP_DIAGNOSED_LINES];
    return line + strspn(line, " \t");
}

static bool begins_end(const char *line, bool *ret_goes_on) {
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (strstr(line, endings[i].words) != NULL) {
            *ret_goes_on = endings[i].goes_on;
            return true;
        }
    }
    return false;
}

static void find_last_words(bp_summary *summary) {
    const bp_diagnosed *known = &summary->diagnosed;
    uint64_t count = known->output_count;
    uint64_t first = count > BP_DIAGNOSED_LINES ? count - BP_DIAGNOSED_LINES : 0, at = first;
    bool goes_on = false;
    if (count == 0) {
        return;
    }
    while (at < count && !begins_end(output_line(known, at), &goes_on)) {
        at++;
    }
    at = at < count ? at : count - 1;
    goes_on = goes_on && at + 1 < count;
    bp_summary_find(summary, BP_DIAGNOSIS_LAST_WORDS, "logs.jsonl", "its last words: %s%s%s",
                    output_line(known, at), goes_on ? " " : "",
                    goes_on ? output_line(known, at + 1) : "");
}

/* "…, and 3 more threads" behind a sentence about the first. */
static void find_first(bp_summary *summary, bp_diagnosis diagnosis, const char *text,
                       uint64_t count) {
    char more[48] = "";
    if (count > 1) {
        (void)snprintf(more, sizeof more, ", and %" PRIu64 " more thread%s", count - 1,
                       count == 2 ? "" : "s");
    }
    if (count > 0) {
        bp_summary_find(summary, diagnosis, NULL, "%s%s", text, more);
    }
}

void bp_diagnose_find(bp_summary *summary) {
    const bp_diagnosed *known = &summary->diagnosed;
    find_first(summary, BP_DIAGNOSIS_PEER_STOPPED, known->peer, known->peer_waiter_count);
    find_first(summary, BP_DIAGNOSIS_UNINTERRUPTIBLE, known->stuck, known->stuck_count);
    find_holders(summary);
    find_files(summary);
    find_many(summary);
    find_deleted_code(summary);
    find_last_words(summary);
}

void bp_diagnose_release(bp_summary *summary) {
    release_threads(&summary->diagnosed);
    free(summary->diagnosed.output);
    summary->diagnosed.output = NULL;
}
