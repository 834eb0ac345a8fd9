/*
 * The sequence of the steps makes a report describe one instant: the first sample is taken at once,
 * while the snapshot thread copies the rings; the providers run while the window passes; only then
 * comes the wait. What counts over the window, and the log files, which have what was said
 * meanwhile, are read when it has passed.
 */

#include "report/assemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "model/entry.h"
#include "model/metrics.h"
#include "platform/machine.h"
#include "report/profile_window.h"
#include "report/quota.h"
#include "report/ring_entries.h"

static const size_t json_limit_bytes = (size_t)256 << 20;

/* A process that ends inside a window of our own costs the metrics at most this share of it. */
static const uint64_t kept_share = 8;

/* A host that closes waits so long at most for the window that waiting reports share. */
static const uint64_t hurried_window_ns = 250 * BP_NS_PER_MS;

/* The interval at which a wait looks at its progress. */
static const uint64_t look_interval_ns = 50 * BP_NS_PER_MS;

/* The same of looks at children, and where some have ended: those of a crash loop live for a few
 * milliseconds. */
static const uint64_t child_interval_ns = 10 * BP_NS_PER_MS, end_interval_ns = BP_NS_PER_MS;

/* The metrics window of one process that the session is about. */
typedef struct process_window {
    bp_subject *subject;
    bp_window *of_trigger; /* NULL: our own, which begins with the first sample */
    bugpack_status status;
    bugpack_error error;
    bool has_ended;
    bp_profile_window profile;
} process_window;

/* The state of one report while it is assembled. */
struct assembly {
    const bp_report_context *context;
    bp_runner *runner;
    bp_job *job;
    const bp_progress *progress;
    bp_bundle *bundle;
    bp_rule_set *rules; /* NULL: redaction is off */
    char report_id[BP_ID_BYTES];
    bp_quota quota;            /* its key is NULL where none was taken */
    uint64_t suppressed_count; /* reports of the same bug before this one */
    uint64_t began_ns;         /* when the windows of our own did */
    uint64_t kept_ns;          /* when all were sampled last while a provider was asked */
    uint64_t look_due_ns;      /* at the children of all */
    bool is_cut;               /* the session was closed before the window had passed */
    process_window *windows;   /* of the session's own process first */
    size_t window_count;
};

typedef enum stage {
    STAGE_SNAPSHOT,
    STAGE_PROVIDERS,
    STAGE_RINGS,
    STAGE_WINDOW,
    STAGE_METRICS,
    STAGE_ARCHIVE
} stage;

/* Where each stage begins, in percent. A sample window takes most of the time where there is one;
 * the last percents are the disk's. */
static const unsigned char begins_waiting[] = {0, 2, 10, 15, 75, 78, 97};
static const unsigned char begins_at_once[] = {0, 5, 35, 45, 45, 48, 97};

/* The report is a step further: `done` of `total` steps of a stage (0 of 0 is all of it). */
static void show_progress(const struct assembly *assembly, stage at, uint64_t done,
                          uint64_t total) {
    const bp_progress *progress = assembly->progress;
    if (progress == NULL) {
        return;
    }
    const unsigned char *begins = assembly->job->window != NULL ? begins_at_once : begins_waiting;
    /* No overflow: a report has fewer than 2^57 bytes, and a window fewer nanoseconds. */
    uint64_t part = done >= total ? 100 : 100 * done / total;
    progress->on_step(progress->context,
                      (uint32_t)(begins[at] + (begins[at + 1] - begins[at]) * part / 100));
}

/* Takes the first sample of each process that the session has now, but of the first where the job
 * has a window of its trigger. Jobs that waited while a sample was taken share it. False without
 * memory. */
