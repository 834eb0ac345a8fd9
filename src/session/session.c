#include "session/session.h"
#include "session/events.h"
#include "session/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "session/triggers.h"

bugpack_status bp_session_check(const bugpack *session) {
    if (session == NULL) {
        return BUGPACK_ERR_INVALID;
    }
    return bp_fork_guard_is_owner(session->fork_guard) ? BUGPACK_OK : BUGPACK_ERR_INERT;
}

/* The report directory is opened for each report; once now, so that a mistake shows at the start.
 */
static bugpack_status check_report_dir(const bugpack_options *options, bugpack_error *error) {
    int dir_fd = -1;
    bugpack_status status =
        bp_file_open_directory(options->report_dir, options->create_report_dir, &dir_fd, error);
    if (status == BUGPACK_OK) {
        (void)close(dir_fd);
    }
    return status;
}

/*
 * Takes hold of the process that reports are about. Without a sampler for our own process a session
 * works all the same, and its reports say why there are no metrics.
 */
static bugpack_status open_target(bugpack *session, bugpack_error *error) {
    pid_t target = session->options.target_pid;
    if (session->options.without_process) {
        (void)bp_fail(&session->sampler_error, BUGPACK_ERR_UNSUPPORTED,
                      "the session is not about a process");
        return BUGPACK_OK;
    }
    bugpack_status status =
        session->options.target_with_descendants
            ? bp_sampler_open_tree(target, &session->sampler, &session->sampler_error)
            : bp_sampler_open(target, &session->sampler, &session->sampler_error);
    if (status != BUGPACK_OK) {
        if (target != 0 && error != NULL) {
            *error = session->sampler_error;
        }
        return target != 0 ? status : BUGPACK_OK;
    }
    const bp_task *task = bp_sampler_task(session->sampler);
    if (target != 0) {
        session->target.pid = bp_task_pid(task);
        bp_task_name(task, session->target.name, sizeof session->target.name);
    }
    if (session->options.app_name == NULL) {
        const char *name = session->target.name[0] != '\0' ? session->target.name : "process";
        session->options.app_name = strdup(name);
        if (session->options.app_name == NULL) {
            return bp_fail_memory(error, "open a session");
        }
    }
    return BUGPACK_OK;
}

/* Ten minutes of the past, however often it is looked at. */
static const uint64_t history_span_ms = 600000;
static const uint64_t history_max_count = 6000;

/* What whoever recovers this session has to know. */
static void describe(const bugpack *session, bp_session_identity *ret_identity) {
    const bugpack_options *options = &session->options;
    bp_instant opened = session->opened;
    *ret_identity = (bp_session_identity){.pid = getpid(),
                                          .target_pid = session->target.pid,
                                          .opened = opened,
                                          .last_alive = opened,
                                          .wall_offset_ns = opened.wall_ns - opened.monotonic_ns};
    const struct {
        char *to;
        size_t to_bytes;
        const char *from;
    } texts[] = {
        {ret_identity->session_id, sizeof ret_identity->session_id, session->id},
        {ret_identity->app_name, sizeof ret_identity->app_name, options->app_name},
        {ret_identity->app_version, sizeof ret_identity->app_version, options->app_version},
        {ret_identity->app_build_id, sizeof ret_identity->app_build_id, options->app_build_id},
        {ret_identity->report_dir, sizeof ret_identity->report_dir, options->report_dir},
        {ret_identity->bugpack_version, sizeof ret_identity->bugpack_version, BUGPACK_VERSION},
        {ret_identity->target_name, sizeof ret_identity->target_name, session->target.name}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].from != NULL) {
            (void)snprintf(texts[i].to, texts[i].to_bytes, "%s", texts[i].from);
        }
    }
}

static bugpack_status open_recorder(bugpack *session, bugpack_error *error) {
    const bugpack_options *options = &session->options;
    uint64_t history_count = 0;
    if (options->history_interval_ms > 0 && session->sampler != NULL) {
        history_count = history_span_ms / options->history_interval_ms + 1;
    }
    bp_session_identity identity;
    describe(session, &identity);
    bp_recorder_options recorder_options = {
        .base_dir = options->recorder_in_memory ? NULL : options->recorder_dir,
        .memory_reason = options->recorder_in_memory ? NULL : "no directory is known to keep it in",
        .identity = &identity,
        .log_ring_bytes = options->log_ring_bytes,
        .log_level = options->log_level,
        .has_notifications = true,
        .traffic_budget_bytes = options->traffic_budget_bytes,
        .history_count =
            (size_t)(history_count < history_max_count ? history_count : history_max_count),
        .sample_window_ms = options->sample_window_ms};
    return bp_recorder_new(&recorder_options, &session->recorder, error);
}

static void keep_snapshot(void *context, bp_task_snapshot *snapshot, const bugpack_error *error) {
    bugpack *session = context;
    bp_history *history = bp_recorder_history(session->recorder);
    (void)error;
    if (snapshot != NULL) {
        (void)bp_history_add(history, snapshot, NULL);
        bp_session_refresh_when_due(session);
    } else {
        bp_history_add_gap(history);
    }
}

bugpack_status bp_session_start_history(bugpack *session, bugpack_error *error) {
    if (bp_recorder_history(session->recorder) == NULL) {
        return BUGPACK_OK;
    }
    bp_pulse_options options = BP_PULSE_OPTIONS_INIT;
    options.interval_ms = session->options.history_interval_ms;
    return bp_pulse_start(bp_sampler_task(session->sampler), &options, keep_snapshot, session,
                          &session->pulse, error);
}

