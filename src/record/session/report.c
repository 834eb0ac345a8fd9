/*
 * The public calls about reports: trigger, wait, cancel, events.
 */
#include <pthread.h>
#include <stdarg.h>
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

static bugpack_status refuse(bugpack_status status, bugpack_error *error) {
    return bp_fail(error, status, "no report was taken: %s", bugpack_status_name(status));
}

static bugpack_status read_request(const bugpack_report_request *given,
                                   bugpack_report_request *request, bugpack_error *error) {
    static const bp_field timeout = BP_FIELD(bugpack_report_request, timeout_ms, 0, 0);
    *request = (bugpack_report_request)BUGPACK_REPORT_REQUEST_INIT;
    if (given == NULL) {
        return BUGPACK_OK;
    }
    if (bp_struct_read(&bp_of_bugpack_report_request, request, given, error) != BUGPACK_OK) {
        return BUGPACK_ERR_INVALID;
    }
    (void)bp_struct_fill(request, &timeout, 1, NULL);
    bool is_good =
        (request->description == NULL ||
         strnlen(request->description, description_max_bytes + 1) <= description_max_bytes) &&
        (request->channel == NULL ||
         strnlen(request->channel, channel_max_bytes + 1) <= channel_max_bytes) &&
        (request->flags & ~BUGPACK_REPORT_ALL_TRAFFIC) == 0;
    is_good = is_good && bp_screenshot_check(request->screenshot, &request->region) == BUGPACK_OK;
    return is_good ? BUGPACK_OK : refuse(BUGPACK_ERR_INVALID, error);
}

/* Who gets the pixels of a request back, which an older host cannot say. */
static bp_pixel_owner pixel_owner(const bugpack_report_request *given) {
    const size_t least_bytes =
        offsetof(bugpack_report_request, screenshot_release) + sizeof given->screenshot_release;
    if (bp_struct_check(&bp_of_bugpack_report_request, given, NULL) != BUGPACK_OK ||
        given->struct_size < least_bytes) {
        return (bp_pixel_owner){NULL, NULL};
    }
    return (bp_pixel_owner){given->screenshot_release, given->screenshot_context};
}

/* What a report that the host asked for has of its own. */
struct manual_report {
    bp_recorder *recorder;
    bp_screenshot *screenshot; /* NULL for none */
    bp_retained *loan;         /* NULL: the rings are copied now */
    char *description, *channel, *output_path;
    bool has_exit;
    bugpack_exit exit;
};

static bugpack_status take_snapshot(bp_job *job, bugpack_error *error) {
    const struct manual_report *report = job->payload;
    return bp_retained_take_snapshot(report->loan, job, error);
}

static bool brings_entry(const bp_job *job, const char *name) {
    const struct manual_report *report = job->payload;
    return report->screenshot != NULL && strcmp(name, "screenshot.png") == 0;
}

static bugpack_status add_entries(bp_job *job, bp_bundle *bundle, bugpack_error *error) {
    const struct manual_report *report = job->payload;
    if (report->screenshot == NULL) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_screenshot_add(report->screenshot, &job->token, bundle, error);
    bp_screenshot_drop_pixels(report->screenshot);
    return status;
}

static void describe(const bp_job *job, bp_metadata *metadata, bugpack_writer *writer) {
    const struct manual_report *report = job->payload;
    (void)writer;
    metadata->description = report->description;
    metadata->region = bp_screenshot_region(report->screenshot);
    metadata->exit = report->has_exit ? &report->exit : NULL;
}

/* There is no second chance to ask for the report of a process that has died: where it fails, the
 * records stay for recovery. */
static void settled(const bp_job *job, const bugpack_report_result *result) {
    const struct manual_report *report = job->payload;
    bp_screenshot_drop_pixels(report->screenshot);
    if (job->type->kind == BP_REPORT_CRASH) {
        bp_rings_keep(report->recorder->rings,
                      result->status != BUGPACK_OK && result->status != BUGPACK_ERR_CANCELLED);
    }
}

