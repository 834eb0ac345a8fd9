#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "session/events.h"
#include "session/limits.h"
#include "session/live.h"
#include "session/retained.h"
#include "session/session.h"

enum { description_max_bytes = 64 * 1024, channel_max_bytes = 256 };

/* Takes the fields that the host's version of the struct has, and defaults for the others. */
static bugpack_status read_request(const bugpack_report_request *given,
                                   bugpack_report_request *request) {
    const size_t first_version_bytes =
        offsetof(bugpack_report_request, timeout_ms) + sizeof request->timeout_ms;
    *request = (bugpack_report_request)BUGPACK_REPORT_REQUEST_INIT;
    if (given == NULL) {
        return BUGPACK_OK;
    }
    if (given->struct_size < first_version_bytes) {
        return BUGPACK_ERR_INVALID;
    }
    memcpy(request, given,
           given->struct_size < sizeof *request ? given->struct_size : sizeof *request);
    bool is_good =
        (request->description == NULL ||
         strnlen(request->description, description_max_bytes + 1) <= description_max_bytes) &&
        (request->channel == NULL ||
         strnlen(request->channel, channel_max_bytes + 1) <= channel_max_bytes);
    return is_good ? bp_screenshot_check(request->screenshot, &request->region)
                   : BUGPACK_ERR_INVALID;
}

/* The trigger: everything that must be of this instant is fixed here, and nothing is waited for. */
static bugpack_status make_order(bugpack *session, const bugpack_report_request *request,
                                 bp_order **ret_order) {
    bool is_crash = request->is_crash && session->options.target_pid != 0;
    bp_order *order = bp_order_new(session, is_crash ? BP_REPORT_CRASH : BP_REPORT_BUGREPORT);
    if (order == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    bugpack_status status = BUGPACK_OK;
    order->is_manual = true;
    order->may_be_shared = request->output_path == NULL && request->screenshot == NULL &&
                           request->retained == 0 && request->timeout_ms == 0;
    if (request->timeout_ms != 0) {
        order->token.deadline_ns =
            order->triggered.monotonic_ns + request->timeout_ms * BP_NS_PER_MS;
    }
    if (!bp_order_copy_text(request->description, &order->description) ||
        !bp_order_copy_text(request->channel, &order->channel)) {
        status = BUGPACK_ERR_NO_MEMORY;
    }
    if (status == BUGPACK_OK && request->screenshot != NULL) {
        status = bp_screenshot_copy(request->screenshot, &request->region,
                                    &session->held_picture_bytes, &order->screenshot);
    }
    if (status == BUGPACK_OK && request->output_path != NULL) {
        status = bp_absolute_path(request->output_path, &order->output_path, NULL);
    }
    if (status == BUGPACK_OK && request->retained != 0) {
        status = bp_retained_lend(session, request->retained, order);
    }
    if (status != BUGPACK_OK) {
        bp_order_free(order);
        return status;
    }
    *ret_order = order;
    return BUGPACK_OK;
}

static bugpack_status trigger(bugpack *session, const bugpack_report_request *request,
                              bugpack_report_done *on_done, void *context, bugpack_error *error) {
    bugpack_report_request known;
    bugpack_status status = read_request(request, &known);
    bp_order *order = NULL;
    if (status == BUGPACK_OK) {
        status = make_order(session, &known, &order);
    }
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "no report was taken: %s", bugpack_status_name(status));
    }
    order->on_done = on_done;
    order->on_done_context = context;
    return bp_order_submit(session, order, known.ret_ticket, error);
}

/* The same from outside: through the gate. */
static bugpack_status enter_and_trigger(bugpack *session, const bugpack_report_request *request,
                                        bugpack_report_done *on_done, void *context,
                                        bugpack_error *error) {
    bp_guard_entry entry;
    bugpack_status status = bp_session_enter(session, &entry);
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "no report was taken: %s", bugpack_status_name(status));
    }
    status = trigger(session, request, on_done, context, error);
    bp_session_leave(&entry);
    return status;
}

bugpack_status bugpack_report_async(bugpack *session, const bugpack_report_request *request,
                                    bugpack_report_done *on_done, void *context) {
    return enter_and_trigger(session, request, on_done, context, NULL);
}

void bp_session_order_recovery(bugpack *session) {
    bp_order *order = calloc(1, sizeof *order);
    if (order != NULL) {
        order->is_recovery = true;
        order->destination = (bp_destination)BP_DESTINATION_INIT;
        if (bp_worker_submit(session->worker, order) != BUGPACK_OK) {
            bp_order_free(order);
        }
    }
}

