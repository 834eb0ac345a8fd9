/* Diagnoses of threads that wait: for each other, for another process, for the kernel. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/log.h>

#include "base/array.h"
#include "base/utf8.h"
#include "diagnose/evidence.h"
#include "entries/frames.h"

/* In the words of threads.json, which lists the threads that they name. */
static void find_circle(bp_evidence *evidence, const bp_json_tree *deadlock) {
    const char *text =
        bp_json_tree_text_or(deadlock, "description", "of threads that are not named");
    bp_argument arguments[BP_SENTENCE_THREAD_MAX + 1] = {BP_END};
    size_t count = 0;
    for (const char *first = text; first != NULL && count + 1 < BP_SENTENCE_THREAD_MAX;) {
        first = NULL;
        BP_JSON_EACH (item, bp_json_tree_rows(deadlock, "tids")) {
            char name[24];
            uint64_t tid = 0;
            (void)bp_json_tree_value_uint(item, &tid);
            (void)snprintf(name, sizeof name, "(%" PRIu64 ")", tid);
            const char *at = strstr(text, name);
            if (at != NULL && (first == NULL || at < first)) {
                first = at;
                arguments[count] = BP_TID(tid);
            }
        }
        if (first != NULL) {
            arguments[count].text = text;
            arguments[count++].max_bytes = (size_t)(first + 1 - text);
            text = strchr(first, ')');
        }
    }
    arguments[count] = BP_TEXT(text);
    bp_find_as(evidence, evidence->running, "threads.json", "deadlock: {}{}{}{}{}{}{}{}{}{}{}{}",
               arguments);
}

void bp_diagnose_deadlock(bp_evidence *evidence) {
    for (uint64_t i = 0; i < evidence->deadlocks.total_count; i++) {
        find_circle(evidence, i < evidence->deadlocks.count ? evidence->deadlocks.rows[i] : NULL);
    }
}

void bp_diagnose_stopped(bp_evidence *evidence) {
    uint64_t living_count = 0, stopped_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        living_count += thread->is_listed && !bp_thread_has_ended(thread);
        stopped_count += thread->is_listed && strcmp(thread->state, "stopped") == 0;
    }
    if (evidence->waits != NULL && stopped_count > 0 && stopped_count == living_count) {
        bp_find(evidence,
                "the process is stopped by a signal (SIGSTOP or the like), with {} thread{|s}",
                BP_COUNT(living_count));
    }
}

typedef bool is_so(const bp_evidence *evidence, const bp_thread *thread);

/* The first thread of which it is so, or NULL; and how many others there are. */
static const bp_thread *find_first(const bp_evidence *evidence, is_so *holds,
                                   uint64_t *ret_other_count) {
    const bp_thread *first = NULL;
    *ret_other_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        if (holds(evidence, &evidence->threads[i])) {
            *ret_other_count += first != NULL;
            first = first != NULL ? first : &evidence->threads[i];
        }
    }
    return first;
}

/* The other end of one that a thread waits on, if all that hold it are stopped: one that runs may
 * answer. */
static const bp_json_tree *find_stopped_peer(const bp_json_tree *wait) {
    const bp_json_tree *last = NULL;
    BP_JSON_EACH (end, bp_json_tree_rows(wait, "other_end")) {
        const char *state = bp_json_tree_text_or(end, "state", "");
        if (strcmp(state, "stopped") != 0 && strcmp(state, "stopped by tracer") != 0) {
            return NULL;
        }
        last = end;
    }
    return last;
}

/* True if the process itself or the clock wakes it by this file. */
static bool is_for_itself(const bp_evidence *evidence, const bp_json_tree *file) {
    static const char *const kinds[] = {"eventfd", "timerfd", "signalfd", NULL};
    const char *kind = bp_json_tree_text_or(file, "kind", "");
    return bp_evidence_is_own_end(evidence, file) || bp_array_has_text(kinds, kind);
}

enum { peer_max = 2 };

/*
 * The pipes and sockets on which a thread waits, if the other ends of all of them are stopped: the
 * first ones. What wakes the process by itself is passed over; a terminal, a listener or another
 * machine may bring something, and there are none then.
 */
static size_t list_stopped(const bp_evidence *evidence, const bp_thread *thread,
                           const bp_json_tree *ret_files[peer_max]) {
    const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
    size_t count = 0;
    if (!is_for_itself(evidence, wait) && find_stopped_peer(wait) != NULL) {
        ret_files[count++] = wait;
    }
    BP_JSON_EACH (polled, bp_json_tree_rows(thread->row, "polled")) {
        const bp_json_tree *file = bp_evidence_polled(evidence, polled);
        bool is_stopped =
            find_stopped_peer(file) != NULL && !bp_json_tree_is_true(file, "other_end_has_more");
        if (is_for_itself(evidence, file)) {
            continue;
        }
        if (!is_stopped) {
            return 0;
        }
        if (count < peer_max) {
            ret_files[count++] = file;
        }
    }
    return count;
}