static void settled_loan(const bp_job *job, const bugpack_report_result *result) {
    const struct manual_report *report = job->payload;
    bp_retained_settled(report->loan, result);
    settled(job, result);
}

static void free_payload(bp_job *job) {
    struct manual_report *report = job->payload;
    if (report->loan != NULL) {
        bp_retained_give_back(report->loan, job);
    }
    bp_screenshot_free(report->screenshot);
    free(report->description);
    free(report->channel);
    free(report->output_path);
    free(report);
}

#define REQUEST(kind_of_report, can_be_shared)                                                     \
    {                                                                                              \
        .kind = kind_of_report, .is_manual = true, .is_shared = can_be_shared,                     \
        .brings_entry = brings_entry, .add_entries = add_entries, .describe = describe,            \
        .settled = settled, .free = free_payload                                                   \
    }
/* By whether the target has crashed, and whether one report can serve several requests. */
static const bp_job_type request_types[2][2] = {
    {REQUEST(BP_REPORT_BUGREPORT, false), REQUEST(BP_REPORT_BUGREPORT, true)},
    {REQUEST(BP_REPORT_CRASH, false), REQUEST(BP_REPORT_CRASH, true)}};
#undef REQUEST

static const bp_job_type loan_type = {.kind = BP_REPORT_NOTIFICATION,
                                      .is_manual = true,
                                      .borrows_snapshot = true,
                                      .take_snapshot = take_snapshot,
                                      .brings_entry = brings_entry,
                                      .add_entries = add_entries,
                                      .describe = describe,
                                      .settled = settled_loan,
                                      .free = free_payload};

static const bp_job_type *type_of(const bugpack *session, const bugpack_report_request *request) {
    bool is_crash = request->is_crash && session->config.target_pid != 0;
    bool is_shared = request->output_path == NULL && request->screenshot == NULL &&
                     request->retained == 0 && request->timeout_ms == 0 &&
                     request->target_exit == NULL;
    return &request_types[is_crash][is_shared];
}

static bool copy_text(const char *text, char **ret_copy) {
    *ret_copy = text == NULL ? NULL : strdup(text);
    return text == NULL || *ret_copy != NULL;
}

