#include "report/accept.h"

#include <string.h>

#include "base/status.h"
#include "json/json.h"

static void refuse_result(bugpack_writer *given) {
    char reason[BP_REASON_BYTES];
    memcpy(reason, given->line.reason, sizeof reason);
    bp_writer_refuse(given,
                     given->line.status == BP_ARTEFACT_OK ? BP_ARTEFACT_FAILED : given->line.status,
                     "%s", reason[0] != '\0' ? reason : "the provider failed");
}

static void accept_json(bugpack_writer *given, bp_sink *sink, void *context) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer formatted;
    /* Indenting and escaping make it longer; the limit was for what the provider gave. */
    bp_buffer_init(&formatted, SIZE_MAX / 4);
    bugpack_status status =
        bp_json_reformat(bp_buffer_text(&given->content), given->content.size, &formatted, &error);
    bp_buffer_release(&given->content);
    if (status == BUGPACK_OK) {
        status = sink(context, bp_buffer_text(&formatted), formatted.size);
    }
    bp_buffer_release(&formatted);
    if (status != BUGPACK_OK) {
        bp_writer_refuse(given, BP_ARTEFACT_FAILED, "%s%s",
                         status == BUGPACK_ERR_CORRUPT ? "not valid JSON: " : "",
                         error.message[0] != '\0' ? error.message : bugpack_status_name(status));
    }
}

void bp_provider_accept(bp_content_form form, size_t limit_bytes, int result, bugpack_writer *given,
                        bp_sink *sink, void *context) {
    bugpack_status status = given->content.status;
    if (result == 0 && form != BP_CONTENT_JSON) {
        status = bp_writer_flush(given, NULL);
    }
    if (result != 0) {
        refuse_result(given);
    } else if (given->content.status == BUGPACK_ERR_LIMIT) {
        bp_writer_refuse(given, BP_ARTEFACT_FAILED, "it is over the limit of %zu bytes",
                         limit_bytes);
    } else if (status != BUGPACK_OK) {
        bp_writer_refuse(given, BP_ARTEFACT_FAILED, "what the provider wrote was not kept: %s",
                         bugpack_status_name(status));
    } else {
        if (given->line.status == BP_ARTEFACT_OK) {
            given->line.reason[0] = '\0'; /* it said why it fails, and then did not */
        }
        if (form == BP_CONTENT_JSON) {
            accept_json(given, sink, context);
        }
    }
}