static bool is_unaccepted(const bp_json_tree *wait) {
    uint64_t listener = 0;
    return bp_json_tree_uint(bp_json_tree_object(wait, "socket"), "listener_inode", &listener);
}

static bool has_stopped_peer(const bp_evidence *evidence, const bp_thread *thread) {
    const bp_json_tree *files[peer_max];
    return list_stopped(evidence, thread, files) > 0;
}

void bp_diagnose_peer_stopped(bp_evidence *evidence) {
    const bp_json_tree *files[peer_max];
    uint64_t other_count;
    const bp_thread *first = find_first(evidence, has_stopped_peer, &other_count);
    if (first == NULL) {
        return;
    }
    size_t file_count = list_stopped(evidence, first, files);
    bp_argument peer = bp_process_argument(find_stopped_peer(files[0]));
    bp_argument other = bp_process_argument(find_stopped_peer(files[file_count - 1]));
    bool is_one = other.id == peer.id || other.id == 0;
    const char *state = bp_json_tree_text_or(find_stopped_peer(files[0]), "state", "?");
    peer.rest = other.rest = "";
    other.text = is_one ? "" : other.text;
    other.max_bytes = 32;
    bp_find(
        evidence, "thread {} waits on a {} whose other {}, {}{[ and {}]}, {} {}{}" AND_MORE_THREADS,
        bp_thread_argument(first), BP_CUT_TEXT(bp_json_tree_text_or(files[0], "kind", "file"), 16),
        BP_TEXT(is_one ? "end" : "ends"), peer, other, BP_TEXT(is_one ? "is" : "are"),
        BP_CUT_TEXT(state, 24),
        BP_TEXT(is_unaccepted(files[0]) ? ", and has not accepted the connection" : ""),
        BP_COUNT(other_count));
}

static bool is_paused(const bp_evidence *evidence, const bp_thread *thread) {
    (void)evidence;
    static const char *const functions[] = {"do_freezer_trap", "__refrigerator",
                                            "cgroup_enter_frozen", NULL};
    return bp_array_has_text(functions, bp_json_tree_text_or(thread->row, "wait_channel", ""));
}

/* True if a person pages through what comes out of the pipe. */
static bool is_paged(const bp_json_tree *wait) {
    static const char *const pagers[] = {"less", "more", "most", "pager", NULL};
    BP_JSON_EACH (end, bp_json_tree_rows(wait, "other_end")) {
        if (bp_array_has_text(pagers, bp_json_tree_text_or(end, "name", ""))) {
            return true;
        }
    }
    return false;
}

static bool fills_pipe(const bp_evidence *evidence, const bp_thread *thread) {
    static const char *const calls[] = {"write", "writev",   "splice", "sendfile",
                                        "tee",   "vmsplice", NULL};
    const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
    const char *kind = bp_json_tree_text_or(wait, "kind", "");
    bool is_pipe = strcmp(kind, "pipe") == 0 || strcmp(kind, "fifo") == 0;
    bool has_waited =
        evidence->window_ms >= BP_EVIDENCE_ANSWER_WINDOW_MS && bp_thread_is_idle(thread);
    return is_pipe && has_waited && !thread->is_own && bp_array_has_text(calls, thread->syscall) &&
           bp_json_tree_rows(wait, "other_end") != NULL && find_stopped_peer(wait) == NULL &&
           !is_paged(wait);
}

/* A pipe that took nothing through the whole window is full. That its reader is stopped says more,
 * and is said instead. */
void bp_diagnose_pipe_full(bp_evidence *evidence) {
    uint64_t other_count;
    bp_wait_text end;
    const bp_thread *first = find_first(evidence, fills_pipe, &other_count);
    if (first != NULL) {
        bp_thread_find_wait(first, &end);
        bp_find(evidence,
                "thread {} waits to write into {}, which did not read for {}" AND_MORE_THREADS,
                bp_thread_argument(first), bp_wait_argument(&end), BP_SECS(evidence->window_ms),
                BP_COUNT(other_count));
    }
}

static bool is_uninterruptible(const bp_evidence *evidence, const bp_thread *thread) {
    return bp_thread_is_idle(thread) && strcmp(thread->state, "uninterruptible sleep") == 0 &&
           !is_paused(evidence, thread) && !thread->is_own;
}

/* The file that a call is about: its path, or that of its descriptor; "" where it is not known. */
static const char *find_path(const bp_evidence *evidence, const bp_thread *thread) {
    static const char *const calls[] = {"write", "pwrite", NULL};
    const char *path =
        bp_json_tree_text_or(bp_json_tree_object(thread->row, "syscall"), "path", "");
    const char *fd = bp_thread_call_argument(thread, 0);
    if (path[0] != '\0' || fd[0] == '\0' || !bp_array_has_start(calls, thread->syscall)) {
        return path;
    }
    return bp_json_tree_text_or(bp_evidence_file(evidence, strtoull(fd, NULL, 16)), "target", "");
}

/* A thread that changes a file waits while its file system is frozen (sb_start_write in
 * include/linux/fs.h). The first frame is of that lock. */
