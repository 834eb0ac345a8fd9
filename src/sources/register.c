#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "report/name.h"
#include "sources/source.h"

static bool has_stacks(const bp_report_context *context) {
    return !context->settings->without_process && context->settings->stacks != 0;
}

/* Without one, the manifest says why: see report/assemble.c. */
static bool has_sampler(const bp_report_context *context) {
    return bp_subject_sampler(context->subject, NULL) != NULL;
}

static bool has_process(const bp_report_context *context) {
    return !context->settings->without_process;
}

static bool is_first(const bp_report_context *context) {
    return !bp_subject_is_further(context->subject);
}

static bool is_other(const bp_report_context *context) {
    return bp_subject_target(context->subject)->pid != 0;
}

static bool is_own(const bp_report_context *context) {
    return has_process(context) && !is_other(context);
}

static const struct {
    const char *name;
    bugpack_provider *provide;
    bool (*applies)(const bp_report_context *context);
    size_t limit_bytes;
    bp_content_form form;
} rows[] = {
    {"stacks.json", bp_source_stacks_json, has_stacks, (size_t)64 << 20, BP_CONTENT_BYTES},
    {"stacks.txt", bp_source_stacks_text, has_stacks, (size_t)64 << 20, BP_CONTENT_TEXT},
    {"process.json", bp_source_process, has_sampler, (size_t)16 << 20, BP_CONTENT_BYTES},
    {"threads.json", bp_source_threads, has_process, (size_t)256 << 20, BP_CONTENT_BYTES},
    {"files.json", bp_source_open_files, has_process, (size_t)128 << 20, BP_CONTENT_BYTES},
    {"system.json", bp_source_system, is_first, (size_t)4 << 20, BP_CONTENT_BYTES},
    {"thread-heap.json", bp_source_thread_heap, is_other, (size_t)256 << 20, BP_CONTENT_BYTES},
    {"heap-state.json", bp_source_heap_state, is_own, (size_t)64 << 10, BP_CONTENT_BYTES},
};

static void drop_source(void *context) {
    bp_source *source = context;
    if (source != NULL && atomic_fetch_sub(&source->references, 1) == 1) {
        bp_source_free_stacks(atomic_load(&source->stacks_left));
        bp_source_free_package(atomic_load(&source->package_left));
        bp_subject_drop(source->subject);
        free(source->helper_path);
        free(source);
    }
}

static bugpack_status new_source(const bp_report_context *context, bp_source **ret_source,
                                 bugpack_error *error) {
    const bugpack_options *settings = context->settings;
    const char *path = settings->calibrator_path;
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
    source->timeout_ms = settings->provider_timeout_ms;
    source->stacks = settings->stacks;
    source->system_flags = settings->system_flags;
    source->without_process = settings->without_process;
    source->without_stacks_json = settings->without_entries != NULL &&
                                  bp_name_is_in_list(settings->without_entries, "stacks.json");
    *ret_source = source;
    return BUGPACK_OK;
}

bugpack_status bp_sources_register(const bp_report_context *context, bugpack_error *error) {
    bp_source *source = NULL;
    bugpack_status status = new_source(context, &source, error);
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof rows / sizeof rows[0]; i++) {
        char name[BP_SUBJECT_NAME_BYTES];
        const bp_provider_spec spec = {.name =
                                           bp_subject_entry(context->subject, rows[i].name, name),
                                       .form = rows[i].form,
                                       .provide = rows[i].provide,
                                       .context = source,
                                       .release = drop_source,
                                       .limit_bytes = rows[i].limit_bytes,
                                       .timeout_ms = context->settings->provider_timeout_ms};
        if (rows[i].applies(context)) {
            atomic_fetch_add(&source->references, 1);
            status = bp_provider_list_add(context->providers, &spec, error); /* or drops it */
        }
    }
    drop_source(source);
    return status;
}

bugpack_status bp_sources_add_process(const bp_report_context *context, pid_t pid,
                                      bugpack_error *error) {
    bp_report_context further = *context;
    bugpack_status status = bp_subject_add(context->subject, pid, &further.subject, error);
    return status == BUGPACK_OK ? bp_sources_register(&further, error) : status;
}
