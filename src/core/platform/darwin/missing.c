/*
 * Stubs for features that only Linux has: sessions keep their rings in memory here, and no crash is
 * handled.
 */
#include <pthread.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/ask_socket.h"
#include "platform/crash_handler.h"
#include "platform/machine.h"
#include "platform/thread.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

size_t bp_thread_local_bytes(void) {
    return 0; /* dyld of macOS takes them from the heap, at a thread's first use */
}

void bp_thread_drop_signal(int number) {
    /* macOS lacks sigtimedwait: the caller has seen the signal pending. */
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, number);
    (void)sigwait(&signals, &number);
}

void bp_condition_init(pthread_cond_t *condition) {
    (void)pthread_cond_init(condition, NULL);
}

/*
 * Only Linux can wipe a page in the child of a fork, so the process id decides here: minherit(2) of
 * macOS can drop a page but not zero it. getpid costs a load on macOS, whose libc caches it.
 */
bugpack_status bp_fork_number_make(unsigned *ret_number, bugpack_error *error) {
    *ret_number = (unsigned)getpid();
    return BUGPACK_OK;
}

bool bp_fork_number_is(unsigned number) {
    return number == (unsigned)getpid();
}

void bp_thread_name_of(uint64_t tid, char out[BP_THREAD_NAME_BYTES]) {
    out[0] = '\0';
}

bool bp_thread_is_traced(uint64_t tid) {
    return false;
}

bool bp_thread_waits_for(uint64_t tid, uint64_t owner_tid) {
    return false;
}

bugpack_status bp_ask_socket_open(const char *dir, int *ret_fd, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "sessions have no sockets on this system");
}

int bp_ask_socket_accept(int fd, char ret_request[BP_ASK_REQUEST_BYTES]) {
    return -1;
}

void bp_ask_socket_answer(int fd, const char *text, size_t byte_count) {
}

bugpack_status bp_ask_socket_connect(int dir_fd, pid_t pid, const char *request,
                                     uint64_t deadline_ns, int *ret_fd, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "sessions have no sockets on this system");
}

bugpack_status bp_crash_handler_install(bp_crash_page *page, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "no handler of fatal signals on this system");
}

bool bp_crash_handler_remove(const bp_crash_page *page) {
    return true;
}

void bp_crash_handler_check(bp_crash_page *page) {
}

bugpack_status bp_crash_thread_init(bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "no handler of fatal signals on this system");
}

bugpack_status bp_mapped_dirs_visit(const bp_mapped_dirs *dirs, pid_t pid, bugpack_error *error) {
    return BUGPACK_OK;
}

bool bp_process_has_thread(pid_t pid, const char *name) {
    return false;
}

bool bp_ring_dirs_is_in_memory(const char *path) {
    return false;
}

uint64_t bp_ring_dirs_survival(const char *path, bool is_in_memory) {
    return BUGPACK_SURVIVES_KILL;
}