/* What becomes of an earlier session's remains is told in the log of this one. */
static void tell_recovered(const bugpack_report_result *result, void *context) {
    bp_events_tell_recovered(context, result);
    if (result->status == BUGPACK_OK) {
        bugpack_log(context, BUGPACK_LEVEL_INFO, "bugpack", "a session that died is in %s",
                    result->path);
        bp_limits_apply_beside(context, result->path);
    } else {
        bugpack_log(context, BUGPACK_LEVEL_WARN, "bugpack",
                    "a session that died was not recovered: %s", result->error.message);
    }
}

static void recover_earlier(bugpack *session) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bugpack_recover(session->options.recorder_dir, NULL, session->options.app_name,
                        tell_recovered, session, &error) != BUGPACK_OK) {
        bugpack_log(session, BUGPACK_LEVEL_WARN, "bugpack", "no session was recovered: %s",
                    error.message);
    }
}

void bp_session_run_order(void *job, void *context) {
    bugpack *session = context;
    bp_order *order = job;
    if (order->is_recovery) {
        recover_earlier(session);
        bp_order_free(order);
        bp_pedantic_feed(session);
        return;
    }
    bp_live_run(session, order);
    bp_pedantic_feed(session);
}

/* A caller that waits for its report. */
struct waiter {
    pthread_mutex_t mutex;
    pthread_cond_t done;
    bool is_done;
    bugpack_report_result *result;
};

static void wake_waiter(const bugpack_report_result *result, void *context) {
    struct waiter *waiter = context;
    (void)pthread_mutex_lock(&waiter->mutex);
    *waiter->result = *result;
    waiter->is_done = true;
    (void)pthread_cond_signal(&waiter->done);
    (void)pthread_mutex_unlock(&waiter->mutex);
}

static bugpack_status fail_result(bugpack_report_result *result, bugpack_status status) {
    *result = (bugpack_report_result){.struct_size = sizeof *result, .status = status};
    return bp_fail(&result->error, status, "no report was taken: %s", bugpack_status_name(status));
}

static bugpack_status report_and_wait(bugpack *session, const bugpack_report_request *request,
                                      bugpack_report_result *result) {
    bugpack_status checked = bp_session_check(session);
    if (checked != BUGPACK_OK) {
        return fail_result(result, checked);
    }
    if (bp_runner_is_inside_provider() || bp_worker_is_current_thread()) {
        return fail_result(result, BUGPACK_ERR_INVALID);
    }
    struct waiter waiter = {.result = result};
    bugpack_error error;
    if (pthread_mutex_init(&waiter.mutex, NULL) != 0) {
        return fail_result(result, BUGPACK_ERR_NO_MEMORY);
    }
    bugpack_status status = bp_condition_init(&waiter.done, &error);
    if (status == BUGPACK_OK) {
        status = enter_and_trigger(session, request, wake_waiter, &waiter, &error);
        if (status == BUGPACK_OK) {
            (void)pthread_mutex_lock(&waiter.mutex);
            while (!waiter.is_done) {
                (void)pthread_cond_wait(&waiter.done, &waiter.mutex);
            }
            (void)pthread_mutex_unlock(&waiter.mutex);
            status = result->status;
        } else {
            (void)fail_result(result, status);
            result->error = error;
        }
        (void)pthread_cond_destroy(&waiter.done);
    } else {
        (void)fail_result(result, status);
    }
    (void)pthread_mutex_destroy(&waiter.mutex);
    return status;
}

/* Gives a host what it has room for: one that was built with an older version knows fewer fields.
 */
static void copy_result(const bugpack_report_result *result, bugpack_report_result *ret_result) {
    size_t known_bytes = ret_result->struct_size;
    memcpy(ret_result, result, known_bytes < sizeof *result ? known_bytes : sizeof *result);
    ret_result->struct_size = known_bytes;
}

bugpack_status bugpack_report(bugpack *session, const bugpack_report_request *request,
                              bugpack_report_result *ret_result) {
    bugpack_report_result result;
    const size_t first_version_bytes =
        offsetof(bugpack_report_result, missing) + sizeof result.missing;
    if (ret_result != NULL && ret_result->struct_size < first_version_bytes) {
        return BUGPACK_ERR_INVALID;
    }
    int cancel = bp_thread_hold_cancel();
    bugpack_status status = report_and_wait(session, request, &result);
    bp_thread_allow_cancel(cancel);
    if (ret_result != NULL) {
        copy_result(&result, ret_result);
    }
    return status;
}
