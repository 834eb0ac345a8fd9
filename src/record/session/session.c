#include "session/session.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bugpack/session.h>

#include "base/file.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "platform/staged_file.h"
#include "platform/thread.h"
#include "recorder/recorder.h"
#include "sources/source.h"
#include "trigger/trigger.h"

/* Ten minutes of the past, however often the process is sampled. */
static const uint64_t history_span_ms = 600000;
static const uint64_t history_max_count = 6000;

/* A directory that takes no file now may take one later: what passes by itself is no mistake. */
static bool may_pass(int system_errno) {
    static const int passing[] = {ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE,
                                  ENOMEM, EIO,    EINTR, EAGAIN};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        if (passing[i] == system_errno) {
            return true;
        }
    }
    return false;
}

/* Each report makes a file in the directory; making one now, without a name, shows a mistake at the
 * start. */
static bugpack_status check_report_dir(bugpack_session *session, bugpack_error *error) {
    const bp_report_dir *dir = &session->config.report_dir;
    int dir_fd = -1;
    bp_staged_file *file = NULL;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_file_open_directory(dir->path, dir->may_create, &dir_fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_staged_file_new(dir_fd, dir->path, &file, &detail);
    bp_staged_file_free(file);
    (void)close(dir_fd);
    if (status == BUGPACK_OK || may_pass(detail.system_errno)) {
        return BUGPACK_OK;
    }
    if (error != NULL) {
        *error = detail;
    }
    return status;
}

/* Without an app_name, reports are named after the process that they are about. */
static bugpack_status open_subject(bugpack_session *session, bugpack_error *error) {
    bugpack_status status = bp_subject_open(&session->config, &session->context.subject, error);
    if (status == BUGPACK_OK && session->config.app_name == NULL) {
        const char *name = session->context.subject->target.name;
        session->config.app_name = strdup(name[0] != '\0' ? name : "process");
        if (session->config.app_name == NULL) {
            status = bp_fail_memory(error, "open a session");
        }
    }
    return status;
}

/* The facts that a recovery of this session needs. */
static void describe(const bugpack_session *session, bp_session_identity *ret_identity) {
    const bp_config *config = &session->config;
    const bp_metadata_target *target = &session->context.subject->target;
    bp_instant opened = session->identity.opened;
    *ret_identity = (bp_session_identity){.pid = getpid(),
                                          .target_pid = target->pid,
                                          .opened = opened,
                                          .uptime_ns = bp_subject_uptime(session->context.subject),
                                          .last_alive = opened,
                                          .wall_offset_ns = opened.wall_ns - opened.monotonic_ns};
    const struct {
        char *to;
        size_t to_bytes;
        const char *from;
    } texts[] = {
        {ret_identity->session_id, sizeof ret_identity->session_id, session->identity.id},
        {ret_identity->app_name, sizeof ret_identity->app_name, config->app_name},
        {ret_identity->app_version, sizeof ret_identity->app_version, config->app_version},
        {ret_identity->app_build_id, sizeof ret_identity->app_build_id, config->app_build_id},
        {ret_identity->report_dir, sizeof ret_identity->report_dir, config->report_dir.path},
        {ret_identity->bugpack_version, sizeof ret_identity->bugpack_version, BUGPACK_VERSION},
        {ret_identity->target_name, sizeof ret_identity->target_name, target->name},
        {ret_identity->boot_id, sizeof ret_identity->boot_id, session->identity.machine.boot_id},
        {ret_identity->machine, sizeof ret_identity->machine, session->identity.machine.name}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].from != NULL) {
            (void)snprintf(texts[i].to, texts[i].to_bytes, "%s", texts[i].from);
        }
    }
}

static bugpack_status open_recorder(bugpack_session *session, bugpack_error *error) {
    const bp_config *config = &session->config;
    uint64_t history_count = 0;
    if (config->history_interval_ms > 0 &&
        bp_subject_sampler(session->context.subject, NULL) != NULL) {
        /* Conditions about another process add a short record a second (trigger/condition.c). */
        bool is_rare = config->target_pid != 0 && config->history_interval_ms > 1000;
        history_count = history_span_ms / config->history_interval_ms * (is_rare ? 2 : 1) + 1;
    }
    bp_session_identity identity;
    describe(session, &identity);
    identity.ring_kinds = 1u << BP_RING_KIND_NOTIFICATIONS |
                          (config->log_ring_bytes > 0 ? 1u << BP_RING_KIND_LOG : 0) |
                          (history_count > 0 ? 1u << BP_RING_KIND_HISTORY : 0);
    const bp_recorder_options options = {
        .rings = {.is_in_memory = config->is_in_memory,
                  .base_dir = config->recorder_dir,
                  .identity = &identity,
                  .monitor = session->context.monitor},
        .log_ring_bytes = config->log_ring_bytes,
        .log_level = config->log_level,
        .traffic_budget_bytes = config->traffic_budget_bytes,
        .session = session,
        .history_count =
            (size_t)(history_count < history_max_count ? history_count : history_max_count),
        .sample_window_ms = config->sample_window_ms,
        .diagnostics = config->on_diagnostic};
    bugpack_status status = bp_recorder_new(&options, &session->context.recorder, error);
    char loss[256] = "";
    if (status == BUGPACK_OK) {
        bp_recorder_note_loss(session->context.recorder, loss, sizeof loss);
    }
    if (loss[0] != '\0') {
        bp_note_diagnose(session->context.recorder, BUGPACK_LEVEL_WARN,
                         "the rings are in memory and do not survive a crash: %s", loss);
    }
    return status;
}