static bool waits_for_frozen(const bp_json_tree *frame) {
    static const char *const writers[] = {"mnt_want_write", "vfs_write", "do_writev",
                                          "do_iter_write", NULL};
    enum { frame_max = 4 };
    if (frame == NULL || strncmp(bp_json_tree_value(frame), "percpu_rwsem_wait", 17) != 0) {
        return false;
    }
    for (unsigned i = 1; i < frame_max && frame != NULL; i++) {
        frame = bp_json_tree_next(frame);
        if (frame != NULL && bp_array_has_start(writers, bp_json_tree_value(frame))) {
            return true;
        }
    }
    return false;
}

void bp_diagnose_uninterruptible(bp_evidence *evidence) {
    uint64_t other_count;
    const bp_thread *first = find_first(evidence, is_uninterruptible, &other_count);
    if (first == NULL) {
        return;
    }
    const bp_json_tree *frame = bp_json_tree_rows(first->row, "kernel_stack");
    const char *name = frame != NULL ? bp_json_tree_value(frame)
                                     : bp_json_tree_text_or(first->row, "wait_channel", "?");
    char function[64];
    (void)snprintf(function, sizeof function, "%.*s", (int)strcspn(name, "+"), name);
    bp_find(
        evidence,
        "thread {} is in uninterruptible sleep in {}{[, called by {}]}{[ of {}]}" AND_MORE_THREADS
        "{}",
        bp_thread_argument(first), BP_TEXT(function), BP_TEXT(first->syscall),
        BP_CUT_TEXT(find_path(evidence, first), 120), BP_COUNT(other_count),
        BP_TEXT(waits_for_frozen(frame) ? ": its file system is frozen, as by fsfreeze" : ""));
}

static bool is_stopped_by_tracer(const bp_evidence *evidence, const bp_thread *thread) {
    (void)evidence;
    return strcmp(thread->state, "stopped by tracer") == 0;
}

/* The number of threads, if `holds` for each that has not ended, and none ran in the window; else
 * 0. */
static uint64_t count_if_all(const bp_evidence *evidence, is_so *holds) {
    uint64_t count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (!thread->is_listed || bp_thread_has_ended(thread)) {
            continue;
        }
        if (!holds(evidence, thread) || !bp_thread_is_idle(thread)) {
            return 0;
        }
        count++;
    }
    return evidence->waits != NULL ? count : 0;
}

void bp_diagnose_traced(bp_evidence *evidence) {
    const bp_json_tree *tracer = bp_json_tree_object(evidence->waits, "traced_by");
    uint64_t pid = 0, count = count_if_all(evidence, is_stopped_by_tracer);
    bp_argument process = bp_process_argument(tracer);
    process.rest = "";
    if (count > 0 && bp_json_tree_uint(tracer, "pid", &pid)) {
        bp_find(evidence,
                "the process is stopped by its tracer, {}, with {} thread{|s}, for all of the {} "
                "measured",
                process, BP_COUNT(count), BP_SECS(evidence->window_ms));
    }
}

void bp_diagnose_paused(bp_evidence *evidence) {
    uint64_t count = count_if_all(evidence, is_paused);
    if (count > 0) {
        bp_find(evidence,
                "the process is paused by its control group, with {} thread{|s}, for all of the {} "
                "measured",
                BP_COUNT(count), BP_SECS(evidence->window_ms));
    }
}

/* --- other processes ---------------------------------------------------------------------- */

/* The word between a wait of this kind and the process that it is for. */
static const char *link_word(const char *kind) {
    static const char *const words[][2] = {{"child", " "},
                                           {"file_lock", " held by "},
                                           {"mutex", " held by "},
                                           {"filesystem", " served by "},
                                           {"semaphore", " last changed by "}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(kind, words[i][0]) == 0) {
            return words[i][1];
        }
    }
    return " of ";
}

/* True if a process is in a chain more than once. */
static bool comes_back(const bp_json_tree *wait, uint64_t pid) {
    size_t count = 0;
    BP_JSON_EACH (link, bp_json_tree_rows(wait, "chain")) {
        count += bp_json_tree_uint_or(link, "pid", 0) == pid;
    }
    return count > 1;
}

/* "b (12), which waits for the end of its child c (13), which is stopped": the end is always named,
 * and of more than two before it the first two, "and so on through 3 more processes to" it. */
