/*
 * What a session is made of. Only this room sees it; everybody else sees `bugpack`.
 */
#ifndef BP_SESSION_SESSION_H
#define BP_SESSION_SESSION_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/bugpack.h>

#include "base/clock.h"
#include "base/id.h"
#include "model/metadata.h"
#include "platform/host.h"
#include "platform/thread.h"
#include "probe/pulse.h"
#include "probe/sampler.h"
#include "recorder/recorder.h"
#include "report/provider.h"
#include "session/entry_guard.h"
#include "session/order.h"
#include "session/pedantic.h"
#include "trigger/timer.h"
#include "trigger/worker.h"

struct bugpack {
    bp_fork_guard *fork_guard;
    bp_entry_guard guard; /* of the slow calls */
    atomic_uint reference_count;
    bugpack_options options; /* its strings are ours */
    char id[BP_ID_BYTES];
    bp_instant opened;
    bp_host_identity host;
    bp_metadata_target target;

    bp_recorder *recorder;
    bp_pulse *pulse; /* NULL without a metrics history */
    struct bugpack_channel *channels;
    bp_worker *worker;
    bp_worker *snapshotter; /* copies the rings for an order while the worker may be busy */
    pthread_mutex_t orders_mutex;
    pthread_cond_t orders_changed;
    bp_order *live_orders;     /* not yet ended, the oldest first; under orders_mutex */
    atomic_bool has_cancelled; /* one of them may be cancelled and still wait in the queue */
    _Atomic(struct bp_event_queue *) event_queue; /* made by the first bugpack_events_fd */
    atomic_uint_fast64_t report_sequence;
    _Atomic(uint64_t) held_picture_bytes; /* of all orders together */

    /* What is triggered without the host: session/triggers.h. */
    bp_timer *timer;
    struct bp_auto_snapshot *auto_snapshot; /* NULL: none are wanted */
    struct bp_disconnects *disconnects;
    struct bp_retained_list *kept;
    bp_pedantic *pedantic;

    /* Used by the worker's thread alone. */
    bp_runner *runner;
    bp_sampler *sampler; /* NULL when there is none: then sampler_error says why */
    bugpack_error sampler_error;

    struct bp_watched *watched; /* whom process.json is about; NULL without a sampler */

    pthread_mutex_t providers_mutex;
    bp_provider **providers; /* in the order of registration */
    size_t provider_count;
    size_t provider_capacity;
};

/*
 * OK, INVALID for NULL, or INERT in the child of a fork. The first thing that every public call
 * asks. It does not tell whether the session is closed: that is for the calls that only record,
 * whose rings know it.
 */
bugpack_status bp_session_check(const bugpack *session);

/*
 * What every other public call does instead: OK, INVALID, INERT, or CLOSED from when the close has
 * begun, which then waits for those that are inside. After OK the call must come to its leave, on
 * the same thread, and may use all of the session until then; `ret_entry` is on its stack. Calls
 * may nest. A thread that is inside and closes the session (a callback that the host gave it) does
 * nothing. Never waits; a pthread_cancel is held back until the leave.
 *
 *     bp_guard_entry entry;
 *     bugpack_status status = bp_session_enter(session, &entry);
 *     if (status != BUGPACK_OK) {
 *         return status;
 *     }
 *     …
 *     bp_session_leave(&entry);
 *
 * Do not wait inside for what only the close brings about.
 */
bugpack_status bp_session_enter(bugpack *session, bp_guard_entry *ret_entry);
void bp_session_leave(bp_guard_entry *entry);

/*
 * Checks what the host gave and fills `options` with it: strings copied, paths made absolute,
 * fields that an older host does not know at their defaults.
 */
bugpack_status bp_options_copy(const bugpack_options *given, bugpack_options *options,
                               bugpack_error *error);

/* Frees what was copied. The patterns of gap keys go by themselves and later: a gap that comes
 * after the close is still compared with them. */
void bp_options_release(bugpack_options *options);
void bp_options_release_patterns(bugpack_options *options);

/* `path` made absolute with the current directory; the text is the caller's to free. */
bugpack_status bp_absolute_path(const char *path, char **ret_path, bugpack_error *error);

/*
 * Registers a provider of ours or of the host's, whose name was checked. The context is taken over
 * in any case: on a failure it is released as the spec says.
 */
bugpack_status bp_session_register(bugpack *session, const bp_provider_spec *spec,
                                   bugpack_error *error);

/* The providers now, each with a reference of its own. */
bugpack_status bp_session_list_providers(bugpack *session, bp_provider ***ret_providers,
                                         size_t *ret_count, bugpack_error *error);
/* Waits for calls that a cancelled report left behind, until each one's time limit: what they may
 * touch is the host's to free when the session is closed. */
void bp_session_retire_providers(bugpack *session);
void bp_session_drop_providers(bp_provider **providers, size_t count);

/* Starts the metrics history, where one is wanted and can be had. */
bugpack_status bp_session_start_history(bugpack *session, bugpack_error *error);

/* Lets the worker turn what dead sessions of this app left behind into reports. Best effort. */
void bp_session_order_recovery(bugpack *session);

/* Waits for the channels' filters that are being called; none is called after that. */
void bp_session_close_filters(bugpack *session);

void bp_session_free_channels(bugpack *session);

/* Keeps what is left of a closed session for who may still use its handle, beyond the sessions that
 * are kept anyway (close.c): a log stream. The last one to drop it frees it. Any thread. */
void bp_session_retain(bugpack *session);
void bp_session_drop(bugpack *session);

/*
 * The two halves of an end. Retire ends the threads and gives back all that is large, or the
 * host's: no slow call is inside, and none comes any more. What is left is what the calls that only
 * record look at. Free takes that too, and then none of these may come either.
 */
void bp_session_retire(bugpack *session);
void bp_session_free(bugpack *session);
/* The channels now, in the order of their opening, borrowed; their number. */
size_t bp_session_list_channels(bugpack *session, const bp_traffic *ret_list[BUGPACK_CHANNEL_MAX]);

/* bugpack_notify, for who has checked the session. */
void bp_session_notify(bugpack *session, bugpack_level level, const char *source,
                       const char *format, va_list arguments) BUGPACK_PRINTF(4, 0);

/* Registers process.json, which reads the same process as the session's sampler. */
bugpack_status bp_session_provide_process(bugpack *session, bugpack_error *error);
void bp_watched_drop(struct bp_watched *watched); /* NULL is fine */

/*
 * On the pulse's thread, at each tick: reads the facts of a target for when it has ended, more and
 * more seldom. The pulse slows down by what that costs, as by the tick itself.
 */
void bp_session_refresh_when_due(bugpack *session);

/* Registers thread-heap.json, for a session about another process. */
bugpack_status bp_session_provide_thread_heap(bugpack *session, bugpack_error *error);

/* Registers heap-state.json, unless the session is about another process. */
bugpack_status bp_session_provide_heap_state(bugpack *session, bugpack_error *error);

/* Takes the report that was ordered, from the first sample to the published zip. Worker only. */
void bp_session_take_report(bugpack *session, bp_order *order, bugpack_report_result *result);

/* The worker's job: takes the report, tells the host, frees the order. */
void bp_session_run_order(void *order, void *session);

#endif
