#include "base/status.h"
#include "sources/source.h"

static void drop_subject(void *subject) {
    bp_subject_drop(subject);
}

/*
 * Under a time limit like a host's provider: the kernel can block a reader of /proc/<pid>/cmdline
 * or maps for as long as the process holds its memory map locked.
 */
static int provide(bugpack_writer *writer, void *subject) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_subject_write_facts(subject, writer, &error) != BUGPACK_OK) {
        return bugpack_fail(writer, "%s", error.message);
    }
    return 0;
}

bugpack_status bp_source_process(const bp_report_context *context, bugpack_error *error) {
    if (bp_subject_sampler(context->subject, NULL) == NULL) {
        return BUGPACK_OK; /* the manifest says why, see report/assemble.c */
    }
    const bp_provider_spec spec = {.name = "process.json",
                                   .form = BP_CONTENT_BYTES,
                                   .provide = provide,
                                   .context = bp_subject_retain(context->subject),
                                   .release = drop_subject,
                                   .limit_bytes = (size_t)16 << 20,
                                   .timeout_ms = context->settings->provider_timeout_ms};
    return bp_source_add(context, &spec, error);
}