static void print_chain(const bp_evidence *evidence, const bp_json_tree *wait, char *out,
                        size_t out_bytes) {
    const bp_json_tree *link = bp_json_tree_rows(wait, "chain");
    size_t at = 0, place = 0, count = 0;
    BP_JSON_EACH (counted, link) {
        count++;
    }
    uint64_t own_pid = bp_json_tree_uint_or(evidence->waits, "pid", 0);
    for (; link != NULL && at < out_bytes - 1; link = bp_json_tree_next(link), place++) {
        const bp_json_tree *next = bp_json_tree_next(link);
        const char *waits = bp_json_tree_text_or(link, "waits_for", "");
        const char *of = link_word(bp_json_tree_text_or(link, "kind", ""));
        const char *name = bp_json_tree_text_or(link, "name", "?");
        const char *state = bp_json_tree_text_or(link, "state", "");
        uint64_t pid = bp_json_tree_uint_or(link, "pid", 0);
        int length = 0;
        if (next == NULL && pid == own_pid) {
            length = snprintf(out + at, out_bytes - at, "this process: they wait in a circle");
        } else if (next == NULL && comes_back(wait, pid)) {
            length = snprintf(out + at, out_bytes - at,
                              "%.40s (%" PRIu64 "): they wait in a circle", name, pid);
        } else if (next == NULL && waits[0] == '\0') {
            length = snprintf(out + at, out_bytes - at, "%.40s (%" PRIu64 ")%s%.24s", name, pid,
                              state[0] != '\0' ? ", which is " : "", state);
        } else if (place == 1 && count > 3) {
            length = snprintf(out + at, out_bytes - at,
                              "%.40s (%" PRIu64 "), and so on through %zu more process%s to ", name,
                              pid, count - 3, count > 4 ? "es" : "");
        } else if (next == NULL || place < 2) {
            length =
                snprintf(out + at, out_bytes - at, "%.40s (%" PRIu64 "), which waits for %.127s%s",
                         name, pid, waits, next == NULL ? "" : of);
        }
        at += length > 0 ? (size_t)length : 0;
    }
}

/* The first thread that waited all the while for something of a kind, NULL for any, that has this
 * member; and how many others did. */
static const bp_thread *find_waiter(const bp_evidence *evidence, const char *kind, const char *key,
                                    uint64_t *ret_other_count) {
    const bp_thread *first = NULL;
    *ret_other_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
        bool has_it = bp_json_tree_object(wait, key) != NULL ||
                      bp_json_tree_array(wait, key) != NULL || bp_json_tree_is_true(wait, key);
        bool is_kind = kind == NULL || strcmp(thread->waits_for_kind, kind) == 0;
        if (has_it && is_kind && bp_thread_waited(evidence, thread)) {
            *ret_other_count += first != NULL;
            first = first != NULL ? first : thread;
        }
    }
    return first;
}

/* "lock" as a word of a name, and not as the end of clock, block or unlock. */
static bool has_lock_word(const char *name) {
    static const char *const words[] = {"lock", "Lock", "busy", "Busy"};
    bool has_it = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        for (const char *at = name; (at = strstr(at, words[i])) != NULL; at++) {
            char before = at > name ? (char)(at[-1] | 0x20) : '_'; /* in lower case */
            has_it = has_it || before < 'a' || before > 'z' || words[i][0] < 'a';
        }
    }
    return has_it;
}

/* The innermost function of the program or its libraries whose name says that it locks. */
struct asking {
    size_t count;
    char name[BP_FRAME_NAME_BYTES];
};

static void take_asking(void *context, const bp_frame_text *frame) {
    enum { frame_max = 12 };
    struct asking *asking = context;
    if (asking->count++ < frame_max && asking->name[0] == '\0' && frame->symbol != NULL &&
        has_lock_word(frame->symbol)) {
        bp_frame_short_name(frame, asking->name);
    }
}

/* Sleeps for a time, and waits on nothing. */
static bool sleeps(const bp_thread *thread) {
    static const char *const calls[] = {
        "clock_nanosleep", "nanosleep", "select", "pselect6", "poll", "ppoll", NULL};
    return bp_array_has_text(calls, thread->syscall) &&
           bp_json_tree_object(thread->row, "waits_for") == NULL &&
           bp_json_tree_array(thread->row, "polled") == NULL && thread->voluntary_switches != 0;
}

/*
 * One that sleeps and asks again, as SQLite does: in a function whose name says that it locks,
 * while another process has a lock of a file that this one has open for writing. That it is this
 * lock is likely, and no more.
 */
void bp_diagnose_file_lock_asked(bp_evidence *evidence) {
    const bp_json_tree *file = NULL, *lock = NULL;
    uint64_t other_count;
    if (find_waiter(evidence, "file_lock", "holder", &other_count) != NULL) {
        return; /* that is sure */
    }
    for (size_t i = 0; lock == NULL && i < evidence->files.count; i++) {
        file = evidence->files.rows[i];
        lock = bp_json_tree_object(file, "locked_by");
    }
    for (size_t i = 0; lock != NULL && i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        struct asking asking = {.count = 0};
        if (!sleeps(thread)) {
            continue;
        }
        bp_frames_each(bp_json_tree_array(thread->stack, "frames"), evidence->finder, take_asking,
                       &asking);
        if (asking.name[0] != '\0') {
            bp_find(evidence,
                    "thread {} sleeps and asks again in {}, probably for a lock of {} ({}) that "
                    "{}{,} holds",
                    bp_thread_argument(thread), BP_CUT_TEXT(asking.name, 64),
                    BP_CUT_TEXT(bp_json_tree_text_or(file, "target", "a file"), 120),
                    BP_CUT_TEXT(bp_json_tree_text_or(lock, "lock", "?"), 8),
                    bp_process_argument(lock));
            return;
        }
    }
}