/* Fixes everything that must be of this instant, and waits for nothing. */
static bugpack_status fill_job(bugpack *session, const bugpack_report_request *request,
                               bp_pixel_owner *owner, bp_job *job) {
    struct manual_report *report = job->payload;
    bugpack_status status = BUGPACK_OK;
    report->recorder = session->context.recorder;
    if (request->target_exit != NULL) {
        report->exit = *request->target_exit;
        report->has_exit = true;
        bp_job_end_window(&session->context, job, request->target_cpu_ns);
    }
    if (request->timeout_ms != 0) {
        job->token.deadline_ns = job->triggered.monotonic_ns + request->timeout_ms * BP_NS_PER_MS;
    }
    if (!copy_text(request->description, &report->description) ||
        !copy_text(request->channel, &report->channel)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    job->channel = report->channel;
    if (job->channel != NULL && job->channel[0] != '\0' &&
        (request->flags & BUGPACK_REPORT_ALL_TRAFFIC) == 0) {
        job->traffic.only = job->channel;
    }
    if (request->screenshot != NULL) {
        status = bp_screenshot_take(request->screenshot, &request->region, owner,
                                    &session->held_picture_bytes, &report->screenshot);
    }
    if (status == BUGPACK_OK && request->output_path != NULL) {
        status = bp_file_absolute_path(request->output_path, &report->output_path, NULL);
        job->output_path = report->output_path;
    }
    if (status == BUGPACK_OK && request->retained != 0) {
        status = bp_retained_lend(bp_triggers_get(session->triggers, &bp_trigger_retained),
                                  request->retained, job, &report->loan);
        job->type = status == BUGPACK_OK ? &loan_type : job->type;
    }
    return status;
}

static bugpack_status make_job(bugpack *session, const bugpack_report_request *request,
                               bp_pixel_owner *owner, bp_job **ret_job) {
    struct manual_report *report = calloc(1, sizeof *report);
    bp_job *job =
        report == NULL ? NULL : bp_job_new(&session->context, type_of(session, request), report);
    if (job == NULL) {
        free(report);
        return BUGPACK_ERR_NO_MEMORY;
    }
    bugpack_status status = fill_job(session, request, owner, job);
    if (status != BUGPACK_OK) {
        bp_job_free(job);
        return status;
    }
    *ret_job = job;
    return BUGPACK_OK;
}

static bugpack_status trigger(bugpack *session, const bugpack_report_request *request,
                              bp_pixel_owner *owner, bugpack_report_callback *on_done,
                              void *context, bugpack_error *error) {
    bugpack_report_request known;
    bp_job *job = NULL;
    bugpack_status status = read_request(request, &known, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = make_job(session, &known, owner, &job);
    if (status == BUGPACK_OK) {
        job->on_done = on_done;
        job->on_done_context = context;
        status = bp_job_queue_submit(session->jobs, job, known.ret_ticket, error);
    } else {
        (void)refuse(status, error);
    }
    if (status != BUGPACK_OK && status != BUGPACK_ERR_INVALID && known.is_crash) {
        bp_rings_keep(session->context.recorder->rings, true);
    }
    return status;
}

/* The same from outside, through the entry guard. */
static bugpack_status enter_and_trigger(bugpack *session, const bugpack_report_request *request,
                                        bp_pixel_owner *owner, bugpack_report_callback *on_done,
                                        void *context, bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        call.status = trigger(session, request, owner, on_done, context, error);
    } else {
        (void)refuse(call.status, error);
    }
    return bp_session_leave(&call);
}

bugpack_status bugpack_report_async(bugpack *session, const bugpack_report_request *request,
                                    bugpack_report_callback *on_done, void *context) {
    bp_pixel_owner owner = pixel_owner(request);
    bugpack_status status = enter_and_trigger(session, request, &owner, on_done, context, NULL);
    bp_pixel_owner_release(&owner);
    return status;
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

static bugpack_status fail_result(bugpack_report_result *result, bugpack_status status) {
    *result = (bugpack_report_result){.struct_size = sizeof *result, .status = status};
    return refuse(status, &result->error);
}

static bugpack_status report_and_wait(bugpack *session, const bugpack_report_request *request,
                                      bp_pixel_owner *owner, bugpack_report_result *result) {
    bugpack_status checked = bp_session_check(session);
    if (checked != BUGPACK_OK) {
        return fail_result(result, checked);
    }
    if (bp_runner_is_inside_provider() || bp_job_queue_is_own_thread(NULL)) {
        return fail_result(result, BUGPACK_ERR_INVALID);
    }
    struct waiter waiter = {.result = result};
    bugpack_error error;
    bp_lock_init(&waiter.lock, BP_LOCK_REPORT_CALL);
    bugpack_status status = bp_condition_init(&waiter.done, &error);
    if (status == BUGPACK_OK) {
        status = enter_and_trigger(session, request, owner, wake_waiter, &waiter, &error);
        if (status == BUGPACK_OK) {
            bp_lock_acquire(&waiter.lock);
            while (!waiter.is_done) {
                bp_lock_wait(&waiter.lock, &waiter.done);
            }
            bp_lock_release(&waiter.lock);
            status = result->status;
        } else {
            (void)fail_result(result, status);
            result->error = error;
        }
        (void)pthread_cond_destroy(&waiter.done);
    } else {
        (void)fail_result(result, status);
    }
    bp_lock_destroy(&waiter.lock);
    return status;
}

static bugpack_status report_to(bugpack *session, const bugpack_report_request *request,
                                bp_pixel_owner *owner, bugpack_report_result *ret_result) {
    static const bugpack_report_result no_memory = {
        .struct_size = sizeof no_memory,
        .status = BUGPACK_ERR_NO_MEMORY,
        .error = {.status = BUGPACK_ERR_NO_MEMORY,
                  .message = "no report was taken: out of memory"}};
    if (ret_result != NULL &&
        bp_struct_check(&bp_of_bugpack_report_result, ret_result, NULL) != BUGPACK_OK) {
        return BUGPACK_ERR_INVALID;
    }
    /* In a child of fork, an allocator that is not glibc's may wait for ever for a lock that a
     * thread of the parent held. */
    bugpack_status status = bp_session_check(session);
    if (status != BUGPACK_OK && ret_result == NULL) {
        return status;
    }
    /* Not on the host's stack, which may be small. */
    bugpack_report_result *result = malloc(sizeof *result);
    if (result == NULL) {
        if (ret_result != NULL) {
            bp_struct_write(&bp_of_bugpack_report_result, ret_result, &no_memory);
        }
        return BUGPACK_ERR_NO_MEMORY;
    }
    bp_thread_hold hold;
    bp_thread_hold_begin(&hold);
    status = report_and_wait(session, request, owner, result);
    bp_thread_hold_end(&hold);
    if (ret_result != NULL) {
        bp_struct_write(&bp_of_bugpack_report_result, ret_result, result);
    }
    free(result);
    return status;
}

bugpack_status bugpack_report(bugpack *session, const bugpack_report_request *request,
                              bugpack_report_result *ret_result) {
    bp_pixel_owner owner = pixel_owner(request);
    bugpack_status status = report_to(session, request, &owner, ret_result);
    bp_pixel_owner_release(&owner);
    return status;
}

bugpack_status bugpack_cancel(bugpack *session, uint64_t ticket) {
    bp_call call;
    if (bp_session_enter(&call, session, NULL, NULL) &&
        !bp_job_queue_cancel(session->jobs, ticket)) {
        call.status = BUGPACK_ERR_NO_TICKET;
    }
    return bp_session_leave(&call);
}

bugpack_status bugpack_set_tag(bugpack *session, const char *key, const char *value) {
    bp_call call;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        call.status = bp_tags_set(session->context.tags, key, value);
        if (call.status == BUGPACK_OK) {
            bp_crash_trigger_note_change(bp_triggers_get(session->triggers, &bp_trigger_crash));
        }
    }
    return bp_session_leave(&call);
}

bugpack_status bugpack_redact_add(bugpack *session, const char *text, bugpack_error *error) {
    bp_call call;
    if (!bp_session_enter(&call, session, "add redaction rules", error)) {
        return bp_session_leave(&call);
    }
    if (text == NULL || session->config.without_redaction) {
        call.status = bp_fail(error, BUGPACK_ERR_INVALID,
                              "there is no text of rules, or the session is without redaction");
    } else {
        call.status =
            bp_redaction_add(session->context.redaction, "rules", text, strlen(text), error);
    }
    return bp_session_leave(&call);
}

bugpack_status bugpack_flush(bugpack *session, uint32_t timeout_ms) {
    bp_call call;
    if (!bp_session_enter(&call, session, NULL, NULL)) {
        return bp_session_leave(&call);
    }
    uint64_t deadline_ns = timeout_ms == BUGPACK_OFF
                               ? UINT64_MAX
                               : bp_clock_monotonic_ns() + timeout_ms * BP_NS_PER_MS;
    if (bp_runner_is_inside_provider() || bp_job_queue_is_own_thread(NULL)) {
        call.status = BUGPACK_ERR_INVALID; /* it would wait for itself */
    } else if (!bp_job_queue_flush(session->jobs, deadline_ns)) {
        call.status = BUGPACK_ERR_TIMEOUT;
    }
    return bp_session_leave(&call);
}

int bugpack_events_fd(bugpack *session) {
    bp_call call;
    bool is_inside = bp_session_enter(&call, session, NULL, NULL);
    int fd = is_inside ? bp_events_fd(session->context.events) : -1;
    (void)bp_session_leave(&call);
    return fd;
}

bool bugpack_next_event(bugpack *session, bugpack_event *ret_event) {
    bugpack_event event;
    bp_call call;
    if (bp_struct_check(&bp_of_bugpack_event, ret_event, NULL) != BUGPACK_OK) {
        return false;
    }
    bool is_taken = bp_session_enter(&call, session, NULL, NULL) &&
                    bp_events_take(session->context.events, &event);
    (void)bp_session_leave(&call);
    if (is_taken) {
        bp_struct_write(&bp_of_bugpack_event, ret_event, &event);
    }
    return is_taken;
}

/*
 * The public calls that trigger reports by what the host met: gaps, disconnects, notifications.
 */

static bp_pedantic *pedantic_of(const bugpack *session) {
    return bp_triggers_get(session->triggers, &bp_trigger_pedantic);
}

/* An occurrence that is only counted does not enter the session: the table outlives its close. */
static void see(bugpack *session, const bp_gap_key *key, const bp_occurrence *occurrence) {
    bp_pedantic *pedantic = pedantic_of(session);
    bp_gap *gap = NULL;
    bp_gap_occurrence seen = bp_pedantic_see(pedantic, key, &gap);
    if (seen == BP_GAP_COUNTED) {
        return;
    }
    bp_call call;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        bp_pedantic_act(pedantic, seen, gap, occurrence);
    } else {
        bp_pedantic_refuse(pedantic, seen, gap);
    }
    (void)bp_session_leave(&call);
}