static void end_cancelled(void *session) {
    bp_live_end_cancelled(session);
}

static bugpack_status open_parts(bugpack *session, bugpack_error *error) {
    bugpack_status status = check_report_dir(&session->options, error);
    if (status == BUGPACK_OK) {
        status = bp_pedantic_open(session, error);
    }
    if (status == BUGPACK_OK) {
        status = open_target(session, error);
    }
    if (status == BUGPACK_OK) {
        status = open_recorder(session, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_runner_new(&session->runner, error);
    }
    if (status == BUGPACK_OK) {
        bp_runner_on_wake(session->runner, end_cancelled, session);
    }
    if (status == BUGPACK_OK && session->sampler != NULL) {
        status = bp_session_provide_process(session, error);
    }
    if (status == BUGPACK_OK && session->target.pid != 0) {
        status = bp_session_provide_thread_heap(session, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_session_provide_heap_state(session, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_session_start_history(session, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_worker_new("bugpack-worker", bp_session_run_order, session,
                               BUGPACK_REPORT_QUEUE_MAX, &session->worker, error);
    }
    if (status == BUGPACK_OK) {
        /* Room for what waits for the worker, what it works on, what is only kept, and what is sent
         * ahead of its place. */
        status = bp_worker_new("bugpack-snap", bp_job_snapshot, session,
                               BUGPACK_REPORT_QUEUE_MAX + 1 + BUGPACK_RETAINED_MAX +
                                   BP_PEDANTIC_SENT_MAX,
                               &session->snapshotter, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_session_open_triggers(session, error);
    }
    if (status == BUGPACK_OK && !session->options.recorder_in_memory &&
        session->options.recorder_dir != NULL) {
        bp_session_order_recovery(session);
    }
    return status;
}

void bp_session_retire(bugpack *session) {
    bp_session_stop_triggers(session);
    bp_pedantic_drain(session);
    bp_worker_stop(session->worker); /* waits for the freezer, which therefore stops after it */
    bp_worker_stop(session->snapshotter);
    bp_pedantic_close(session);
    bp_session_free_triggers(session);
    bp_pulse_stop(session->pulse);
    bp_runner_free(session->runner);
    bp_session_retire_providers(session);
    bp_session_drop_providers(session->providers, session->provider_count);
    bp_watched_drop(session->watched);
    bp_sampler_close(session->sampler);
    bp_recorder_retire(session->recorder);
    bp_session_close_filters(session);
    bp_events_release(session);
    bp_options_release(&session->options);
}

void bp_session_free(bugpack *session) {
    bp_pedantic_free(session);
    bp_options_release_patterns(&session->options);
    bp_session_free_channels(session);
    bp_recorder_free(session->recorder);
    bp_entry_guard_release(&session->guard);
    bp_fork_guard_free(session->fork_guard);
    (void)pthread_cond_destroy(&session->orders_changed);
    (void)pthread_mutex_destroy(&session->orders_mutex);
    (void)pthread_mutex_destroy(&session->providers_mutex);
    free(session);
}

/* All or none. */
static bool init_locks(bugpack *session) {
    if (pthread_mutex_init(&session->providers_mutex, NULL) != 0) {
        return false;
    }
    if (pthread_mutex_init(&session->orders_mutex, NULL) != 0) {
        (void)pthread_mutex_destroy(&session->providers_mutex);
        return false;
    }
    if (bp_condition_init(&session->orders_changed, NULL) != BUGPACK_OK) {
        (void)pthread_mutex_destroy(&session->orders_mutex);
        (void)pthread_mutex_destroy(&session->providers_mutex);
        return false;
    }
    if (bp_entry_guard_init(&session->guard, session, NULL) != BUGPACK_OK) {
        (void)pthread_cond_destroy(&session->orders_changed);
        (void)pthread_mutex_destroy(&session->orders_mutex);
        (void)pthread_mutex_destroy(&session->providers_mutex);
        return false;
    }
    return true;
}

static bugpack_status open_session(const bugpack_options *options, bugpack **ret_session,
                                   bugpack_error *error) {
    bugpack *session = calloc(1, sizeof *session);
    if (session == NULL || !init_locks(session)) {
        free(session);
        return bp_fail_memory(error, "open a session");
    }
    session->opened = bp_clock_now();
    bp_id_new(session->id);
    bp_host_identify(&session->host);
    atomic_init(&session->report_sequence, 0);
    atomic_init(&session->held_picture_bytes, 0);
    atomic_init(&session->reference_count, 1);
    bugpack_status status = bp_options_copy(options, &session->options, error);
    if (status == BUGPACK_OK) {
        status = bp_fork_guard_new(&session->fork_guard, error);
    }
    if (status == BUGPACK_OK) {
        status = open_parts(session, error);
    }
    if (status != BUGPACK_OK) {
        bp_session_retire(session);
        bp_session_free(session);
        return status;
    }
    *ret_session = session;
    return BUGPACK_OK;
}

bugpack_status bugpack_open(const bugpack_options *options, bugpack **ret_session,
                            bugpack_error *error) {
    int cancel = bp_thread_hold_cancel();
    bugpack_status status = open_session(options, ret_session, error);
    bp_thread_allow_cancel(cancel);
    return status;
}
