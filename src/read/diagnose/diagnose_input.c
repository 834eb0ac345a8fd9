/* Diagnosis of input that nobody reads. */

#include <string.h>

#include "base/array.h"
#include "diagnose/evidence.h"

/* True if nobody but the process itself, or a child, writes to it: also one of a pair of sockets,
 * which has no name at either end. */
static bool is_private(const bp_json_tree *file) {
    static const char *const kinds[] = {"pipe",     "fifo",  "eventfd", "timerfd",
                                        "signalfd", "pidfd", NULL};
    const bp_json_tree *socket = bp_json_tree_object(file, "socket");
    bool is_pair = strcmp(bp_json_tree_text_or(socket, "protocol", ""), "unix") == 0 &&
                   strcmp(bp_json_tree_text_or(socket, "state", ""), "established") == 0 &&
                   bp_json_tree_text(socket, "local") == NULL &&
                   bp_json_tree_text(socket, "remote") == NULL;
    return is_pair || bp_array_has_text(kinds, bp_json_tree_text_or(file, "kind", ""));
}

/* True if a thread waits in epoll for a listener that has connections: it was told of them once
 * (EPOLLET in epoll(7)), and did not accept all. One that is frozen sleeps elsewhere. */
static bool polls_in_vain(const bp_evidence *evidence, const bp_thread *thread) {
    uint64_t count = 0;
    BP_JSON_EACH (item, bp_json_tree_rows(thread->row, "polled")) {
        const bp_json_tree *file = bp_evidence_polled(evidence, item);
        count +=
            bp_json_tree_uint_or(bp_json_tree_object(file, "socket"), "waiting_connections", 0);
    }
    const char *channel = bp_json_tree_text_or(thread->row, "wait_channel", "");
    return count > 0 && strncmp(thread->syscall, "epoll", strlen("epoll")) == 0 &&
           strcmp(thread->state, "sleeping") == 0 &&
           (channel[0] == '\0' || strstr(channel, "poll") != NULL);
}

/*
 * True if no socket can wake the thread: it sleeps for a time, or waits for a lock, a child or a
 * pipe. Of a call that is not known, and of descriptors that are not, one may. Who waits to write
 * is no such thread: it leaves its input unread until there is room, as it should.
 */
static bool is_deaf(const bp_evidence *evidence, const bp_thread *thread) {
    static const char *const sleeping[] = {"futex", "wait4",  "waitid", "flock",         "fcntl",
                                           "open",  "openat", "pause",  "rt_sigsuspend", NULL};
    static const char *const reading[] = {"read",         "readv",    "poll",       "ppoll",
                                          "select",       "pselect6", "epoll_wait", "epoll_pwait",
                                          "epoll_pwait2", NULL};
    const char *call = thread->syscall;
    if (bp_array_has_text(sleeping, call) || bp_thread_only_sleeps(thread)) {
        return true;
    }
    const bp_json_tree *polled = bp_json_tree_rows(thread->row, "polled");
    BP_JSON_EACH (item, polled) {
        if (!is_private(bp_evidence_polled(evidence, item))) {
            return polls_in_vain(evidence, thread);
        }
    }
    return bp_array_has_text(reading, call) &&
           (polled != NULL || is_private(bp_json_tree_object(thread->row, "waits_for")));
}

/* How likely it is the thread that should read: one that sleeps, or waits for a child or a file;
 * then the first of all, unless it waits for the end of another; then one with a loop of its own.
 */
static int rank(const bp_evidence *evidence, const bp_thread *thread) {
    bool is_first = thread->tid == bp_json_tree_uint_or(evidence->waits, "pid", 0);
    if (strcmp(thread->syscall, "futex") == 0) {
        return is_first && strcmp(thread->waits_for_kind, "thread") != 0 ? 2 : 0;
    }
    return strstr(thread->syscall, "poll") != NULL && !bp_thread_only_sleeps(thread) ? 1 : 3;
}

/* Input for a server that was there at the beginning of the window. Another process that has the
 * same socket may read it. */
typedef struct unread_input {
    uint64_t connection_count;            /* not accepted */
    uint64_t byte_count;                  /* of those that were */
    const bp_json_tree *listener, *first; /* the first of each */
} unread_input;

static void add_unread(const bp_json_tree *file, unread_input *input) {
    const bp_json_tree *socket = bp_json_tree_object(file, "socket");
    bool is_connected = strcmp(bp_json_tree_text_or(socket, "state", ""), "established") == 0 &&
                        bp_json_tree_is_true(socket, "accepted");
    /* The kernel drops messages for which a full queue has no room. */
    bool is_udp = strncmp(bp_json_tree_text_or(socket, "protocol", ""), "udp", 3) == 0 &&
                  bp_json_tree_uint_or(socket, "drops", 0) > 0;
    uint64_t connections = bp_json_tree_uint_or(socket, "waiting_connections", 0);
    uint64_t bytes =
        is_connected || is_udp ? bp_json_tree_uint_or(socket, "receive_queue_bytes", 0) : 0;
    if (bp_json_tree_is_true(file, "shared")) {
        return;
    }
    input->connection_count += connections;
    input->byte_count += bytes;
    input->listener = input->listener == NULL && connections > 0 ? socket : input->listener;
    input->first = input->first == NULL && bytes > 0 ? socket : input->first;
}

/* No thread ran in the window, so what could be read at its beginning still can be at its end. */
void bp_diagnose_input_not_read(bp_evidence *evidence) {
    const bp_thread *sleeper = NULL;
    const bp_json_tree *search = bp_json_tree_object(evidence->files_rest, "other_ends");
    /* A search that was cut may have missed a process with the same socket. A report of before the
     * member "cut" was known says only that the search is not complete. */
    bool was_cut = bp_json_tree_is_true(search, "cut") ||
                   (search != NULL && !bp_json_tree_is_true(search, "complete") &&
                    bp_json_tree_uint_or(search, "denied_processes", 0) == 0);
    unread_input input = {.listener = NULL};
    for (size_t i = 0; i < evidence->files.count; i++) {
        add_unread(evidence->files.rows[i], &input);
    }
    if ((input.connection_count == 0 && input.byte_count == 0) ||
        evidence->window_ms < BP_EVIDENCE_ANSWER_WINDOW_MS || was_cut) {
        return;
    }
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (bp_thread_has_ended(thread)) {
            continue;
        }
        if (!thread->is_listed || thread->is_own || !bp_thread_is_idle(thread) ||
            !is_deaf(evidence, thread)) {
            return;
        }
        bool is_better = sleeper == NULL || rank(evidence, thread) > rank(evidence, sleeper);
        sleeper = is_better ? thread : sleeper;
    }
    if (sleeper == NULL) {
        return;
    }
    char function[BP_FRAME_NAME_BYTES];
    bp_thread_print_function(evidence, sleeper, function);
    const char *local =
        bp_json_tree_text_or(input.listener != NULL ? input.listener : input.first, "local", "?");
    bp_find(evidence,
            "no thread reads what came in on {}{[, {} connection{|s} to accept]}{[, {} byte{|s} to "
            "read]}; thread {} is in {}{[, called by {},]} instead, for all of the {} measured{}",
            BP_CUT_TEXT(local, 110), BP_COUNT(input.connection_count), BP_COUNT(input.byte_count),
            bp_thread_argument(sleeper), BP_TEXT(sleeper->syscall), BP_TEXT(function),
            BP_SECS(evidence->window_ms),
            BP_TEXT(polls_in_vain(evidence, sleeper)
                        ? ": epoll says once what is there, and has to find all of it accepted"
                        : ""));
}