static bugpack_status open_redaction(bugpack_session *session, bugpack_error *error) {
    bp_config *config = &session->config;
    const char *rules = config->redaction_rules;
    bp_recorder *recorder = session->context.recorder;
    bugpack_status status =
        bp_redaction_new(config->without_redaction, recorder, &session->context.redaction, error);
    config->redaction_rules = NULL; /* the host's, for the opening alone */
    if (status == BUGPACK_OK && rules != NULL) {
        status = bp_redaction_add(session->context.redaction, "redaction_rules", rules,
                                  strlen(rules), error);
    }
    if (status == BUGPACK_OK && config->redacts_at_call) {
        status = bp_at_call_new(session, &session->at_call, error);
        if (status == BUGPACK_OK) {
            recorder->at_call = session->at_call;
            status = bp_redaction_use_at_call(session->context.redaction, session->at_call, error);
        }
    }
    return status;
}

static bugpack_status register_sources(bugpack_session *session, bugpack_error *error) {
    return bp_sources_register(&session->context, error);
}

static void on_sample(void *context, bp_task_snapshot *snapshot, const bugpack_error *error) {
    bugpack_session *session = context;
    bp_history *history = session->context.recorder->history;
    bool has_ended = snapshot == NULL && error->status == BUGPACK_ERR_NO_PROCESS;
    if (has_ended) {
        atomic_store(&session->has_target_ended, true);
    }
    void *conditions = atomic_load(&session->conditions);
    if (conditions != NULL && (snapshot != NULL || has_ended)) {
        bp_conditions_look(conditions, snapshot);
    }
    if (snapshot != NULL) {
        bp_subject_note(session->context.subject, snapshot);
        if (session->config.target_pid == 0) {
            bp_history_note_rings(history, bp_recorder_used_bytes(session->context.recorder));
        }
        (void)bp_history_add(history, snapshot, NULL);
    }
}

/* The monitor's task. The tick comes first: a trigger right after the opening needs its sample. */
static uint64_t sample(void *context, uint64_t now_ns) {
    const bugpack_session *session = context;
    bp_windows *windows = &session->context.recorder->windows;
    uint64_t tick_ns = bp_ticker_tick(session->ticker, now_ns);
    void *conditions = atomic_load(&session->conditions);
    if (conditions != NULL) {
        bp_conditions_expect(conditions, tick_ns);
    }
    uint64_t asked_ns =
        bp_windows_serve(windows, bp_clock_monotonic_ns(), bp_ticker_sample_now, session->ticker);
    uint64_t follow_ns = bp_subject_follow(session->context.subject, bp_clock_monotonic_ns());
    asked_ns = asked_ns < follow_ns ? asked_ns : follow_ns;
    return asked_ns < tick_ns ? asked_ns : tick_ns;
}

static bugpack_status start_history(bugpack_session *session, bugpack_error *error) {
    if (session->context.recorder->history == NULL) {
        return BUGPACK_OK;
    }
    const bp_task *task = bp_sampler_task(bp_subject_sampler(session->context.subject, NULL));
    bugpack_status status = bp_ticker_new(task, session->config.history_interval_ms, 1, on_sample,
                                          session, &session->ticker, error);
    if (status == BUGPACK_OK) {
        bp_monitor_add(session->context.monitor, sample, session);
    }
    return status;
}

static bugpack_status open_jobs(bugpack_session *session, bugpack_error *error) {
    return bp_job_queue_new(&session->context, &session->context.jobs, error);
}

static bugpack_status open_triggers(bugpack_session *session, bugpack_error *error) {
    bugpack_status status = bp_triggers_open(&session->triggers, &session->context, error);
    if (status == BUGPACK_OK) {
        bp_monitor_add(session->context.monitor, bp_triggers_tick, &session->triggers);
    }
    return status;
}