void bp_diagnose_file_lock_held(bp_evidence *evidence) {
    uint64_t other_count;
    const bp_thread *thread = find_waiter(evidence, "file_lock", "holder", &other_count);
    if (thread == NULL) {
        return;
    }
    const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
    const char *path = bp_json_tree_text_or(wait, "path", "");
    bp_find(evidence,
            "thread {} waits for a lock of {} ({}) that {}{,} holds" AND_MORE_THREADS
            ", for all of the {} measured",
            bp_thread_argument(thread), BP_CUT_TEXT(path[0] != '\0' ? path : "a file", 160),
            BP_CUT_TEXT(bp_json_tree_text_or(wait, "lock", "?"), 8),
            bp_process_argument(bp_json_tree_object(wait, "holder")), BP_COUNT(other_count),
            BP_SECS(evidence->window_ms));
}

void bp_diagnose_process_lock_held(bp_evidence *evidence) {
    uint64_t other_count;
    const bp_thread *thread = find_waiter(evidence, "mutex", "process", &other_count);
    if (thread != NULL) {
        const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
        bp_find(evidence,
                "thread {} waits for a mutex in shared memory that thread {} of another process "
                "holds: {}" AND_MORE_THREADS "; for all of the {} measured",
                bp_thread_argument(thread), BP_COUNT(thread->waits_for_tid),
                bp_process_argument(bp_json_tree_object(wait, "process")), BP_COUNT(other_count),
                BP_SECS(evidence->window_ms));
    }
}

void bp_diagnose_hang(bp_evidence *evidence) {
    const bp_json_tree *who = bp_json_tree_object(evidence->hang, "thread");
    char frames[BP_FRAME_LIST_BYTES] = "", name[64];
    bp_wait_text wait = {.pid = 0};
    uint64_t tid = bp_json_tree_uint_or(who, "tid", 0);
    double silent_ms = 0;
    if (evidence->hang == NULL) {
        return;
    }
    bp_utf8_copy(name, sizeof name, bp_json_tree_text_or(who, "name", "?"));
    (void)bp_json_tree_number(evidence->hang, "since_last_beat_ms", &silent_ms);
    const bp_thread *thread = bp_evidence_thread(evidence, tid);
    if (thread != NULL) {
        bp_thread_find_wait(thread, &wait);
        bp_frames_print(thread->stack, evidence->finder, thread->syscall, frames);
    }
    const char *watchdog = bp_json_tree_text_or(evidence->hang, "name", "?");
    bp_find(
        evidence,
        "thread {} \"{}\" hangs: no beat of watchdog \"{}\" for {}{[; it waits for {}]}{[, in {}]}",
        BP_TID(tid), BP_TEXT(name), BP_CUT_TEXT(watchdog, BUGPACK_CHANNEL_MAX_BYTES),
        BP_SECS(silent_ms), bp_wait_argument(&wait), BP_TEXT(frames));
}

void bp_diagnose_owner_ended(bp_evidence *evidence) {
    uint64_t other_count;
    const bp_thread *thread = find_waiter(evidence, NULL, "owner_ended", &other_count);
    if (thread != NULL) {
        bp_find(evidence,
                "thread {} waits for a {} that thread {} held when it ended" AND_MORE_THREADS
                ", for all of the {} measured",
                bp_thread_argument(thread), BP_TEXT(thread->waits_for_kind),
                BP_TID(thread->waits_for_tid), BP_COUNT(other_count), BP_SECS(evidence->window_ms));
    }
}

void bp_diagnose_child_waits(bp_evidence *evidence) {
    char chain[BP_SENTENCE_TEXT_BYTES] = "";
    uint64_t other_count;
    const bp_thread *thread = find_waiter(evidence, "child", "chain", &other_count);
    if (thread != NULL) {
        print_chain(evidence, bp_json_tree_object(thread->row, "waits_for"), chain, sizeof chain);
        bp_find(evidence, "thread {} waits for the end of its child {}" AND_MORE_THREADS,
                bp_thread_argument(thread), BP_TEXT(chain), BP_COUNT(other_count));
    }
}

void bp_diagnose_peer_waits(bp_evidence *evidence) {
    static const char *const kinds[] = {"pipe", "fifo", "socket"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char chain[BP_SENTENCE_TEXT_BYTES] = "";
        uint64_t other_count;
        const bp_thread *thread = find_waiter(evidence, kinds[i], "chain", &other_count);
        const bp_json_tree *wait =
            thread != NULL ? bp_json_tree_object(thread->row, "waits_for") : NULL;
        if (wait == NULL || find_stopped_peer(wait) != NULL) {
            continue;
        }
        print_chain(evidence, wait, chain, sizeof chain);
        bp_find(evidence, "thread {} waits on {} {} of {}" AND_MORE_THREADS,
                bp_thread_argument(thread), BP_TEXT(kinds[i]),
                BP_COUNT(bp_json_tree_uint_or(wait, "fd", 0)), BP_TEXT(chain),
                BP_COUNT(other_count));
    }
}