static bool begin_windows(struct assembly *assembly) {
    bp_subject *subject = assembly->context->subject;
    size_t count = 0;
    for (bp_subject *one = subject; one != NULL; one = bp_subject_next(one)) {
        count++;
    }
    assembly->windows = calloc(count + 1, sizeof *assembly->windows);
    if (assembly->windows == NULL) {
        return false;
    }
    uint64_t triggered_ns = assembly->job->triggered.monotonic_ns;
    uint64_t since_ns =
        triggered_ns > BP_METRICS_AT_TRIGGER_NS ? triggered_ns - BP_METRICS_AT_TRIGGER_NS : 0;
    assembly->window_count = count;
    for (size_t i = 0; i < count; i++, subject = bp_subject_next(subject)) {
        process_window *window = &assembly->windows[i];
        window->subject = subject;
        bp_subject_begin(subject);
        window->of_trigger = i == 0 ? assembly->job->window : NULL;
        if (window->of_trigger == NULL) {
            bp_sampler *sampler = bp_subject_sampler(subject, &window->error);
            window->status = sampler == NULL
                                 ? window->error.status
                                 : bp_sampler_begin_since(sampler, since_ns, &window->error);
            if (window->status == BUGPACK_OK && bp_sampler_began_ns(sampler) > assembly->began_ns) {
                assembly->began_ns = bp_sampler_began_ns(sampler);
            }
        }
        bp_profile_window_begin(assembly->context, subject, assembly->job, &window->profile);
    }
    return true;
}

/* Looks at the children of other processes, if it is time: often, as they may end at once, and for
 * at most 4 % of a CPU. Returns when it is time again; UINT64_MAX for never. */
static uint64_t look_at_children(struct assembly *assembly) {
    uint64_t began_ns = bp_clock_monotonic_ns();
    uint64_t cpu_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    bool have_ended = false;
    if (assembly->context->config->target_pid == 0 && assembly->window_count <= 1) {
        return UINT64_MAX;
    }
    if (began_ns < assembly->look_due_ns) {
        return assembly->look_due_ns;
    }
    for (size_t i = 0; i < assembly->window_count; i++) {
        process_window *window = &assembly->windows[i];
        if (window->of_trigger == NULL && window->status == BUGPACK_OK && !window->has_ended) {
            have_ended = bp_sampler_look(bp_subject_sampler(window->subject, NULL)) || have_ended;
        }
    }
    uint64_t ended_ns = bp_clock_monotonic_ns();
    uint64_t cost_ns = (bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns) * 25;
    uint64_t least_ns = have_ended ? end_interval_ns : child_interval_ns;
    assembly->look_due_ns = ended_ns + (cost_ns > least_ns ? cost_ns : least_ns);
    return assembly->look_due_ns;
}

/* Samples what may end before its window does. False when no process is left to wait for. */
static bool keep(const struct assembly *assembly, bool may_sample) {
    bool may_wait = false;
    for (size_t i = 0; i < assembly->window_count; i++) {
        process_window *window = &assembly->windows[i];
        bool is_open = window->of_trigger == NULL && window->status == BUGPACK_OK;
        if (is_open && may_sample && window->subject->target.pid != 0) {
            window->has_ended = bp_sampler_keep(bp_subject_sampler(window->subject, NULL), NULL) ==
                                BUGPACK_ERR_NO_PROCESS;
        }
        may_wait = may_wait || (is_open && !window->has_ended);
    }
    return may_wait;
}

/* On a busy machine the window is over before anybody waits for it, and ends later than it was to:
 * what grows until then is seen between the providers, too. */
static void keep_meanwhile(struct assembly *assembly) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t window_ns = assembly->context->config->sample_window_ms * BP_NS_PER_MS;
    (void)look_at_children(assembly);
    if (window_ns > 0 && now_ns - assembly->began_ns >= window_ns / kept_share &&
        now_ns - assembly->kept_ns >= window_ns / kept_share) {
        (void)keep(assembly, true);
        assembly->kept_ns = now_ns;
    }
}

/* Waits until a window of our own has passed, unless each first sample failed. A session that is
 * closed meanwhile cuts it. */
static void wait_own_window(struct assembly *assembly) {
    const bp_progress *progress = assembly->progress;
    uint64_t began_ns = assembly->began_ns;
    uint64_t window_ns = assembly->context->config->sample_window_ms * BP_NS_PER_MS;
    uint64_t end_ns = began_ns + window_ns;
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t keep_ns = began_ns;
    bool may_wait = keep(assembly, false);
    while (may_wait && now_ns < end_ns && !bp_cancel_is_due(&assembly->job->token)) {
        show_progress(assembly, STAGE_WINDOW, now_ns - began_ns, window_ns);
        uint64_t due_ns = look_at_children(assembly);
        uint64_t until_ns = now_ns + look_interval_ns < due_ns ? now_ns + look_interval_ns : due_ns;
        until_ns = until_ns < end_ns ? until_ns : end_ns;
        if (!progress->wait(progress->context, until_ns)) {
            bp_clock_sleep_until(began_ns + hurried_window_ns);
            assembly->is_cut = began_ns + hurried_window_ns < end_ns;
            return;
        }
        now_ns = bp_clock_monotonic_ns();
        if (now_ns >= keep_ns && now_ns < end_ns) {
            may_wait = keep(assembly, true);
            keep_ns = now_ns + window_ns / kept_share;
        }
    }
}

