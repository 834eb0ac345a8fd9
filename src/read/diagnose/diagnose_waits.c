/* Diagnoses of threads that wait: for each other, for another process, for the kernel. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <bugpack/log.h>

#include "base/array.h"
#include "base/utf8.h"
#include "diagnose/evidence.h"
#include "entries/frames.h"

void bp_diagnose_deadlock(bp_evidence *evidence) {
    static const char nobody[] = "of threads that are not named";
    for (uint64_t i = 0; i < evidence->deadlocks.total_count; i++) {
        const bp_json_tree *row =
            i < evidence->deadlocks.count ? evidence->deadlocks.rows[i] : NULL;
        bp_find(evidence, "deadlock: %s", bp_json_tree_text_or(row, "description", nobody));
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
                "the process is stopped by a signal (SIGSTOP or the like), with %" PRIu64
                " thread%s",
                living_count, living_count == 1 ? "" : "s");
    }
}

/* "…, and 3 more threads" behind a sentence about the first of so many. */
static const char *name_more(uint64_t count, char out[48]) {
    out[0] = '\0';
    if (count > 1) {
        (void)snprintf(out, 48, ", and %" PRIu64 " more thread%s", count - 1,
                       count == 2 ? "" : "s");
    }
    return out;
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

/* The descriptor of that number in files.json; NULL where it is not listed, or another one now. */
static const bp_json_tree *find_polled(const bp_evidence *evidence, const bp_json_tree *polled) {
    const bp_rows *files = &evidence->files;
    uint64_t fd = 0, number = 0, wanted = 0, inode = 0;
    size_t low = 0, high = files->count;
    bool has_fd = bp_json_tree_uint(polled, "fd", &fd);
    while (has_fd && low < high) {
        size_t middle = low + (high - low) / 2;
        (void)bp_json_tree_uint(files->rows[middle], "number", &number);
        if (number == fd) {
            bool is_same = !bp_json_tree_uint(polled, "inode", &wanted) ||
                           !bp_json_tree_uint(files->rows[middle], "inode", &inode) ||
                           inode == wanted;
            return is_same ? files->rows[middle] : NULL;
        }
        low = number < fd ? middle + 1 : low;
        high = number < fd ? high : middle;
    }
    return NULL;
}

/* Whether a process wakes itself by it, or the clock does. */
static bool is_for_itself(const bp_json_tree *file, uint64_t own_pid) {
    static const char *const kinds[] = {"eventfd", "timerfd", "signalfd", NULL};
    const bp_json_tree *end = bp_json_tree_rows(file, "other_end");
    const char *kind = bp_json_tree_text_or(file, "kind", "");
    bool is_own = end != NULL && !bp_json_tree_is_true(file, "other_end_has_more");
    for (; is_own && end != NULL; end = bp_json_tree_next(end)) {
        uint64_t pid = 0;
        is_own = bp_json_tree_uint(end, "pid", &pid) && pid == own_pid;
    }
    return is_own || bp_array_has_text(kinds, kind);
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
    uint64_t own_pid = 0;
    size_t count = 0;
    (void)bp_json_tree_uint(evidence->waits, "pid", &own_pid);
    if (find_stopped_peer(wait) != NULL) {
        ret_files[count++] = wait;
    }
    BP_JSON_EACH (polled, bp_json_tree_rows(thread->row, "polled")) {
        const bp_json_tree *file = find_polled(evidence, polled);
        bool is_stopped =
            find_stopped_peer(file) != NULL && !bp_json_tree_is_true(file, "other_end_has_more");
        if (is_for_itself(file, own_pid)) {
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

/* " end, cat (7), is", and " ends, cat (7) and tee (8), are" of two. */
static void print_peers(const bp_json_tree *const *files, size_t count, char *out,
                        size_t out_bytes) {
    const bp_json_tree *first = find_stopped_peer(files[0]);
    const bp_json_tree *other = find_stopped_peer(files[count - 1]);
    uint64_t pid = 0, other_pid = 0;
    char second[64] = "";
    (void)bp_json_tree_uint(first, "pid", &pid);
    if (bp_json_tree_uint(other, "pid", &other_pid) && other_pid != pid) {
        (void)snprintf(second, sizeof second, " and %.32s (%" PRIu64 ")",
                       bp_json_tree_text_or(other, "name", "?"), other_pid);
    }
    (void)snprintf(out, out_bytes, " end%s, %.40s (%" PRIu64 ")%s, %s",
                   second[0] != '\0' ? "s" : "", bp_json_tree_text_or(first, "name", "?"), pid,
                   second, second[0] != '\0' ? "are" : "is");
}

static bool is_unaccepted(const bp_json_tree *wait) {
    uint64_t listener = 0;
    return bp_json_tree_uint(bp_json_tree_object(wait, "socket"), "listener_inode", &listener);
}

void bp_diagnose_peer_stopped(bp_evidence *evidence) {
    const bp_json_tree *files[peer_max];
    char first[320], peers[160], more[48];
    uint64_t count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        size_t file_count = list_stopped(evidence, thread, files);
        if (file_count > 0 && count++ == 0) {
            print_peers(files, file_count, peers, sizeof peers);
            (void)snprintf(first, sizeof first,
                           "thread %" PRIu64 " \"%s\" waits on a %.16s whose other%s %.24s%s",
                           thread->tid, thread->name,
                           bp_json_tree_text_or(files[0], "kind", "file"), peers,
                           bp_json_tree_text_or(find_stopped_peer(files[0]), "state", "?"),
                           is_unaccepted(files[0]) ? ", and has not accepted the connection" : "");
        }
    }
    if (count > 0) {
        bp_find(evidence, "%s%s", first, name_more(count, more));
    }
}

static bool is_paused(const bp_thread *thread) {
    static const char *const functions[] = {"do_freezer_trap", "__refrigerator",
                                            "cgroup_enter_frozen", NULL};
    return bp_array_has_text(functions, bp_json_tree_text_or(thread->row, "wait_channel", ""));
}

/* A pipe that took nothing through the whole window is full. That its reader is stopped says more,
 * and is said instead. */
void bp_diagnose_pipe_full(bp_evidence *evidence) {
    static const char *const calls[] = {"write", "writev",   "splice", "sendfile",
                                        "tee",   "vmsplice", NULL};
    static const double window_min_ms = 1000;
    char first[256], more[48];
    uint64_t count = 0;
    for (size_t i = 0; i < evidence->thread_count && evidence->window_ms >= window_min_ms; i++) {
        const bp_thread *thread = &evidence->threads[i];
        const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
        const bp_json_tree *reader = bp_json_tree_rows(wait, "other_end");
        const char *kind = bp_json_tree_text_or(wait, "kind", "");
        if (bp_array_has_text(calls, thread->syscall) &&
            (strcmp(kind, "pipe") == 0 || strcmp(kind, "fifo") == 0) && reader != NULL &&
            find_stopped_peer(wait) == NULL && bp_thread_is_idle(thread) && !thread->is_own &&
            count++ == 0) {
            char end[128];
            bp_thread_print_wait(thread, end, sizeof end);
            (void)snprintf(first, sizeof first,
                           "thread %" PRIu64
                           " \"%s\" waits to write into %s, which did not read for "
                           "%.1f s",
                           thread->tid, thread->name, end, evidence->window_ms / 1000);
        }
    }
    if (count > 0) {
        bp_find(evidence, "%s%s", first, name_more(count, more));
    }
}

void bp_diagnose_uninterruptible(bp_evidence *evidence) {
    const bp_thread *first = NULL;
    uint64_t count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (bp_thread_is_idle(thread) && strcmp(thread->state, "uninterruptible sleep") == 0 &&
            !is_paused(thread) && !thread->is_own) {
            first = count++ == 0 ? thread : first;
        }
    }
    if (first == NULL) {
        return;
    }
    const bp_json_tree *frame = bp_json_tree_rows(first->row, "kernel_stack");
    char name[64], more[48];
    bp_utf8_copy(name, sizeof name,
                 frame != NULL ? bp_json_tree_value(frame)
                               : bp_json_tree_text_or(first->row, "wait_channel", "?"));
    name[strcspn(name, "+")] = '\0';
    bp_find(evidence, "thread %" PRIu64 " \"%s\" is in uninterruptible sleep in %s%s%s%s",
            first->tid, first->name, name, first->syscall[0] != '\0' ? ", called by " : "",
            first->syscall, name_more(count, more));
}

static bool is_stopped_by_tracer(const bp_thread *thread) {
    return strcmp(thread->state, "stopped by tracer") == 0;
}

/* How many threads there are, if it is so of every one of them that has not ended, and none ran in
 * the window; else 0. */
static uint64_t count_if_all(const bp_evidence *evidence, bool (*is_so)(const bp_thread *thread)) {
    uint64_t count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (!thread->is_listed || bp_thread_has_ended(thread)) {
            continue;
        }
        if (!is_so(thread) || !bp_thread_is_idle(thread)) {
            return 0;
        }
        count++;
    }
    return evidence->waits != NULL ? count : 0;
}

void bp_diagnose_traced(bp_evidence *evidence) {
    const bp_json_tree *tracer = bp_json_tree_object(evidence->waits, "traced_by");
    uint64_t pid = 0, count = count_if_all(evidence, is_stopped_by_tracer);
    if (count > 0 && bp_json_tree_uint(tracer, "pid", &pid)) {
        bp_find(evidence,
                "the process is stopped by its tracer, %.40s (%" PRIu64 "), with %" PRIu64
                " thread%s, for all of the %.1f s measured",
                bp_json_tree_text_or(tracer, "name", "?"), pid, count, count == 1 ? "" : "s",
                evidence->window_ms / 1000);
    }
}

void bp_diagnose_paused(bp_evidence *evidence) {
    uint64_t count = count_if_all(evidence, is_paused);
    if (count > 0) {
        bp_find(evidence,
                "the process is paused by its control group, with %" PRIu64 " thread%s, for all of "
                "the %.1f s measured",
                count, count == 1 ? "" : "s", evidence->window_ms / 1000);
    }
}

/* --- other processes ---------------------------------------------------------------------- */

/* For less than this, a program that works would be accused. */
static const double window_min_ms = 100;

static bool waited_all_the_while(const bp_evidence *evidence, const bp_thread *thread) {
    return evidence->window_ms >= window_min_ms && bp_thread_is_idle(thread);
}

/* "make (12), which is stopped" */
static void print_process(const bp_json_tree *process, char *out, size_t out_bytes) {
    const char *state = bp_json_tree_text_or(process, "state", "");
    uint64_t pid = 0;
    (void)bp_json_tree_uint(process, "pid", &pid);
    (void)snprintf(out, out_bytes, "%.40s (%" PRIu64 ")%s%.24s",
                   bp_json_tree_text_or(process, "name", "?"), pid,
                   state[0] != '\0' ? ", which is " : "", state);
}

/* "b (12), which waits for the end of its child c (13), which is stopped": the end is always named,
 * and the first two before it. */
static void print_chain(const bp_evidence *evidence, const bp_json_tree *wait, char *out,
                        size_t out_bytes) {
    const bp_json_tree *link = bp_json_tree_rows(wait, "chain");
    size_t at = 0, place = 0;
    uint64_t own_pid = 0;
    (void)bp_json_tree_uint(evidence->waits, "pid", &own_pid);
    for (; link != NULL && at < out_bytes - 1; link = bp_json_tree_next(link), place++) {
        const bp_json_tree *next = bp_json_tree_next(link);
        const char *waits = bp_json_tree_text_or(link, "waits_for", "");
        const char *of = strncmp(waits, "a ", 2) == 0 ? " held by " : " of ";
        of = strncmp(waits, "the ", 4) == 0 ? " " : of;
        uint64_t pid = 0;
        int length = 0;
        (void)bp_json_tree_uint(link, "pid", &pid);
        if (next == NULL && pid == own_pid) {
            length = snprintf(out + at, out_bytes - at, "this process: they wait in a circle");
        } else if (next == NULL && waits[0] == '\0') {
            char last[128];
            print_process(link, last, sizeof last);
            length = snprintf(out + at, out_bytes - at, "%s", last);
        } else if (next == NULL || place < 2) {
            length = snprintf(
                out + at, out_bytes - at, "%.40s (%" PRIu64 "), which waits for %.96s%s",
                bp_json_tree_text_or(link, "name", "?"), pid, waits, next == NULL ? "" : of);
        } else if (place == 2) {
            length = snprintf(out + at, out_bytes - at, "further ones, and the last for ");
        }
        at += length > 0 ? (size_t)length : 0;
    }
}

/* The first thread that waited all the while for what `takes` accepts, and how many there are. */
static const bp_thread *find_first(const bp_evidence *evidence, const char *kind, const char *key,
                                   uint64_t *ret_count) {
    const bp_thread *first = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
        bool has_it = bp_json_tree_object(wait, key) != NULL ||
                      bp_json_tree_array(wait, key) != NULL || bp_json_tree_is_true(wait, key);
        bool is_kind = kind == NULL || strcmp(thread->waits_for_kind, kind) == 0;
        if (has_it && is_kind && waited_all_the_while(evidence, thread)) {
            first = first == NULL ? thread : first;
            (*ret_count)++;
        }
    }
    return first;
}

