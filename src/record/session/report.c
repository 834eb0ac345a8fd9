/*
 * The public calls about reports: ask for one, wait for it, cancel it.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/lock.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "recorder/recorder.h"
#include "report/screenshot.h"
#include "session/command.h"
#include "session/session.h"
#include "trigger/trigger.h"

enum { description_max_bytes = 64 * 1024, channel_max_bytes = 256 };

static bugpack_status read_request(const bugpack_report_request *given,
                                   bugpack_report_request *request, bugpack_error *error) {
    static const bp_field timeout =
        BP_FIELD(bugpack_report_request, timeout_ms, 0, 0, BP_FIELD_MAX32);
    *request = (bugpack_report_request)BUGPACK_REPORT_REQUEST_INIT;
    if (given == NULL) {
        return BUGPACK_OK;
    }
    if (bp_struct_read(&bp_of_bugpack_report_request, request, given, error) != BUGPACK_OK ||
        bp_struct_fill(request, &timeout, 1, error) != BUGPACK_OK) {
        return BUGPACK_ERR_INVALID;
    }
    bugpack_status status =
        bp_check_text("description", request->description, 0, description_max_bytes, error);
    if (status == BUGPACK_OK) {
        status = bp_check_text("channel", request->channel, 0, channel_max_bytes, error);
    }
    return status != BUGPACK_OK ? status
                                : bp_screenshot_check(request->screenshot, &request->region, error);
}

/* The owner of the pixels of a request, which an older host cannot name. */
static bp_pixel_owner pixel_owner(const bugpack_report_request *given) {
    const size_t least_bytes =
        offsetof(bugpack_report_request, screenshot_release) + sizeof given->screenshot_release;
    if (bp_struct_check(&bp_of_bugpack_report_request, given, NULL) != BUGPACK_OK ||
        given->struct_size < least_bytes) {
        return (bp_pixel_owner){NULL, NULL};
    }
    return (bp_pixel_owner){given->screenshot_release, given->screenshot_context};
}

/* The payload of a report that the host asked for. */
struct manual_report {
    bp_recorder *recorder;
    bp_screenshot screenshot;
    bp_retained *loan; /* NULL: the rings are copied now */
    char *description, *channel, *output_path;
    bool has_exit;
    bp_exit exit;
    bp_metadata_target dead; /* of a core; its pid is 0: the target of the session */
};

static bugpack_status take_snapshot(bp_job *job, bugpack_error *error) {
    const struct manual_report *report = job->payload;
    return bp_retained_take_snapshot(report->loan, job, error);
}

static bool brings_entry(const bp_job *job, const char *name) {
    const struct manual_report *report = job->payload;
    return report->screenshot.is_there && strcmp(name, "screenshot.png") == 0;
}

static bugpack_status add_entries(bp_job *job, bp_bundle *bundle, bugpack_error *error) {
    struct manual_report *report = job->payload;
    if (!report->screenshot.is_there) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_screenshot_add(&report->screenshot, &job->token, bundle, error);
    bp_screenshot_drop_pixels(&report->screenshot);
    return status;
}

static void describe(const bp_job *job, bp_metadata *metadata, bugpack_writer *writer) {
    const struct manual_report *report = job->payload;
    (void)writer;
    metadata->description = report->description;
    metadata->region = bp_screenshot_region(&report->screenshot);
    metadata->exit = report->has_exit ? &report->exit : NULL;
    if (report->dead.pid != 0) {
        metadata->target = report->dead;
        metadata->is_about_none = false;
    }
}

/* There is no second chance to ask for the report of a process that has died: where it fails, the
 * records stay for recovery. */
static void settled(const bp_job *job, const bugpack_report_result *result) {
    struct manual_report *report = job->payload;
    if (report->loan != NULL) {
        bp_retained_settled(report->loan, result);
    }
    bp_screenshot_drop_pixels(&report->screenshot);
    if (report->has_exit) {
        atomic_store(&report->recorder->rings->is_kept,
                     result->status != BUGPACK_OK && result->status != BUGPACK_ERR_CANCELLED);
    }
}

static void free_payload(bp_job *job) {
    struct manual_report *report = job->payload;
    if (report->loan != NULL) {
        bp_retained_give_back(report->loan, job);
    }
    bp_screenshot_drop_pixels(&report->screenshot);
    free(report->description);
    free(report->channel);
    free(report->output_path);
}

#define REQUEST(kind_of_report, ...)                                                               \
    {                                                                                              \
        .kind = kind_of_report, .is_manual = true, .brings_entry = brings_entry,                   \
        .add_entries = add_entries, .describe = describe, .settled = settled,                      \
        .free = free_payload, __VA_ARGS__                                                          \
    }
/* By whether one report can serve several requests. */
static const bp_job_type request_types[2] = {REQUEST(BP_REPORT_BUGREPORT, .is_shared = false),
                                             REQUEST(BP_REPORT_BUGREPORT, .is_shared = true)};

