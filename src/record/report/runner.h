/*
 * Calls providers under a time limit: on a thread that can be detached, because a provider is the
 * host's code and may hang for ever.
 */
#ifndef BP_REPORT_RUNNER_H
#define BP_REPORT_RUNNER_H

#include <stdatomic.h>

#include "base/cancel.h"
#include "base/lock.h"
#include "report/provider.h"

/* A thread and the call that it works on. */
typedef struct bp_call_thread bp_call_thread;

typedef struct bp_runner {
    bp_lock lock;           /* for `thread`, where it is not the calling thread that looks */
    bp_call_thread *thread; /* NULL until the first call, and after a call hung */
    void (*on_wake)(void *context);
    void *on_wake_context;
    atomic_bool is_closing;
    atomic_uint_least64_t closing_tid; /* of the thread that waits for the last report; 0: none */
} bp_runner;

/* Its first thread starts with the first call. One report at a time uses it. `on_wake` (NULL: none)
 * is what the waiting thread does after each wake, without a lock. */
void bp_runner_init(bp_runner *runner, void (*on_wake)(void *context), void *context);

/* Makes a running call look at its cancel token again. Any thread, also while there is no call. */
void bp_runner_wake(bp_runner *runner);

/*
 * The calling thread is about to wait for whoever calls providers. A call that waits for a mutex of
 * this thread then has no more time, as it would never get it.
 */
void bp_runner_expect_close(bp_runner *runner);

/* Ends its thread. One that hangs inside a provider is detached, and frees itself later. */
void bp_runner_release(bp_runner *runner);

/*
 * Calls the provider on the runner's thread, where its content is also checked and converted, and
 * waits until that is done, its own time limit passes or `token` (NULL for none) is due. Fills
 * `writer`, which must be fresh, with the artefact or with the reason why there is none. False when
 * the provider was retired before: then there is nothing to report.
 */
bool bp_runner_call(bp_runner *runner, bp_provider *provider, const bp_cancel_token *token,
                    bugpack_writer *writer);

/* True if the calling thread is inside a provider, where it must not wait for a report. */
bool bp_runner_is_inside_provider(void);

#endif