static bool find_waiting_for_lock(bp_evidence *evidence) {
    char holder[128], more[48];
    uint64_t count;
    const bp_thread *thread = find_first(evidence, "file_lock", "holder", &count);
    if (thread == NULL) {
        return false;
    }
    const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
    const char *path = bp_json_tree_text_or(wait, "path", "");
    print_process(bp_json_tree_object(wait, "holder"), holder, sizeof holder);
    bp_find(
        evidence,
        "thread %" PRIu64 " \"%s\" waits for a lock of %.160s (%.8s) that %s%sholds%s, for all of "
        "the %.1f s measured",
        thread->tid, thread->name, path[0] != '\0' ? path : "a file",
        bp_json_tree_text_or(wait, "lock", "?"), holder, strchr(holder, ',') != NULL ? ", " : " ",
        name_more(count, more), evidence->window_ms / 1000);
    return true;
}

/* "lock" as a word of a name, and not as the end of clock, block or unlock. */
static bool has_lock_word(const char *name) {
    static const char *const words[] = {"lock", "Lock", "busy", "Busy"};
    bool has_it = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *at = strstr(name, words[i]);
        char before = at != NULL && at > name ? (char)(at[-1] | 0x20) : '_'; /* in lower case */
        bool is_inside = before >= 'a' && before <= 'z' && words[i][0] >= 'a';
        has_it = has_it || (at != NULL && !is_inside);
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
static void find_asking(bp_evidence *evidence) {
    const bp_json_tree *file = NULL, *lock = NULL;
    for (size_t i = 0; lock == NULL && i < evidence->files.count; i++) {
        file = evidence->files.rows[i];
        lock = bp_json_tree_object(file, "locked_by");
    }
    for (size_t i = 0; lock != NULL && i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        struct asking asking = {.count = 0};
        char holder[128];
        if (!sleeps(thread)) {
            continue;
        }
        bp_frames_each(bp_json_tree_array(thread->stack, "frames"), evidence->finder, take_asking,
                       &asking);
        if (asking.name[0] != '\0') {
            print_process(lock, holder, sizeof holder);
            bp_find(evidence,
                    "thread %" PRIu64
                    " \"%s\" sleeps and asks again in %.64s, probably for a lock of %.120s (%.8s) "
                    "that %s%sholds",
                    thread->tid, thread->name, asking.name,
                    bp_json_tree_text_or(file, "target", "a file"),
                    bp_json_tree_text_or(lock, "lock", "?"), holder,
                    strchr(holder, ',') != NULL ? ", " : " ");
            return;
        }
    }
}

void bp_diagnose_file_lock_held(bp_evidence *evidence) {
    if (!find_waiting_for_lock(evidence)) {
        find_asking(evidence);
    }
}

void bp_diagnose_process_lock_held(bp_evidence *evidence) {
    char holder[128], more[48];
    uint64_t count;
    const bp_thread *thread = find_first(evidence, "mutex", "process", &count);
    if (thread != NULL) {
        const bp_json_tree *wait = bp_json_tree_object(thread->row, "waits_for");
        print_process(bp_json_tree_object(wait, "process"), holder, sizeof holder);
        bp_find(evidence,
                "thread %" PRIu64 " \"%s\" waits for a mutex in shared memory that thread %" PRIu64
                " of another process holds: %s%s; for all of the %.1f s measured",
                thread->tid, thread->name, thread->waits_for_tid, holder, name_more(count, more),
                evidence->window_ms / 1000);
    }
}

/* What a host saw itself: a thread that did not beat its watchdog. */
void bp_diagnose_hang(bp_evidence *evidence) {
    const bp_json_tree *who = bp_json_tree_object(evidence->hang, "thread");
    char name[BUGPACK_CHANNEL_MAX_BYTES + 1], thread_name[64], wait[128] = "";
    char frames[BP_FRAME_LIST_BYTES] = "";
    uint64_t tid = 0;
    double silent_ms = 0;
    if (evidence->hang == NULL) {
        return;
    }
    (void)bp_json_tree_uint(who, "tid", &tid);
    bp_utf8_copy(name, sizeof name, bp_json_tree_text_or(evidence->hang, "name", "?"));
    bp_utf8_copy(thread_name, sizeof thread_name, bp_json_tree_text_or(who, "name", "?"));
    (void)bp_json_tree_number(evidence->hang, "since_last_beat_ms", &silent_ms);
    const bp_thread *thread = bp_evidence_thread(evidence, tid);
    if (thread != NULL) {
        bp_thread_print_wait(thread, wait, sizeof wait);
        bp_frames_print_at(thread->stack, evidence->finder, thread->syscall, frames);
    }
    bp_find(evidence,
            "thread %" PRIu64 " \"%s\" hangs: no beat of watchdog \"%s\" for %.1f s%s%s%s%s", tid,
            thread_name, name, silent_ms / 1000, wait[0] != '\0' ? "; it waits for " : "", wait,
            frames[0] != '\0' ? ", in " : "", frames);
}

void bp_diagnose_owner_ended(bp_evidence *evidence) {
    char more[48];
    uint64_t count;
    const bp_thread *thread = find_first(evidence, NULL, "owner_ended", &count);
    if (thread != NULL) {
        bp_find(evidence,
                "thread %" PRIu64 " \"%s\" waits for a %s that thread %" PRIu64
                " held when it ended%s, for all of the %.1f s measured",
                thread->tid, thread->name, thread->waits_for_kind, thread->waits_for_tid,
                name_more(count, more), evidence->window_ms / 1000);
    }
}

void bp_diagnose_child_waits(bp_evidence *evidence) {
    char chain[400], more[48];
    uint64_t count;
    const bp_thread *thread = find_first(evidence, "child", "chain", &count);
    if (thread != NULL) {
        print_chain(evidence, bp_json_tree_object(thread->row, "waits_for"), chain, sizeof chain);
        bp_find(evidence, "thread %" PRIu64 " \"%s\" waits for the end of its child %s%s",
                thread->tid, thread->name, chain, name_more(count, more));
    }
}

void bp_diagnose_peer_waits(bp_evidence *evidence) {
    static const char *const kinds[] = {"pipe", "fifo", "socket"};
    char chain[400], more[48];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        uint64_t count, fd = 0;
        const bp_thread *thread = find_first(evidence, kinds[i], "chain", &count);
        const bp_json_tree *wait =
            thread != NULL ? bp_json_tree_object(thread->row, "waits_for") : NULL;
        if (wait == NULL || find_stopped_peer(wait) != NULL) {
            continue;
        }
        (void)bp_json_tree_uint(wait, "fd", &fd);
        print_chain(evidence, wait, chain, sizeof chain);
        bp_find(evidence, "thread %" PRIu64 " \"%s\" waits on %s %" PRIu64 " of %s%s", thread->tid,
                thread->name, kinds[i], fd, chain, name_more(count, more));
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
    uint64_t retransmits = 0;
    (void)bp_json_tree_uint(socket, "retransmits", &retransmits);
    bool is_request = strcmp(state, "syn_sent") == 0 && (retransmits > 0 || is_long);
    bool is_unix = strcmp(state, "unconnected") == 0 && strcmp(thread->syscall, "connect") == 0;
    if (!waited_all_the_while(evidence, thread) || find_stopped_peer(wait) != NULL) {
        return NOTHING;
    }
    if (is_request || (is_unix && is_long)) {
        return ANSWER;
    }
    return is_unaccepted(wait) && is_long ? ACCEPT : NOTHING;
}

void bp_diagnose_connect_pending(bp_evidence *evidence) {
    char server[128], more[48];
    const bp_thread *first = NULL;
    pending found = NOTHING;
    uint64_t count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        pending what = find_pending(evidence, &evidence->threads[i]);
        if (what != NOTHING && count++ == 0) {
            first = &evidence->threads[i];
            found = what;
        }
    }
    if (first == NULL) {
        return;
    }
    const bp_json_tree *wait = bp_json_tree_object(first->row, "waits_for");
    const bp_json_tree *socket = bp_json_tree_object(wait, "socket");
    const bp_json_tree *end = bp_json_tree_rows(wait, "other_end");
    if (found == ACCEPT && end != NULL) {
        print_process(end, server, sizeof server);
    } else {
        bp_utf8_copy(server, sizeof server, bp_json_tree_text_or(socket, "remote", "?"));
    }
    const char *has_not = strchr(server, ',') != NULL ? ", has not accepted" : " has not accepted";
    bp_find(evidence,
            "thread %" PRIu64 " \"%s\" waits %s %.110s%s%s, for all of the %.1f s measured",
            first->tid, first->name, found == ANSWER ? "for an answer of" : "on a connection that",
            server, found == ANSWER ? " to its connect" : has_not, name_more(count, more),
            evidence->window_ms / 1000);
}