/* Waits until the window has passed, or all processes have ended. CANCELLED, TIMEOUT. */
static bugpack_status wait_window(struct assembly *assembly, bugpack_error *error) {
    bp_window *window = assembly->job->window;
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t least_ns = now_ns + look_interval_ns;
    uint64_t deadline_ns = window != NULL ? bp_window_deadline_ns(window) : 0;
    deadline_ns = deadline_ns > least_ns ? deadline_ns : least_ns;
    /* The monitor has taken the sample of the trigger long ago, unless that came right after the
     * first one. */
    while (window != NULL && now_ns < deadline_ns &&
           bp_window_wait(window, now_ns + look_interval_ns) == NULL &&
           !bp_cancel_is_due(&assembly->job->token)) {
        show_progress(assembly, STAGE_WINDOW, 0, 1);
        now_ns = bp_clock_monotonic_ns();
    }
    wait_own_window(assembly);
    return bp_cancel_check(&assembly->job->token, error);
}

/* The metrics are there. `reference` is the instant that relates the two clocks. */
static bugpack_status print(const bp_job *job, const bp_window_result *window, bp_instant reference,
                            bugpack_writer *writer, bugpack_error *error) {
    bp_manifest_line *line = &writer->line;
    const bp_metrics *metrics = &window->metrics;
    line->covers_from_wall_ns = reference.wall_ns + (metrics->began_ns - reference.monotonic_ns);
    line->covers_to_wall_ns = reference.wall_ns + (metrics->ended_ns - reference.monotonic_ns);
    bp_metrics_describe(metrics, job->triggered.monotonic_ns, line->note, sizeof line->note);
    if (window->error.status != BUGPACK_OK) {
        bp_writer_truncate(writer, true, "%s", window->error.message);
    }
    if (metrics->unread_count > 0 && writer->line.status == BP_ARTEFACT_OK) {
        bp_writer_truncate(writer, true,
                           "at least %zu descendants run and could not be read; their cost is not "
                           "in these numbers",
                           metrics->unread_count);
    }
    return bp_metrics_print(metrics, bp_machine_platform(), &writer->content, error);
}

static bugpack_status add_one(const struct assembly *assembly, const process_window *given,
                              bugpack_error *error) {
    const bp_job *job = assembly->job;
    bugpack_writer writer;
    bp_window_result own = {.status = BUGPACK_OK};
    const bp_window_result *window = &own;
    bp_instant now = bp_clock_now();
    char name[BP_SUBJECT_NAME_BYTES];
    bp_writer_init(&writer, json_limit_bytes);
    if (given->of_trigger != NULL) {
        window = bp_window_give_up(given->of_trigger); /* a result that is there, or the best */
    } else {
        own.error = given->error;
        own.status = given->status;
    }
    if (given->of_trigger == NULL && own.status == BUGPACK_OK) {
        own.status =
            bp_sampler_end(bp_subject_sampler(given->subject, NULL), &own.metrics, &own.error);
        if (own.status == BUGPACK_OK) {
            own.status = bp_subject_check_program(given->subject, &own.error);
            own.is_other_program = own.status != BUGPACK_OK;
        }
        if (own.status == BUGPACK_OK && assembly->is_cut && own.error.status == BUGPACK_OK) {
            (void)bp_fail(&own.error, BUGPACK_ERR_CANCELLED,
                          "the session was closed before the window had passed");
        }
    }
    bugpack_status status;
    if (window->status == BUGPACK_OK) {
        status =
            print(job, window, given->of_trigger != NULL ? job->triggered : now, &writer, error);
    } else { /* the entry exists and says why it has no metrics: it still counts as missing */
        const char *reason = window->error.message;
        writer.line.status = window->is_other_program ? BP_ARTEFACT_OMITTED : BP_ARTEFACT_FAILED;
        writer.line.is_missing = true;
        (void)snprintf(writer.line.reason, sizeof writer.line.reason, "%s", reason);
        status =
            bp_metrics_print_unavailable(bp_machine_platform(), reason, &writer.content, error);
    }
    bp_metrics_release(&own.metrics);
    bp_writer_stamp(&writer, now);
    return bp_bundle_put(assembly->bundle,
                         bp_subject_entry(given->subject, "runtime-metrics.json", name), status,
                         &writer, error);
}

