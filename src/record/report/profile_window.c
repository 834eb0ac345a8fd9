#include "report/profile_window.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

static const size_t profile_limit_bytes = 2 * (size_t)BP_PROFILE_BYTES_MAX;

void bp_profile_window_begin(const bp_report_context *context, bp_subject *subject,
                             const bp_job *job, bp_profile_window *ret_window) {
    const bp_config *config = context->config;
    const bp_profile_ring *ring =
        subject->is_further ? NULL : context->profile_ring; /* of the first alone */
    bool has_window =
        job->window == NULL && config->sample_window_ms > 0 && subject->target.pid != 0;
    *ret_window = (bp_profile_window){.is_asked_for = ring != NULL || has_window,
                                      .is_left_out = bp_config_leaves_out(config, "profile.folded"),
                                      .error = BUGPACK_ERROR_INIT};
    if (!ret_window->is_asked_for || ret_window->is_left_out) {
        return;
    }
    bp_profile_plan plan = {.timeout_ns = config->provider_timeout_ms * BP_NS_PER_MS};
    bp_subject_process *processes = NULL;
    size_t count;
    bugpack_status status;
    if (ring != NULL) {
        status = bp_profile_ring_copy(ring, job->triggered.monotonic_ns, &plan.samples,
                                      &ret_window->error);
    } else {
        status = bp_subject_list(subject, &processes, &count, &ret_window->error);
    }
    if (status == BUGPACK_OK && ring == NULL) {
        plan.pid = processes[0].pid;
        plan.birth = processes[0].birth;
        plan.window_ns = config->sample_window_ms * BP_NS_PER_MS;
    }
    free(processes);
    if (status == BUGPACK_OK) {
        (void)bp_profiler_begin(&plan, &ret_window->profiler, &ret_window->error);
    }
}

/* Where the kernel, or a limit, does not let us, or nothing ran, nothing is missing. */
static void explain_profile(bugpack_writer *writer, bugpack_status status, const char *reason) {
    bool is_trouble = status == BUGPACK_ERR_NO_MEMORY || status == BUGPACK_ERR_IO;
    bp_artefact_status outcome = is_trouble ? BP_ARTEFACT_FAILED : BP_ARTEFACT_OMITTED;
    bp_writer_refuse(writer, status == BUGPACK_ERR_TIMEOUT ? BP_ARTEFACT_TIMED_OUT : outcome, "%s",
                     reason);
    writer->line.is_missing = is_trouble || status == BUGPACK_ERR_TIMEOUT;
}

static bugpack_status print_profile(bp_profile *profile, bugpack_writer *writer,
                                    bugpack_error *error) {
    const bp_profile_facts *facts = &profile->facts;
    char text[BP_NOTE_BYTES];
    bp_profile_describe(facts, text, sizeof text);
    if (facts->sample_count == 0) {
        char reason[BP_REASON_BYTES];
        (void)snprintf(reason, sizeof reason, "no thread ran at an instant of a sample: %s", text);
        explain_profile(writer, BUGPACK_OK, reason);
        return BUGPACK_OK;
    }
    (void)snprintf(writer->line.note, sizeof writer->line.note, "%s", text);
    return bp_folded_print(&profile->folded, &writer->content, error);
}

bugpack_status bp_profile_window_add(bp_profile_window *window, const bp_subject *subject,
                                     bp_bundle *bundle, bugpack_error *error) {
    char own_name[BP_SUBJECT_NAME_BYTES];
    const char *name = bp_subject_entry(subject, "profile.folded", own_name);
    bugpack_writer writer;
    bp_profile profile = {.facts = {.is_known = false}};
    bp_instant began = bp_clock_now();
    bugpack_status status = window->error.status;
    if (!window->is_asked_for) {
        return BUGPACK_OK;
    }
    if (window->is_left_out) {
        return bp_bundle_leave_out(bundle, name, error);
    }
    if (window->profiler != NULL) {
        status = bp_profiler_end(window->profiler, &profile, &window->error);
        window->profiler = NULL;
    }
    if (status == BUGPACK_OK) {
        status = bp_subject_check_program(subject, &window->error);
    }
    bp_writer_init(&writer, profile_limit_bytes);
    writer.is_text = true;
    if (status != BUGPACK_OK) {
        explain_profile(&writer, status, window->error.message);
        status = BUGPACK_OK;
    } else {
        status = print_profile(&profile, &writer, error);
        if (!subject->is_further) {
            bp_bundle_set_profile(bundle, &profile.facts);
        }
    }
    bp_profile_release(&profile);
    bp_writer_stamp(&writer, began);
    return bp_bundle_put(bundle, name, status, &writer, error);
}