void bugpack_gap(bugpack *session, const char *key) {
    bugpack_gap_with_state(session, key, NULL, NULL);
}

void bugpack_gap_with_state(bugpack *session, const char *key, bugpack_provider_callback *state,
                            void *context) {
    if (key != NULL && bp_session_check(session) == BUGPACK_OK) {
        bp_gap_key read;
        const bp_occurrence occurrence = {.state = state, .context = context};
        bp_pedantic_read_key(pedantic_of(session), &read, key);
        see(session, &read, &occurrence);
    }
}

void bugpack_gap_unknown(bugpack *session, const char *channel, uint64_t opcode, const void *bytes,
                         size_t byte_count) {
    if (channel != NULL && bp_session_check(session) == BUGPACK_OK) {
        bp_gap_key made;
        const bp_occurrence occurrence = {
            .bytes = bytes, .byte_count = byte_count, .channel = channel};
        bp_gap_key_make_unknown(&made, channel, opcode);
        see(session, &made, &occurrence);
    }
}

bool bugpack_pedantic_enable(bugpack *session, bool is_enabled) {
    return bp_session_check(session) == BUGPACK_OK &&
           bp_pedantic_enable(pedantic_of(session), is_enabled);
}

bugpack_status bugpack_pedantic_get(bugpack *session, bugpack_pedantic_state *ret_state) {
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    if (bp_struct_check(&bp_of_bugpack_pedantic_state, ret_state, NULL) != BUGPACK_OK) {
        return BUGPACK_ERR_INVALID;
    }
    bp_call call;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        bp_pedantic_get(pedantic_of(session), &state);
        bp_struct_write(&bp_of_bugpack_pedantic_state, ret_state, &state);
    }
    return bp_session_leave(&call);
}

