#include "platform/thread.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"

static const size_t stack_bytes = 256 * 1024;

void bp_thread_name(char out[BP_THREAD_NAME_BYTES]) {
    if (pthread_getname_np(pthread_self(), out, BP_THREAD_NAME_BYTES) != 0) {
        out[0] = '\0';
    }
}

bool bp_thread_is_own(const char *name) {
    static const char *const names[] = {"bugpack-facts",   "bugpack-monitor", "bugpack-profile",
                                        "bugpack-provide", "bugpack-snap",    "bugpack-stop",
                                        "bugpack-trace",   "bugpack-worker",  NULL};
    return bp_array_has_text(names, name);
}

const char *bp_thread_recent_name(uint64_t now_ns, size_t *ret_bytes) {
    static _Thread_local struct {
        uint64_t asked_ns; /* 0: never */
        size_t name_bytes;
        char name[BP_THREAD_NAME_BYTES];
    } recent;
    if (recent.asked_ns == 0 || now_ns - recent.asked_ns >= BP_THREAD_NAME_STALE_NS) {
        bp_thread_name(recent.name);
        recent.name_bytes = strlen(recent.name);
        recent.asked_ns = now_ns;
    }
    *ret_bytes = recent.name_bytes;
    return recent.name;
}

static bool is_size_signal_pending(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

void bp_thread_hold_begin(bp_thread_hold *ret_hold) {
    sigset_t size_signal;
    ret_hold->cancel = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ret_hold->cancel);
    (void)sigemptyset(&size_signal);
    (void)sigaddset(&size_signal, SIGXFSZ);
    (void)pthread_sigmask(SIG_BLOCK, &size_signal, &ret_hold->mask);
    ret_hold->had_size_signal = is_size_signal_pending();
}

void bp_thread_hold_end(const bp_thread_hold *hold) {
    /* The kernel sends it to the thread that wrote (generic_write_check_limits in fs/read_write.c),
     * so it is pending by now. */
    if (!hold->had_size_signal && is_size_signal_pending()) {
        bp_thread_drop_signal(SIGXFSZ);
    }
    (void)pthread_sigmask(SIG_SETMASK, &hold->mask, NULL);
    (void)pthread_setcancelstate(hold->cancel, NULL);
}

/*
 * Ordinary scheduling: a thread created by a real-time thread would be real-time too, and pack a
 * zip while the host's own threads wait. If a sandbox forbids that, the creator's scheduling is
 * better than no thread.
 */
static int create(pthread_attr_t *attributes, void *(*run)(void *), void *argument,
                  pthread_t *thread) {
    /* New attributes have the ordinary priority: 0 on Linux; 31 on macOS, where 0 would be the
     * lowest. It has to be set all the same, or glibc takes the creator's. */
    struct sched_param ordinary = {0};
    (void)pthread_attr_getschedparam(attributes, &ordinary);
    (void)pthread_attr_setschedpolicy(attributes, SCHED_OTHER);
    (void)pthread_attr_setschedparam(attributes, &ordinary);
    (void)pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
    int result = pthread_create(thread, attributes, run, argument);
    if (result == EPERM) {
        (void)pthread_attr_setinheritsched(attributes, PTHREAD_INHERIT_SCHED);
        result = pthread_create(thread, attributes, run, argument);
    }
    return result;
}

bugpack_status bp_thread_start(void *(*run)(void *), void *argument, pthread_t *ret_thread,
                               bugpack_error *error) {
    pthread_attr_t attributes;
    int result = pthread_attr_init(&attributes);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot start a thread");
    }
    (void)pthread_attr_setstacksize(&attributes, stack_bytes + bp_thread_local_bytes());
    sigset_t before;
    /*
     * A thread inherits its creator's mask, so the creator blocks first and no signal can arrive in
     * between. Signals of faults stay unblocked: otherwise the kernel would end the host without
     * calling its handler (force_sig_info in kernel/signal.c).
     */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked;
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        (void)sigdelset(&blocked, faults[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &before);
    pthread_t thread;
    result = create(&attributes, run, argument, &thread);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot start a thread");
    }
    *ret_thread = thread;
    return BUGPACK_OK;
}