/* Adds runtime-metrics.json of each process. */
static bugpack_status add_metrics(struct assembly *assembly, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    if (assembly->context->config->without_process) {
        return BUGPACK_OK;
    }
    for (size_t i = 0; status == BUGPACK_OK && i < assembly->window_count; i++) {
        status = add_one(assembly, &assembly->windows[i], error);
    }
    return status;
}

/* After all metrics, whose windows it would prolong: samples are unwound and named. */
static bugpack_status add_profiles(struct assembly *assembly, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < assembly->window_count; i++) {
        process_window *window = &assembly->windows[i];
        status = bp_profile_window_add(&window->profile, window->subject, assembly->bundle, error);
    }
    return status;
}

/*
 * process.json has a provider where there is a sampler. Where there could be one, and only this
 * session has none, the manifest says why.
 */
static bugpack_status note_process(struct assembly *assembly, bugpack_error *error) {
    bugpack_error reason = BUGPACK_ERROR_INIT;
    if (bp_subject_sampler(assembly->context->subject, &reason) != NULL ||
        reason.status == BUGPACK_ERR_UNSUPPORTED) {
        return BUGPACK_OK;
    }
    bugpack_writer writer;
    bp_writer_init(&writer, 0);
    bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "%s", reason.message);
    bp_writer_stamp(&writer, bp_clock_now());
    return bp_bundle_put(assembly->bundle, "process.json", BUGPACK_OK, &writer, error);
}

static bugpack_status ask_provider(const struct assembly *assembly, bp_provider *provider,
                                   bugpack_error *error) {
    const bp_job *job = assembly->job;
    const char *name = provider->spec.name;
    bugpack_writer writer;
    if (job->type->brings_entry != NULL && job->type->brings_entry(job, name)) {
        return BUGPACK_OK;
    }
    if (bp_config_leaves_out(assembly->context->config, bp_entry_in_process(name))) {
        return bp_bundle_leave_out(assembly->bundle, name, error);
    }
    bp_writer_init(&writer, SIZE_MAX / 4);
    bp_writer_set_channel(&writer, job->channel);
    bugpack_status status = bp_bundle_begin(assembly->bundle, name, &writer, error);
    if (status == BUGPACK_OK && bp_runner_call(assembly->runner, provider, &job->token, &writer)) {
        status = bp_bundle_add(assembly->bundle, name, &writer, error);
    }
    bp_writer_release(&writer);
    return status;
}

/* A cancelled report asks no further provider: each would cost a thread, for nothing. */
static bugpack_status ask_providers(struct assembly *assembly, bool are_late,
                                    bugpack_error *error) {
    bp_provider **providers = NULL;
    size_t count = 0;
    bugpack_status status =
        bp_provider_list_get(assembly->context->providers, &providers, &count, error);
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        if (providers[i]->spec.is_late != are_late) {
            continue;
        }
        if (!are_late) {
            show_progress(assembly, STAGE_PROVIDERS, i, count);
            keep_meanwhile(assembly);
        }
        status = bp_cancel_check(&assembly->job->token, error);
        if (status == BUGPACK_OK) {
            status = ask_provider(assembly, providers[i], error);
        }
    }
    bp_provider_list_drop(providers, count);
    return status;
}

static bugpack_status ask_early(struct assembly *assembly, bugpack_error *error) {
    return ask_providers(assembly, false, error);
}

/* System counts over the window, and log files. */
static bugpack_status ask_late(struct assembly *assembly, bugpack_error *error) {
    return ask_providers(assembly, true, error);
}

