#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/entry.h"
#include "sources/source.h"

static bool has_stacks(const bp_report_context *context) {
    bool has_any =
        !context->config->without_process || atomic_load(&context->subject->crash) != NULL;
    return has_any && context->config->stacks != BUGPACK_STACKS_NONE;
}

/* Without one, the manifest says why: see report/assemble.c. */
static bool has_sampler(const bp_report_context *context) {
    return bp_subject_sampler(context->subject, NULL) != NULL;
}

static bool has_process(const bp_report_context *context) {
    return !context->config->without_process;
}

static bool is_first(const bp_report_context *context) {
    return !context->subject->is_further;
}

static bool is_other(const bp_report_context *context) {
    return context->subject->target.pid != 0;
}

static bool is_own(const bp_report_context *context) {
    return has_process(context) && !is_other(context);
}

#define NO_ROW(...)
#define ROW(id, name, form, flag, worth, cut, holds, provider, applies, limit_kb, turn)            \
    [(turn)-1] = {name, bp_source_##provider, applies, (size_t)(limit_kb) << 10, BP_ENTRY_##form},
static const struct {
    const char *name;
    bugpack_provider_callback *provide;
    bool (*applies)(const bp_report_context *context);
    size_t limit_bytes;
    bp_entry_form form;
} rows[] = {BP_ENTRIES(NO_ROW, ROW)}; /* by turn */

static void drop_source(void *context) {
    bp_source *source = context;
    if (source != NULL && atomic_fetch_sub(&source->references, 1) == 1) {
        bp_source_free_stacks(atomic_load(&source->stacks_left));
        bp_subject_drop(source->subject);
        bp_system_release(&source->groups_before);
        free(source->helper_path);
        free(source);
    }
}

static bugpack_status new_source(const bp_report_context *context, bp_source **ret_source,
                                 bugpack_error *error) {
    const bp_config *config = context->config;
    const char *path = config->calibrator_path;
    bp_source *source = calloc(1, sizeof *source);
    char *helper_path = path != NULL ? strdup(path) : NULL;
    if (source == NULL || (path != NULL && helper_path == NULL)) {
        free(helper_path);
        free(source);
        return bp_fail_memory(error, "open a session");
    }
    atomic_init(&source->references, 1);
    source->subject = bp_subject_retain(context->subject);
    source->helper_path = helper_path;
    source->timeout_ms = config->provider_timeout_ms;
    source->window_ms = config->sample_window_ms;
    source->stacks = config->stacks;
    source->with_hostname = config->with_hostname;
    source->without_process = config->without_process;
    source->without_stacks_json = bp_config_leaves_out(config, "stacks.json");
    if (is_other(context) && is_first(context)) { /* which alone has system.json */
        source->oom_kills_before = bp_system_oom_kills();
        bp_system_read_groups(context->subject->target.pid, &source->groups_before);
    }
    *ret_source = source;
    return BUGPACK_OK;
}

bugpack_status bp_sources_register(const bp_report_context *context, bugpack_error *error) {
    bp_source *source = NULL;
    bool is_of_crash = atomic_load(&context->subject->crash) != NULL;
    bugpack_status status = new_source(context, &source, error);
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof rows / sizeof rows[0]; i++) {
        char name[BP_SUBJECT_NAME_BYTES];
        const bp_provider_spec spec = {
            .name = bp_subject_entry(context->subject, rows[i].name, name),
            .form = rows[i].form == BP_ENTRY_TEXT ? BUGPACK_PROVIDE_TEXT : BUGPACK_PROVIDE_BYTES,
            .provide = rows[i].provide,
            .context = source,
            .release = drop_source,
            .limit_bytes = rows[i].limit_bytes,
            .is_late = bp_entry_is_late(rows[i].name),
            .timeout_ms = context->config->provider_timeout_ms};
        bool is_wanted = !is_of_crash || rows[i].applies == has_stacks;
        if (is_wanted && rows[i].applies(context)) {
            atomic_fetch_add(&source->references, 1);
            status = bp_provider_list_add(context->providers, &spec, error); /* or drops it */
        }
    }
    drop_source(source);
    return status;
}