/* Last, so that threads of ours are there, and do not inherit it. */
static bugpack_status open_profile(bugpack_session *session, bugpack_error *error) {
    const bp_config *config = &session->config;
    bp_report_context *context = &session->context;
    if (config->profile_hz == 0 || config->without_process) {
        return BUGPACK_OK;
    }
    context->profile_ring = bp_profile_ring_open(config->target_pid, config->profile_hz);
    if (context->profile_ring == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    const char *trouble = bp_profile_ring_trouble(context->profile_ring);
    if (trouble != NULL) {
        bp_note_diagnose(context->recorder, BUGPACK_LEVEL_WARN, "there are no profiles: %s",
                         trouble);
    }
    return BUGPACK_OK;
}

static bugpack_status start_monitor(bugpack_session *session, bugpack_error *error) {
    return bp_monitor_new(&session->context.monitor, error);
}

static bugpack_status open_parts(bugpack_session *session, bugpack_error *error) {
    static bugpack_status (*const parts[])(bugpack_session * session, bugpack_error * error) = {
        check_report_dir, open_subject,  start_monitor, open_recorder, open_redaction,
        register_sources, start_history, open_jobs,     open_triggers, open_profile};
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof parts / sizeof parts[0]; i++) {
        status = parts[i](session, error);
    }
    return status;
}

/* Removes a task of the monitor, where it was started. */
static void end_task(bugpack_session *session, bp_monitor_task *task) {
    if (session->context.monitor != NULL) {
        bp_monitor_remove(session->context.monitor, task);
    }
}

static void tell_kept(bp_recorder *recorder) {
    if (recorder == NULL || !atomic_load(&recorder->rings->is_kept)) {
        return;
    }
    const bp_session_dir *dir = recorder->rings->dir;
    if (dir != NULL) {
        bp_note_diagnose(recorder, BUGPACK_LEVEL_WARN, "the records of the crash were kept in %s",
                         dir->path);
    } else {
        bp_note_diagnose(recorder, BUGPACK_LEVEL_ERROR,
                         "the records of the crash were in memory, and are lost");
    }
}

/*
 * The two halves of an end. Retire ends the threads and frees all but what the calls that only
 * record look at: no slow call is inside or comes later. Free frees the rest: no call comes at all.
 */
static void session_retire(bugpack_session *session) {
    bp_report_context *context = &session->context;
    end_task(session, bp_triggers_tick);
    bp_triggers_stop(&session->triggers);
    bp_job_queue_stop(session->context.jobs);
    end_task(session, sample); /* which conditions look at */
    bp_triggers_close(&session->triggers);
    bp_ticker_free(session->ticker);
    bp_job_queue_free(session->context.jobs);
    bp_provider_list_release(&session->providers);
    bp_profile_ring_close(context->profile_ring);
    (void)bp_subject_end_refresh(context->subject);
    bp_subject_drop(context->subject);
    tell_kept(context->recorder);
    bp_recorder_close(context->recorder);
    bp_monitor_free(session->context.monitor);
    if (context->recorder != NULL) {
        bp_channels_end_filters(&context->recorder->channels);
    }
    bp_events_release(&session->events);
    bp_tags_release(&session->tags);
    bp_at_call_close(session->at_call);
    bp_redaction_free(context->redaction);
    bp_config_release(&session->config);
}

static void session_free(bugpack_session *session) {
    bp_triggers_free(&session->triggers);
    bp_recorder_free(session->context.recorder);
    bp_at_call_free(session->at_call);
    bp_entry_guard_release(&session->guard);
    free(session);
}

static bugpack_status new_session(const bugpack_options *options, bugpack_session **ret_session,
                                  bugpack_error *error) {
    bugpack_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    bp_entry_guard_init(&session->guard, session);
    session->identity.opened = bp_clock_now();
    bp_id_new(session->identity.id);
    bp_machine_identify(&session->identity.machine);
    session->context = (bp_report_context){.config = &session->config,
                                           .identity = &session->identity,
                                           .providers = &session->providers,
                                           .events = &session->events,
                                           .tags = &session->tags,
                                           .note_triggers = bp_triggers_note,
                                           .list_triggers = bp_triggers_list,
                                           .triggers = &session->triggers};
    atomic_init(&session->reference_count, 1);
    bugpack_status status = bp_config_read(options, &session->config, error);
    bp_provider_list_init(&session->providers);
    bp_tags_init(&session->tags);
    bp_events_init(&session->events, session->config.on_event, session->config.on_event_context);
    if (!session->config.with_hostname) {
        session->identity.machine.name[0] = '\0';
    }
    if (status == BUGPACK_OK) {
        status = bp_fork_number_make(&session->fork_number, error);
    }
    if (status == BUGPACK_OK) {
        status = open_parts(session, error);
    }
    if (status != BUGPACK_OK) {
        session_retire(session);
        session_free(session);
        return status;
    }
    *ret_session = session;
    return BUGPACK_OK;
}