/* The jobs of a target that has ended: by itself, or by a signal. */
static const bp_job_type end_types[2] = {REQUEST(BP_REPORT_EXIT, .is_shared = false),
                                         REQUEST(BP_REPORT_CRASH, .is_shared = false)};

static const bp_job_type loan_type =
    REQUEST(BP_REPORT_NOTIFICATION, .borrows_snapshot = true, .take_snapshot = take_snapshot);

static const bp_job_type *type_of(const bugpack_report_request *request, const bp_target_end *end) {
    /* A core that no signal caused is of a process that ran on. */
    if (end != NULL && (end->exit.signal != 0 || end->exit.status != 0)) {
        return &end_types[end->exit.signal != 0];
    }
    bool is_shared = request->output_path == NULL && request->screenshot == NULL &&
                     request->retained == 0 && request->timeout_ms == 0;
    return &request_types[is_shared];
}

static bool copy_text(const char *text, char **ret_copy) {
    *ret_copy = text == NULL ? NULL : strdup(text);
    return text == NULL || *ret_copy != NULL;
}

/* Fixes everything that must be of this instant, and waits for nothing. */
static bugpack_status fill_job(bugpack_session *session, const bugpack_report_request *request,
                               const bp_target_end *end, bp_pixel_owner *owner, bp_job *job,
                               bugpack_error *error) {
    struct manual_report *report = job->payload;
    bugpack_status status = BUGPACK_OK;
    report->recorder = session->context.recorder;
    if (end != NULL) {
        report->exit = end->exit;
        report->has_exit = end->exit.signal != 0 || end->exit.status != 0;
        report->dead = end->dead;
        atomic_store(&session->context.subject->crash, end->crash);
    }
    if (end != NULL && job->window != NULL) {
        bp_window_release(job->window);
        job->window = bp_windows_ask(&session->context.recorder->windows,
                                     job->triggered.monotonic_ns, true, end->exit.cpu_ns);
    }
    if (request->timeout_ms != 0) {
        job->token.deadline_ns = job->triggered.monotonic_ns + request->timeout_ms * BP_NS_PER_MS;
    }
    if (!copy_text(request->description, &report->description) ||
        !copy_text(request->channel, &report->channel)) {
        return bp_fail_memory(error, "take a report");
    }
    job->channel = report->channel;
    if (job->channel != NULL && job->channel[0] != '\0' && !request->all_traffic) {
        job->traffic.only = job->channel;
    }
    if (request->screenshot != NULL) {
        bp_screenshot_take(request->screenshot, &request->region, owner,
                           &session->held_picture_bytes, &report->screenshot);
    }
    if (request->output_path != NULL) {
        status = bp_file_absolute_path(request->output_path, &report->output_path, error);
        job->output_path = report->output_path;
    }
    if (status == BUGPACK_OK && request->retained != 0) {
        status = bp_retained_lend(session->triggers.retained, request->retained, job, &report->loan,
                                  error);
        job->type = status == BUGPACK_OK ? &loan_type : job->type;
    }
    return status;
}

static bugpack_status submit(bugpack_session *session, const bugpack_report_request *request,
                             const bp_target_end *end, bp_pixel_owner *owner,
                             bugpack_report_callback *on_done, void *context,
                             bugpack_error *error) {
    bugpack_report_request known;
    bp_call call;
    if (!bp_session_enter(&call, session, "take a report", error)) {
        return bp_session_leave(&call);
    }
    call.status = read_request(request, &known, error);
    if (call.status == BUGPACK_OK) {
        bp_job *job =
            bp_job_new(&session->context, type_of(&known, end), sizeof(struct manual_report));
        call.status = job == NULL ? bp_fail_memory(error, "take a report")
                                  : fill_job(session, &known, end, owner, job, error);
        if (call.status != BUGPACK_OK) {
            bp_job_free(job);
        } else {
            job->on_done = on_done;
            job->on_done_context = context;
            call.status = bp_job_queue_submit(session->context.jobs, job, known.ret_ticket, error);
        }
        if (call.status != BUGPACK_OK && call.status != BUGPACK_ERR_INVALID && end != NULL) {
            atomic_store(&session->context.recorder->rings->is_kept, true);
        }
    }
    return bp_session_leave(&call);
}

bugpack_status bp_session_report(bugpack_session *session, const bugpack_report_request *request,
                                 const bp_target_end *end, bugpack_report_callback *on_done,
                                 void *context, bugpack_error *error) {
    bp_pixel_owner owner = pixel_owner(request);
    bugpack_status status = submit(session, request, end, &owner, on_done, context, error);
    bp_pixel_owner_release(&owner);
    return status;
}

bugpack_status bugpack_report_async(bugpack_session *session, const bugpack_report_request *request,
                                    bugpack_report_callback *on_done, void *context,
                                    bugpack_error *error) {
    return bp_session_report(session, request, NULL, on_done, context, error);
}

/* A provider or callback that waited for a report would wait for itself. */
static bugpack_status refuse_inside_callback(bugpack_error *error) {
    return bp_runner_is_inside_provider() || bp_job_queue_is_own_thread(NULL)
               ? bp_fail(error, BUGPACK_ERR_INVALID,
                         "cannot wait for a report inside a provider or callback")
               : BUGPACK_OK;
}