/* --- locks -------------------------------------------------------------------------------- */

/* The thread that holds the lock that a thread waits for, or NULL. */
static const bp_thread *find_holder(const bp_evidence *evidence, const bp_thread *thread) {
    bool is_lock = strcmp(thread->waits_for_kind, "mutex") == 0 ||
                   strcmp(thread->waits_for_kind, "rwlock") == 0 ||
                   strcmp(thread->waits_for_kind, "monitor") == 0;
    return is_lock && thread->waits_for_tid != 0
               ? bp_evidence_thread(evidence, thread->waits_for_tid)
               : NULL;
}

/* The thread at the end of the chain of those that hold each other up; NULL for no chain, for a
 * circle, which is a deadlock, and for one that is longer than any real one. */
static const bp_thread *find_root(const bp_evidence *evidence, const bp_thread *waiter) {
    enum { chain_max = 64 };
    const bp_thread *root = NULL, *next = find_holder(evidence, waiter);
    for (unsigned steps = 0; next != NULL; steps++) {
        if (steps > chain_max || next == waiter) {
            return NULL;
        }
        root = next;
        next = find_holder(evidence, root);
    }
    return root;
}

/* A thread that holds, itself or through those it holds up, what others wait for. */
typedef struct lock_holder {
    const bp_thread *thread;
    uint64_t waiter_count, idle_count;
    const char *kind; /* that all wait for; of several, a mutex */
} lock_holder;