static bugpack_status read_cause(const bugpack_disconnect_cause *given,
                                 bugpack_disconnect_cause *cause) {
    *cause = (bugpack_disconnect_cause)BUGPACK_DISCONNECT_CAUSE_INIT;
    bool is_good =
        bp_struct_read(&bp_of_bugpack_disconnect_cause, cause, given, NULL) == BUGPACK_OK &&
        cause->channel != NULL && cause->channel[0] != '\0' &&
        strnlen(cause->channel, BUGPACK_CHANNEL_MAX_BYTES + 1) <= BUGPACK_CHANNEL_MAX_BYTES;
    return is_good ? BUGPACK_OK : BUGPACK_ERR_INVALID;
}

bugpack_status bugpack_disconnect_because(bugpack *session, const bugpack_disconnect_cause *cause) {
    bugpack_disconnect_cause known;
    bp_call call;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        call.status = read_cause(cause, &known);
        if (call.status == BUGPACK_OK) {
            call.status = bp_disconnect_see(
                bp_triggers_get(session->triggers, &bp_trigger_disconnect), &known);
        }
    }
    return bp_session_leave(&call);
}

bugpack_status bugpack_disconnect(bugpack *session, const char *channel, const char *error_text) {
    bugpack_disconnect_cause cause = BUGPACK_DISCONNECT_CAUSE_INIT;
    cause.channel = channel;
    cause.error_text = error_text;
    return bugpack_disconnect_because(session, &cause);
}