typedef enum pending { NOTHING, ANSWER, ACCEPT } pending;

/*
 * A request to connect by TCP, which was sent again; a call that waits for room in the queue of a
 * unix listener; or a connection that the kernel made, and nobody has accepted.
 */
static pending find_pending(const bp_evidence *evidence, const bp_thread *thread) {
    /* A request is sent again after 1 s (TCP_TIMEOUT_INIT in include/net/tcp.h). */
    static const double answer_ms = 1000;
    const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
    const bp_json_tree *socket = bp_json_tree_object(wait, "socket");
    const char *state = bp_json_tree_text_or(socket, "state", "");
    bool is_long = evidence->window_ms >= answer_ms;
    uint64_t retransmits = bp_json_tree_uint_or(socket, "retransmits", 0);
    bool is_request = strcmp(state, "syn_sent") == 0 && (retransmits > 0 || is_long);
    bool is_unix = strcmp(state, "unconnected") == 0 && strcmp(thread->syscall, "connect") == 0;
    if (!bp_thread_waited(evidence, thread) || find_stopped_peer(wait) != NULL) {
        return NOTHING;
    }
    if (is_request || (is_unix && is_long)) {
        return ANSWER;
    }
    return is_unaccepted(wait) && is_long ? ACCEPT : NOTHING;
}

static bool has_pending(const bp_evidence *evidence, const bp_thread *thread) {
    return find_pending(evidence, thread) != NOTHING;
}

void bp_diagnose_connect_pending(bp_evidence *evidence) {
    uint64_t other_count;
    const bp_thread *first = find_first(evidence, has_pending, &other_count);
    if (first == NULL) {
        return;
    }
    pending found = find_pending(evidence, first);
    const bp_json_tree *wait = bp_json_tree_object(first->row, "waits_for");
    const bp_json_tree *socket = bp_json_tree_object(wait, "socket");
    const bp_json_tree *end = bp_json_tree_rows(wait, "other_end");
    bp_argument server = found == ACCEPT && end != NULL
                             ? bp_process_argument(end)
                             : BP_CUT_TEXT(bp_json_tree_text_or(socket, "remote", "?"), 110);
    bp_find(evidence,
            found == ANSWER
                ? "thread {} waits for an answer of {} to its connect" AND_MORE_THREADS
                  ", for all of the {} measured"
                : "thread {} waits on a connection that {}{,} has not accepted" AND_MORE_THREADS
                  ", for all of the {} measured",
            bp_thread_argument(first), server, BP_COUNT(other_count), BP_SECS(evidence->window_ms));
}

/* --- answers ------------------------------------------------------------------------------ */

/* Why a thread that waits on a connection has got no answer, the surest first. */
typedef enum silence {
    UNREAD,         /* the other end, on this machine, has not read what was sent */
    UNACKNOWLEDGED, /* the kernel of the other machine has not acknowledged it */
    UNANSWERED,     /* nothing came in since something was sent, or since it was connected */
    SILENT,         /* one of UDP, of which the kernel does not know what was sent */
    NO_SILENCE
} silence;

/* Looks at a connection that the process began. A server waits for its clients, and a subscriber
 * has got an answer since. */
static silence find_silence(const bp_json_tree *file, bool is_only) {
    const bp_json_tree *socket = bp_json_tree_object(file, "socket");
    const char *protocol = bp_json_tree_text_or(socket, "protocol", "");
    bool is_tcp = strncmp(protocol, "tcp", 3) == 0;
    bool is_connected = strcmp(bp_json_tree_text_or(socket, "state", ""), "established") == 0 &&
                        bp_json_tree_text(socket, "remote") != NULL;
    uint64_t sent_ms, received_ms, listener;
    bool is_message = strcmp(protocol, "unix") == 0 && /* as of syslog(3) */
                      strcmp(bp_json_tree_text_or(socket, "type", ""), "dgram") == 0;
    if (is_message && bp_json_tree_rows(file, "other_end") != NULL) {
        return bp_json_tree_uint_or(socket, "send_queue_bytes", 0) > 0 ? UNREAD : NO_SILENCE;
    }
    bool is_udp = strncmp(protocol, "udp", 3) == 0;
    bool has_connected =
        is_udp || bp_json_tree_value_is_false(bp_json_tree_member(socket, "accepted"));
    if (!is_connected || !has_connected || bp_json_tree_uint(socket, "listener_inode", &listener)) {
        return NO_SILENCE;
    }
    if (bp_json_tree_uint_or(socket, "peer_unread_bytes", 0) > 0) {
        return UNREAD;
    }
    if (is_tcp && bp_json_tree_uint_or(socket, "send_queue_bytes", 0) > 0) {
        return UNACKNOWLEDGED;
    }
    if (is_tcp && bp_json_tree_uint(socket, "sent_ms_ago", &sent_ms)) {
        bool is_answered =
            bp_json_tree_uint(socket, "received_ms_ago", &received_ms) && received_ms <= sent_ms;
        return is_answered ? NO_SILENCE : UNANSWERED;
    }
    return is_only && is_udp ? SILENT : NO_SILENCE;
}

