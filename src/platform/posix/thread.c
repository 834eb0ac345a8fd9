#include "platform/thread.h"

#include <signal.h>

#include "base/status.h"
#include "platform/thread_name.h"

static const size_t stack_bytes = 256 * 1024;

void bp_thread_name(char out[BP_THREAD_NAME_BYTES]) {
    if (pthread_getname_np(pthread_self(), out, BP_THREAD_NAME_BYTES) != 0) {
        out[0] = '\0';
    }
}

bugpack_status bp_thread_start(const char *name, void *(*run)(void *), void *argument,
                               pthread_t *ret_thread, bugpack_error *error) {
    pthread_attr_t attributes;
    int result = pthread_attr_init(&attributes);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot start a thread");
    }
    (void)pthread_attr_setstacksize(&attributes, stack_bytes);
    if (ret_thread == NULL) {
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    }
    /* A thread inherits the mask of its maker, so block first: no signal can slip in between. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    result = pthread_create(&thread, &attributes, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot start a thread");
    }
    bp_thread_set_name(thread, name);
    if (ret_thread != NULL) {
        *ret_thread = thread;
    }
    return BUGPACK_OK;
}