uint64_t bugpack_notify_retain(bugpack *session, bugpack_level level, const char *source,
                               const char *format, ...) {
    bp_call call;
    uint64_t number = 0;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        va_list arguments;
        va_start(arguments, format);
        bp_note_notifyv(session->context.recorder, level, source, format, arguments);
        va_end(arguments);
        number = bp_retained_add(bp_triggers_get(session->triggers, &bp_trigger_retained));
    }
    (void)bp_session_leave(&call);
    return number;
}

uint64_t bugpack_notify_retain_text(bugpack *session, bugpack_level level, const char *source,
                                    const char *text) {
    return bugpack_notify_retain(session, level, source, "%s", text == NULL ? "" : text);
}

/*
 * Watchdogs.
 */

bugpack_status bugpack_watchdog_open(bugpack *session, const char *name, uint32_t limit_ms,
                                     bugpack_watchdog **ret_watchdog, bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "open a watchdog", error)) {
        call.status = bp_watchdog_open(bp_triggers_get(session->triggers, &bp_trigger_watchdog),
                                       session, name, limit_ms, ret_watchdog, error);
    }
    return bp_session_leave(&call);
}

void bugpack_watchdog_beat(bugpack_watchdog *watchdog) {
    if (watchdog != NULL) {
        bp_watchdog_beat(watchdog);
    }
}

void bugpack_watchdog_pause(bugpack_watchdog *watchdog) {
    if (watchdog != NULL) {
        bp_watchdog_pause(watchdog);
    }
}

bugpack_status bugpack_trigger_when(bugpack *session, const char *condition, bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "add a condition", error)) {
        void *conditions = bp_triggers_get(session->triggers, &bp_trigger_condition);
        call.status = bp_conditions_add(conditions, condition, error);
        atomic_store(&session->conditions, conditions);
    }
    return bp_session_leave(&call);
}

void bp_session_note_output(bugpack *session) {
    void *conditions = atomic_load(&session->conditions);
    if (conditions != NULL) {
        bp_conditions_note_output(conditions);
    }
}

void bp_session_tell_conditions(bugpack *session, bp_condition_callback *callback, void *context) {
    void *conditions = bp_triggers_get(session->triggers, &bp_trigger_condition);
    bp_conditions_tell(conditions, callback, context);
    atomic_store(&session->conditions, conditions);
    if (atomic_load(&session->has_target_ended)) {
        callback(NULL, false, context); /* nobody looks any more */
    }
}

const bp_metadata_target *bp_session_target(const bugpack *session) {
    return bp_subject_target(session->context.subject);
}

const char *bp_session_profile_trouble(const bugpack *session) {
    const bp_profile_ring *ring = session->context.profile_ring;
    return ring != NULL ? bp_profile_ring_trouble(ring) : NULL;
}

void bugpack_watchdog_close(bugpack_watchdog *watchdog) {
    bp_call call;
    bugpack *session = watchdog == NULL ? NULL : bp_watchdog_session(watchdog);
    if (bp_session_enter(&call, session, NULL, NULL)) {
        bp_watchdog_close(bp_triggers_get(session->triggers, &bp_trigger_watchdog), watchdog);
    }
    (void)bp_session_leave(&call);
}