/* A request of a thread that has got no answer. */
typedef struct unanswered {
    const bp_json_tree *file; /* NULL: nothing */
    silence why;
} unanswered;

/* True if it woke no more often than its limit of time ended, as curl does once a second. That of
 * epoll_pwait2 is not in its arguments. */
static bool asks_again(const bp_evidence *evidence, const bp_thread *thread) {
    enum { limit_min_ms = 100 };
    bool is_epoll =
        strcmp(thread->syscall, "epoll_wait") == 0 || strcmp(thread->syscall, "epoll_pwait") == 0;
    bool has_limit = is_epoll || strcmp(thread->syscall, "poll") == 0;
    const char *text = bp_thread_call_argument(thread, is_epoll ? 3 : 2);
    unsigned long long limit_ms = has_limit ? strtoull(text, NULL, 16) : 0;
    return limit_ms >= limit_min_ms && limit_ms <= INT32_MAX && !thread->is_born &&
           thread->cpu_ms == 0 && thread->voluntary_switches > 0 &&
           thread->voluntary_switches <= evidence->window_ms / (double)limit_ms + 1;
}

/* Looks at all that the thread waits on: a file, a listener, a client or another process may wake
 * it just as well, and nothing is said then. */
static unanswered find_unanswered(const bp_evidence *evidence, const bp_thread *thread) {
    static const char *const calls[] = {
        "read",    "readv",    "recvfrom",   "recvmsg",     "recvmmsg",     "poll",
        "ppoll",   "select",   "pselect6",   "write",       "writev",       "sendto",
        "sendmsg", "sendmmsg", "epoll_wait", "epoll_pwait", "epoll_pwait2", NULL};
    const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
    bool is_polled = bp_json_tree_array(thread->row, "polled") != NULL;
    bool has_chain = bp_json_tree_array(wait, "chain") != NULL;
    unanswered found = {.why = NO_SILENCE};
    bool is_idle = bp_thread_is_idle(thread);
    if (evidence->window_ms < BP_EVIDENCE_ANSWER_WINDOW_MS ||
        !(is_idle || asks_again(evidence, thread)) || thread->is_own || has_chain ||
        has_stopped_peer(evidence, thread) || !bp_array_has_text(calls, thread->syscall)) {
        return found;
    }
    if (!is_polled) {
        silence why = find_silence(wait, true);
        bool is_silent = is_idle ? why != NO_SILENCE : why == UNANSWERED;
        return (unanswered){.file = is_silent ? wait : NULL, .why = why};
    }
    BP_JSON_EACH (polled, bp_json_tree_rows(thread->row, "polled")) {
        const bp_json_tree *file = bp_evidence_polled(evidence, polled);
        if (is_for_itself(evidence, file)) {
            continue;
        }
        silence why = find_silence(file, false);
        if (why == NO_SILENCE || (!is_idle && why != UNANSWERED)) {
            return (unanswered){.why = NO_SILENCE};
        }
        found = why < found.why ? (unanswered){file, why} : found;
    }
    return found;
}

void bp_diagnose_no_answer(bp_evidence *evidence) {
    bool is_sure = evidence->running == BP_DIAGNOSIS_NO_ANSWER;
    const bp_thread *first = NULL;
    unanswered asked = {.file = NULL};
    uint64_t other_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        unanswered found = find_unanswered(evidence, &evidence->threads[i]);
        if (found.file == NULL || (found.why <= UNACKNOWLEDGED) != is_sure) {
            continue;
        }
        other_count += first != NULL;
        asked = first == NULL ? found : asked;
        first = first == NULL ? &evidence->threads[i] : first;
    }
    if (first == NULL) {
        return;
    }
    static const char *const patterns[] = {
        [UNREAD] =
            "thread {} waits in {} for {}{[ at {}]}, which has not read the {} byte{|s} that "
            "were sent to it" AND_MORE_THREADS "; for all of the {} measured",
        [UNACKNOWLEDGED] =
            "thread {} waits in {} for {}{[ at {}]}, which has not acknowledged the "
            "{} byte{|s} that were sent to it" AND_MORE_THREADS "; for all of the {} measured",
        [UNANSWERED] =
            "thread {} probably waits in {} for an answer of {}{[ at {}]}: it connected, "
            "or sent last, {} before, and nothing came in" AND_MORE_THREADS
            "{[; for all of the {} measured]}",
        [SILENT] =
            "thread {} probably waits in {} for an answer of {}{[ at {}]}{[{}]}" AND_MORE_THREADS
            ", for all of the {} measured"};
    const bp_json_tree *socket = bp_json_tree_object(asked.file, "socket");
    const bp_json_tree *end = bp_json_tree_rows(asked.file, "other_end");
    const char *remote = bp_json_tree_text_or(socket, "remote", end != NULL ? "" : "?");
    const char *key = bp_json_tree_uint_or(socket, "peer_unread_bytes", 0) > 0 ? "peer_unread_bytes"
                                                                               : "send_queue_bytes";
    bp_argument peer = end != NULL ? bp_process_argument(end) : BP_CUT_TEXT(remote, 110);
    bp_argument amount = BP_COUNT(bp_json_tree_uint_or(socket, key, 0));
    if (asked.why == UNANSWERED) {
        amount = BP_NUMBER((double)bp_json_tree_uint_or(socket, "sent_ms_ago", 0) / 1000, 1, " s");
    } else if (asked.why == SILENT) {
        amount = BP_TEXT("");
    }
    peer.rest = "";
    bp_find(evidence, patterns[asked.why], bp_thread_argument(first), BP_TEXT(first->syscall), peer,
            BP_CUT_TEXT(end != NULL ? remote : "", 110), amount, BP_COUNT(other_count),
            BP_SECS(bp_thread_is_idle(first) ? evidence->window_ms : 0));
}