static bugpack_status add_metadata_of(const struct assembly *assembly, bp_subject *subject,
                                      const bp_metadata_target *others, size_t other_count,
                                      bugpack_error *error) {
    const bp_config *config = assembly->context->config;
    const bp_identity *identity = assembly->context->identity;
    const bp_job *job = assembly->job;
    const bp_instant now = bp_clock_now();
    char name[BP_SUBJECT_NAME_BYTES];
    const char *entry = "metadata.json";
    bugpack_writer writer;
    bp_metadata metadata = {.sequence = job->ticket,
                            .app_name = config->app_name,
                            .app_version = config->app_version,
                            .app_build_id = config->app_build_id,
                            .platform = bp_machine_platform(),
                            .arch = identity->machine.arch,
                            .kernel = identity->machine.kernel,
                            .machine = identity->machine.name,
                            .pid = getpid(),
                            .kind = job->type->kind,
                            .channel = job->channel,
                            .session_opened = identity->opened,
                            .triggered = job->triggered,
                            .written = now,
                            .tags = job->tags == NULL ? NULL : job->tags->tags,
                            .is_about_none = config->without_process,
                            .others = others,
                            .other_count = other_count,
                            .suppressed_count = assembly->suppressed_count,
                            .tag_count = job->tags == NULL ? 0 : job->tags->count};
    memcpy(metadata.report_id, assembly->report_id, sizeof metadata.report_id);
    memcpy(metadata.session_id, identity->id, sizeof metadata.session_id);
    if (subject != NULL) {
        entry = bp_subject_entry(subject, entry, name);
        metadata.target = subject->target;
        metadata.target_uptime_ns = bp_subject_uptime(subject);
    }
    if (metadata.target_uptime_ns != 0) {
        metadata.started_wall_ns = now.wall_ns - metadata.target_uptime_ns;
    }
    if (job->hosted != NULL) {
        bp_hosted_describe(job->hosted, &metadata);
    }
    bp_writer_init(&writer, json_limit_bytes);
    if (job->type->describe != NULL) {
        job->type->describe(job, &metadata, &writer);
    }
    bugpack_status status = bp_metadata_print(&metadata, &writer.content, error);
    bp_writer_stamp(&writer, now);
    return bp_bundle_put(assembly->bundle, entry, status, &writer, error);
}

/* Adds metadata.json of each process; the first names the others. */
static bugpack_status add_metadata(struct assembly *assembly, bugpack_error *error) {
    size_t count = assembly->window_count;
    if (count == 0) {
        return add_metadata_of(assembly, NULL, NULL, 0, error);
    }
    bp_metadata_target *targets = calloc(count, sizeof *targets);
    if (targets == NULL) {
        return bp_fail_memory(error, "describe a report");
    }
    for (size_t i = 0; i < count; i++) {
        targets[i] = assembly->windows[i].subject->target;
    }
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        status = add_metadata_of(assembly, assembly->windows[i].subject, targets + 1,
                                 i == 0 ? count - 1 : 0, error);
    }
    free(targets);
    return status;
}

static bugpack_status publish(struct assembly *assembly, bugpack_report_result *result,
                              bugpack_error *error) {
    const bp_report_context *context = assembly->context;
    const bp_job *job = assembly->job;
    bp_trigger_list triggers = {.entries = NULL};
    bugpack_status status = BUGPACK_OK;
    if (context->list_triggers != NULL) {
        status = context->list_triggers(context->triggers, job, &triggers, error);
    }
    if (status == BUGPACK_OK) {
        show_progress(assembly, STAGE_ARCHIVE, 0, 0);
        status =
            bp_destination_publish(&job->destination, assembly->bundle, &triggers, result, error);
    }
    bp_trigger_list_release(&triggers);
    return status;
}

/* The entries of the rings, and those of this job alone. */
static bugpack_status add_recorded(const struct assembly *assembly, bugpack_error *error) {
    bp_job *job = assembly->job;
    bugpack_status status = bp_ring_entries_add(job->snapshot, &job->traffic,
                                                assembly->context->config, assembly->bundle, error);
    return status == BUGPACK_OK && job->type->add_entries != NULL
               ? job->type->add_entries(job, assembly->bundle, error)
               : status;
}

static bugpack_status add_early(struct assembly *assembly, bugpack_error *error) {
    bool waits = assembly->job->type->take_latecomers != NULL;
    return waits ? BUGPACK_OK : add_recorded(assembly, error);
}

static bugpack_status add_late(struct assembly *assembly, bugpack_error *error) {
    if (assembly->job->type->take_latecomers == NULL) {
        return BUGPACK_OK;
    }
    assembly->job->type->take_latecomers(assembly->job);
    return add_recorded(assembly, error);
}