bugpack_status bugpack_open(const bugpack_options *options, bugpack_session **ret_session,
                            bugpack_error *error) {
    bp_thread_hold hold;
    bp_thread_hold_begin(&hold);
    bugpack_status status = new_session(options, ret_session, error);
    bp_thread_hold_end(&hold);
    return status;
}

bugpack_status bugpack_recorder_locate(bugpack_session *session,
                                       bugpack_recorder_location *ret_location,
                                       bugpack_error *error) {
    bp_call call;
    if (bp_struct_check(&bp_of_bugpack_recorder_location, ret_location, error) != BUGPACK_OK) {
        return BUGPACK_ERR_INVALID;
    }
    if (bp_session_enter(&call, session, "locate the recorder", error)) {
        bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
        const char *path = bp_rings_locate(session->context.recorder->rings, &location.survives);
        (void)snprintf(location.path, sizeof location.path, "%s", path == NULL ? "" : path);
        bp_recorder_note_loss(session->context.recorder, location.reason, sizeof location.reason);
        bp_struct_write(&bp_of_bugpack_recorder_location, ret_location, &location);
    }
    return bp_session_leave(&call);
}

/* --- closing ------------------------------------------------------------------------------ */

/*
 * Closing a session while other threads call it: who is inside, who may still enter, and what is
 * left of the session, which refuses calls for as long as it exists.
 *
 * The newest closed sessions, each a few KiB. Handles of older ones must not be used: without a
 * bound, a host that opens and closes for ever would grow for ever. No lock, which a fork might
 * leave held: a place is taken by exchange.
 */
static bugpack_session *_Atomic tombstones[BUGPACK_CLOSED_KEPT];
static atomic_uint tombstone_count;

void bp_session_drop(bugpack_session *session) {
    if (session == NULL ||
        atomic_fetch_sub_explicit(&session->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    /* In the child of a fork a lock of the parent's session may be held for ever. */
    if (bp_session_check(session) == BUGPACK_OK) {
        session_free(session);
    }
}

void bugpack_close(bugpack_session *session) {
    /* In the child of a fork the threads are gone and a lock may be held for ever: leave it all. */
    if (bp_session_check(session) != BUGPACK_OK) {
        return;
    }
    /* In a callback of its own: it would wait for itself. A session that stays open harms nobody.
     */
    if (bp_job_queue_is_own_thread(session->context.jobs) || bp_entry_guard_is_inside(session)) {
        return;
    }
    bp_thread_hold hold;
    bp_thread_hold_begin(&hold);
    if (bp_entry_guard_shut(&session->guard)) {
        session_retire(session);
        bp_entry_guard_set_done(&session->guard);
        unsigned place = atomic_fetch_add_explicit(&tombstone_count, 1, memory_order_relaxed) %
                         BUGPACK_CLOSED_KEPT;
        bp_session_drop(
            atomic_exchange_explicit(&tombstones[place], session, memory_order_acq_rel));
    } else if (!bp_job_queue_is_own_thread(NULL) && !bp_runner_is_inside_provider() &&
               !bp_entry_guard_is_inside(NULL)) {
        /* Else the thread that closes may wait for this one: it is one of bugpack's, or inside a
         * call that has run host code. */
        bp_entry_guard_wait_done(&session->guard);
    }
    bp_thread_hold_end(&hold);
}

bugpack_status bp_session_check(const bugpack_session *session) {
    if (session == NULL) {
        return BUGPACK_ERR_INVALID;
    }
    return bp_fork_number_is(session->fork_number) ? BUGPACK_OK : BUGPACK_ERR_INERT;
}

static const char *explain_refusal(bugpack_status status) {
    if (status == BUGPACK_ERR_INVALID) {
        return "session is NULL";
    }
    return status == BUGPACK_ERR_INERT ? "the session belongs to the parent of this process"
                                       : "the session is closed";
}

bool bp_session_enter(bp_call *call, bugpack_session *session, const char *what,
                      bugpack_error *error) {
    call->status = bp_session_check(session);
    call->is_inside =
        call->status == BUGPACK_OK && bp_entry_guard_enter(&session->guard, &call->entry);
    if (call->status == BUGPACK_OK && !call->is_inside) {
        call->status = BUGPACK_ERR_CLOSED;
    }
    if (!call->is_inside && what != NULL) {
        (void)bp_fail(error, call->status, "cannot %s: %s", what, explain_refusal(call->status));
    }
    return call->is_inside;
}

bugpack_status bp_session_leave(bp_call *call) {
    if (call->is_inside) {
        bp_entry_guard_leave(&call->entry);
    }
    return call->status;
}