/* What a server waits for that is a client of others, as nginx of an upstream. */
typedef struct upstream {
    const bp_json_tree *file; /* the first of its connections; NULL: none */
    uint64_t connection_count, unread_bytes;
    uint64_t client_count, shortest_ms, longest_ms; /* who had no answer, and for how long */
} upstream;

/* Who shares a connection may be the one that answers. */
static void add_client(const bp_json_tree *file, upstream *found) {
    uint64_t waited_ms =
        bp_json_tree_uint_or(bp_json_tree_object(file, "socket"), "unanswered_ms", 0);
    if (waited_ms >= BP_EVIDENCE_ANSWER_WINDOW_MS && !bp_json_tree_is_true(file, "shared")) {
        bool is_shortest = found->client_count++ == 0 || waited_ms < found->shortest_ms;
        found->shortest_ms = is_shortest ? waited_ms : found->shortest_ms;
        found->longest_ms = waited_ms > found->longest_ms ? waited_ms : found->longest_ms;
    }
}

/* It was asked no earlier than a client had asked: other connections may be silent for long. The
 * kernel is asked for one socket after the other. */
static void add_upstream(const bp_evidence *evidence, const bp_json_tree *file, upstream *found) {
    enum { reading_ms = 100 };
    const bp_json_tree *socket = bp_json_tree_object(file, "socket");
    const bp_json_tree *first = bp_json_tree_object(found->file, "socket");
    uint64_t sent_ms = bp_json_tree_uint_or(socket, "sent_ms_ago", 0);
    const char *remote = bp_json_tree_text_or(socket, "remote", "");
    bool is_asked =
        sent_ms >= BP_EVIDENCE_ANSWER_WINDOW_MS && !bp_evidence_is_own_end(evidence, file) &&
        sent_ms <= found->longest_ms + reading_ms && find_silence(file, false) <= UNANSWERED;
    if (is_asked && strcmp(bp_json_tree_text_or(first, "remote", remote), remote) == 0) {
        found->file = found->file == NULL ? file : found->file;
        found->connection_count++;
        found->unread_bytes += bp_json_tree_uint_or(socket, "peer_unread_bytes", 0);
    }
}

/* As it was when the sockets were read: threads may have run since. It is sure of one that is
 * stopped, or has not read what it was sent. A relay that nobody answers looks like any other. */
void bp_diagnose_upstream(bp_evidence *evidence) {
    bool is_sure = evidence->running == BP_DIAGNOSIS_UPSTREAM;
    upstream found = {.file = NULL};
    for (size_t i = 0; i < evidence->files.count; i++) {
        add_client(evidence->files.rows[i], &found);
    }
    for (size_t i = 0; i < evidence->files.count && found.client_count > 0; i++) {
        add_upstream(evidence, evidence->files.rows[i], &found);
    }
    const bp_json_tree *end = bp_json_tree_rows(found.file, "other_end");
    bool is_stopped = strcmp(bp_json_tree_text_or(end, "state", ""), "stopped") == 0;
    if (found.file == NULL || (is_stopped || found.unread_bytes > 0) != is_sure) {
        return;
    }
    bp_find(
        evidence,
        "{} client{|s} sent data{[, {}wait{s|} for an answer,]} and got nothing for {} or more "
        "since; meanwhile {}{,} sent nothing on {} connection{|s} to {} since data last went "
        "there, or since it was connected{[, and left {} byte{|s} unread]}",
        BP_COUNT(found.client_count), BP_TEXT(is_sure ? "" : "probably "),
        BP_NUMBER((double)found.shortest_ms / 1000, 1, " s"),
        end != NULL ? bp_process_argument(end) : BP_TEXT("the other end"),
        BP_COUNT(found.connection_count),
        BP_CUT_TEXT(bp_json_tree_text_or(bp_json_tree_object(found.file, "socket"), "remote", "?"),
                    110),
        BP_COUNT(found.unread_bytes));
}