/* A caller that waits for its report. */
struct waiter {
    bp_lock lock;
    pthread_cond_t done;
    bool is_done;
    bugpack_report_result *result;
};

static void wake_waiter(const bugpack_report_result *result, void *context) {
    struct waiter *waiter = context;
    bp_lock_acquire(&waiter->lock);
    *waiter->result = *result;
    waiter->is_done = true;
    (void)pthread_cond_signal(&waiter->done);
    bp_lock_release(&waiter->lock);
}

static bugpack_status report_and_wait(bugpack_session *session,
                                      const bugpack_report_request *request, bp_pixel_owner *owner,
                                      bugpack_report_result *result) {
    struct waiter waiter = {.result = result};
    *result = (bugpack_report_result){.struct_size = sizeof *result};
    if (bp_session_check(session) == BUGPACK_OK) {
        result->status = refuse_inside_callback(&result->error);
        if (result->status != BUGPACK_OK) {
            return result->status;
        }
    }
    bp_condition_init(&waiter.done);
    bp_lock_init(&waiter.lock, BP_LOCK_REPORT_CALL);
    bugpack_status status =
        submit(session, request, NULL, owner, wake_waiter, &waiter, &result->error);
    if (status != BUGPACK_OK) {
        result->status = status;
    } else {
        bp_lock_acquire(&waiter.lock);
        while (!waiter.is_done) {
            bp_lock_wait(&waiter.lock, &waiter.done);
        }
        bp_lock_release(&waiter.lock);
    }
    (void)pthread_cond_destroy(&waiter.done);
    bp_lock_destroy(&waiter.lock);
    return result->status;
}

static bugpack_status report_to(bugpack_session *session, const bugpack_report_request *request,
                                bp_pixel_owner *owner, bugpack_report_result *ret_result,
                                bugpack_error *error) {
    static const bugpack_report_result no_memory = {
        .struct_size = sizeof no_memory,
        .status = BUGPACK_ERR_NO_MEMORY,
        .error = {.status = BUGPACK_ERR_NO_MEMORY,
                  .message = "cannot take a report: out of memory"}};
    if (ret_result != NULL &&
        bp_struct_check(&bp_of_bugpack_report_result, ret_result, error) != BUGPACK_OK) {
        return BUGPACK_ERR_INVALID;
    }
    /* In a child of fork, an allocator that is not glibc's may wait for ever for a lock that a
     * thread of the parent held. */
    if (bp_session_check(session) != BUGPACK_OK && ret_result == NULL) {
        return submit(session, request, NULL, owner, NULL, NULL, error);
    }
    /* Not on the host's stack, which may be small. */
    bugpack_report_result *result = malloc(sizeof *result);
    bugpack_status status = BUGPACK_ERR_NO_MEMORY;
    if (result != NULL) {
        bp_thread_hold hold;
        bp_thread_hold_begin(&hold);
        status = report_and_wait(session, request, owner, result);
        bp_thread_hold_end(&hold);
    }
    const bugpack_report_result *outcome = result != NULL ? result : &no_memory;
    if (ret_result != NULL) {
        bp_struct_write(&bp_of_bugpack_report_result, ret_result, outcome);
    }
    if (status != BUGPACK_OK && error != NULL) {
        *error = outcome->error;
    }
    free(result);
    return status;
}

bugpack_status bugpack_report(bugpack_session *session, const bugpack_report_request *request,
                              bugpack_report_result *ret_result, bugpack_error *error) {
    bp_pixel_owner owner = pixel_owner(request);
    bugpack_status status = report_to(session, request, &owner, ret_result, error);
    bp_pixel_owner_release(&owner);
    return status;
}

bugpack_status bugpack_cancel(bugpack_session *session, uint64_t ticket, bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "cancel a report", error) &&
        !bp_job_queue_cancel(session->context.jobs, ticket)) {
        call.status = ticket == 0
                          ? bp_fail(error, BUGPACK_ERR_NO_TICKET, "no report waits or runs")
                          : bp_fail(error, BUGPACK_ERR_NO_TICKET,
                                    "no report with the ticket %" PRIu64 " waits or runs", ticket);
    }
    return bp_session_leave(&call);
}

bugpack_status bugpack_flush(bugpack_session *session, uint64_t timeout_ms, bugpack_error *error) {
    bp_call call;
    if (!bp_session_enter(&call, session, "wait for reports", error)) {
        return bp_session_leave(&call);
    }
    uint64_t deadline_ns =
        timeout_ms > UINT32_MAX ? UINT64_MAX : bp_clock_monotonic_ns() + timeout_ms * BP_NS_PER_MS;
    call.status = refuse_inside_callback(error);
    if (call.status == BUGPACK_OK && !bp_job_queue_flush(session->context.jobs, deadline_ns)) {
        call.status = bp_fail(error, BUGPACK_ERR_TIMEOUT,
                              "reports are still under way after %" PRIu64 " ms", timeout_ms);
    }
    return bp_session_leave(&call);
}