/* The steps after the snapshot, in their order, and the stage that each one completes. */
static const struct {
    bugpack_status (*run)(struct assembly *assembly, bugpack_error *error);
    stage stage;
    bool needs_subject; /* left out where the report is about a dead session */
} steps[] = {
    {note_process, STAGE_SNAPSHOT, true}, {ask_early, STAGE_PROVIDERS, true},
    {add_early, STAGE_RINGS, false},      {wait_window, STAGE_WINDOW, true},
    {add_metrics, STAGE_METRICS, true},   {ask_late, STAGE_METRICS, true},
    {add_profiles, STAGE_METRICS, true},  {add_late, STAGE_METRICS, false},
    {add_metadata, STAGE_METRICS, false},
};

/* LIMIT where the bug was reported often enough today. */
static bugpack_status take_quota(struct assembly *assembly, bugpack_error *error) {
    const bp_job *job = assembly->job;
    const bp_config *config = assembly->context->config;
    if (!job->type->is_limited || config->max_per_signature == 0) {
        return BUGPACK_OK;
    }
    const bp_quota quota = {.dir_fd = job->destination.dir_fd,
                            .app = config->app_name,
                            .kind = job->type->kind,
                            .key = job->key != NULL ? job->key : job->name_detail,
                            .wall_ns = job->triggered.wall_ns};
    if (!bp_quota_take(&quota, config->max_per_signature, &assembly->suppressed_count)) {
        return bp_fail(error, BUGPACK_ERR_LIMIT,
                       "limits.per_signature: %s \"%s\" has its %u report%s of this day",
                       bp_report_kind_name(quota.kind), quota.key,
                       (unsigned)config->max_per_signature,
                       config->max_per_signature == 1 ? "" : "s");
    }
    assembly->quota = quota;
    return BUGPACK_OK;
}

static bugpack_status assemble(struct assembly *assembly, bugpack_report_result *result,
                               bugpack_error *error) {
    bp_job *job = assembly->job;
    const bp_config *config = assembly->context->config;
    bp_redaction *redaction =
        job->hosted != NULL ? job->hosted->redaction : assembly->context->redaction;
    bugpack_status status = bp_destination_hold(&job->destination, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = take_quota(assembly, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_redaction_hold(redaction, &assembly->rules, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    const bp_bundle_target target = {
        .dir_fd = job->destination.dir_fd,
        .dir_name = job->destination.dir_path,
        .report_id = assembly->report_id,
        .wall_ns = job->triggered.wall_ns,
        .token = &job->token,
        .rules = assembly->rules,
        .key = bp_redaction_key(assembly->context->redaction),
        .hook = config->before_publish,
        .max_zip_bytes = job->max_zip_bytes > 0 ? job->max_zip_bytes : config->max_zip_bytes,
        .is_strict = job->type->is_strict};
    status = bp_bundle_new(&target, &assembly->bundle, error);
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof steps / sizeof steps[0]; i++) {
        if (!steps[i].needs_subject || assembly->context->subject != NULL) {
            status = steps[i].run(assembly, error);
        }
        if (status == BUGPACK_OK) {
            show_progress(assembly, steps[i].stage, 0, 0);
            status = bp_cancel_check(&job->token, error);
        }
    }
    return status == BUGPACK_OK ? publish(assembly, result, error) : status;
}

void bp_assemble(const bp_report_context *context, bp_runner *runner, bp_job *job,
                 const bp_progress *progress, bugpack_report_result *result) {
    *result = (bugpack_report_result){.struct_size = sizeof *result};
    struct assembly assembly = {
        .context = context, .runner = runner, .job = job, .progress = progress};
    bp_id_new(assembly.report_id);
    bool has_windows = begin_windows(&assembly);
    if (progress != NULL) {
        progress->wait_snapshot(progress->context);
    }
    /* A failure of the snapshot comes first, so that a bad destination costs no window. */
    if (job->snapshot_error.status != BUGPACK_OK) {
        result->error = job->snapshot_error;
        result->status = job->snapshot_error.status;
    } else if (!has_windows) {
        result->status = bp_fail_memory(&result->error, "take a report");
    } else {
        result->status = assemble(&assembly, result, &result->error);
    }
    if (assembly.quota.key != NULL && result->status != BUGPACK_OK) {
        bp_quota_give_back(&assembly.quota, assembly.suppressed_count);
    }
    for (size_t i = 0; i < assembly.window_count; i++) {
        bp_profiler_abandon(assembly.windows[i].profile.profiler); /* unless it has ended */
    }
    free(assembly.windows);
    bp_bundle_free(assembly.bundle);
    bp_rule_set_drop(assembly.rules);
    result->elapsed_ns = bp_clock_monotonic_ns() - job->triggered.monotonic_ns;
}