static void print_holder(bp_evidence *evidence, const lock_holder *holder) {
    const bp_thread *thread = holder->thread;
    char frames[BP_FRAME_LIST_BYTES], wait[128];
    bp_frames_print(thread->stack, evidence->finder, frames);
    bp_thread_print_wait(thread, wait, sizeof wait);
    const char *place = frames[0] != '\0' ? frames : thread->syscall;
    bp_find(evidence,
            "%" PRIu64 " thread%s wait%s for a %s that thread %" PRIu64
            " \"%s\" holds, which is %s%s%s%s%s; %" PRIu64 " did so for all of the %.1f s measured",
            holder->waiter_count, holder->waiter_count == 1 ? "" : "s",
            holder->waiter_count == 1 ? "s" : "", holder->kind, thread->tid, thread->name,
            thread->state[0] != '\0' ? thread->state : "not listed", place[0] != '\0' ? " in " : "",
            place, wait[0] != '\0' ? ", waiting on " : "", wait, holder->idle_count,
            evidence->window_ms / 1000);
}

/* A lock is said to be held if somebody waited for it through the whole window, without running
 * once. For less, a program that works would be accused. */
void bp_diagnose_lock_held(bp_evidence *evidence) {
    enum { holder_max = 4 };
    lock_holder holders[holder_max];
    size_t count = 0;
    for (size_t i = 0; i < evidence->thread_count && evidence->window_ms >= window_min_ms; i++) {
        const bp_thread *waiter = &evidence->threads[i], *root = find_root(evidence, waiter);
        size_t at = 0;
        while (at < count && holders[at].thread != root) {
            at++;
        }
        if (root == NULL || at == holder_max) {
            continue;
        }
        if (at == count) {
            holders[count++] = (lock_holder){.thread = root, .kind = waiter->waits_for_kind};
        }
        holders[at].waiter_count++;
        holders[at].idle_count += bp_thread_is_idle(waiter);
        if (strcmp(holders[at].kind, waiter->waits_for_kind) != 0) {
            holders[at].kind = "mutex";
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (holders[i].idle_count > 0) {
            print_holder(evidence, &holders[i]);
        }
    }
}

/* The address of the lock that a thread waits for; NULL where it waits for none. It has the form of
 * a mutex of glibc in any case: FUTEX_WAIT while the word is 2, which no condition, semaphore or
 * barrier asks for (lll_lock_wait in nptl/lowlevellock.c). */
static const char *find_contended(const bp_thread *thread) {
    const bp_json_tree *call = bp_json_tree_object(thread->row, "syscall");
    const bp_json_tree *address = bp_json_tree_rows(call, "arguments");
    const bp_json_tree *operation = address != NULL ? bp_json_tree_next(address) : NULL;
    const bp_json_tree *value = operation != NULL ? bp_json_tree_next(operation) : NULL;
    const char *word = value != NULL ? bp_json_tree_value_text(value) : NULL;
    const char *name = operation != NULL ? bp_json_tree_value_text(operation) : NULL;
    bool is_lock = strcmp(thread->syscall, "futex") == 0 && word != NULL &&
                   strcmp(word, "0x2") == 0 && name != NULL &&
                   (strcmp(name, "0x80") == 0 || strcmp(name, "0x0") == 0);
    return is_lock ? bp_json_tree_value_text(address) : NULL;
}

/*
 * One lock that is not held for long at a time, and that nearly all threads wait for: of those that
 * ran in the window three quarters, and at least four. A pool that shares a lock now and then has
 * one or two in it at any instant.
 */
void bp_diagnose_lock_contended(bp_evidence *evidence) {
    enum { waiters_min = 4 };
    const char *lock = NULL;
    const bp_thread *first = NULL;
    uint64_t active_count = 0, waiter_count = 0, other_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        const char *address = find_contended(thread);
        bool is_idle = bp_thread_is_idle(thread);
        active_count += !is_idle;
        if (address == NULL || is_idle || !thread->is_measured) {
            other_count += address != NULL;
            continue;
        }
        lock = lock != NULL ? lock : address;
        first = first != NULL ? first : thread;
        waiter_count += strcmp(address, lock) == 0;
    }
    bool is_most = waiter_count >= waiters_min && waiter_count * 4 >= active_count * 3;
    if (is_most && other_count == 0 && evidence->window_ms >= window_min_ms) {
        bp_find(
            evidence,
            "%" PRIu64 " of the %" PRIu64 " threads that ran wait for one lock, %.24s, as \"%s\" "
            "(%" PRIu64 "); none of them did so for all of the %.1f s measured",
            waiter_count, active_count, lock, first->name, first->tid, evidence->window_ms / 1000);
    }
}
