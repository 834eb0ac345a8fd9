#include <stdlib.h>

#include "base/status.h"
#include "model/process.h"
#include "platform/process_facts.h"
#include "session/session.h"

static const char artefact_name[] = "process.json";

static const size_t limit_bytes = (size_t)16 << 20;

/*
 * Under a time limit like a host's provider: the kernel can keep a reader of /proc/<pid>/cmdline or
 * maps waiting for as long as the process holds its own memory map locked.
 */
static int provide_process(bugpack_writer *writer, void *context) {
    bp_process_facts facts;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_process_facts_read(context, &facts, &error);
    if (status == BUGPACK_OK) {
        status = bp_process_print(&facts, &writer->content, &error);
        if (status == BUGPACK_OK && facts.denied[0] != '\0') {
            bp_writer_truncate(writer, true, "%s", facts.denied);
        }
        bp_process_facts_release(&facts);
    }
    if (status != BUGPACK_OK) {
        bugpack_fail(writer, "%s", error.message);
        return -1;
    }
    return 0;
}

static void close_task(void *context) {
    bp_task_close(context);
}

bugpack_status bp_session_provide_process(bugpack *session, bugpack_error *error) {
    bp_task *task = bp_task_retain(bp_sampler_task(session->sampler));
    bp_provider_spec spec = {.name = artefact_name,
                             .form = BP_CONTENT_BYTES,
                             .provide = provide_process,
                             .context = task,
                             .release = close_task,
                             .limit_bytes = limit_bytes,
                             .timeout_ms = session->options.provider_timeout_ms};
    bp_provider *provider = NULL;
    bugpack_status status = bp_provider_new(&spec, &provider, error);
    if (status != BUGPACK_OK) {
        bp_task_close(task);
        return status;
    }
    status = bp_session_add_provider(session, provider, error);
    if (status != BUGPACK_OK) {
        bp_provider_drop(provider);
    }
    return status;
}
