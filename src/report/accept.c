#include "report/accept.h"

#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "json/json.h"

void bp_provider_accept(bp_content_form form, size_t limit_bytes, int result, bugpack_writer *given,
                        bugpack_writer *writer) {
    writer->line = given->line;
    if (result != 0) {
        char reason[BP_REASON_BYTES];
        memcpy(reason, given->line.reason, sizeof reason);
        bp_writer_refuse(
            writer, given->line.status == BP_ARTEFACT_OK ? BP_ARTEFACT_FAILED : given->line.status,
            "%s", reason[0] != '\0' ? reason : "the provider failed");
        return;
    }
    if (given->content.status != BUGPACK_OK && !given->content.is_over_limit) {
        bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "what the provider wrote was not kept: %s",
                         bugpack_status_name(given->content.status));
        return;
    }
    if (given->content.status != BUGPACK_OK) {
        bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "it is over the limit of %zu bytes",
                         limit_bytes);
        return;
    }
    if (writer->line.status == BP_ARTEFACT_OK) {
        writer->line.reason[0] = '\0'; /* it said why it fails, and then did not */
    }
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = BUGPACK_OK;
    if (form == BP_CONTENT_BYTES || bp_temp_file_is_open(&given->temp_file)) {
        bp_buffer_move(&writer->content, &given->content);
        bp_temp_file_move(&writer->temp_file, &given->temp_file);
        return;
    }
    /* Indenting and escaping make it longer; the limit was for what the provider gave. */
    writer->content.max_size = SIZE_MAX / 4;
    if (form == BP_CONTENT_TEXT) {
        status =
            bp_utf8_encode(&writer->content, bp_buffer_text(&given->content), given->content.size);
    } else {
        status = bp_json_reformat(bp_buffer_text(&given->content), given->content.size,
                                  &writer->content, &error);
    }
    if (status != BUGPACK_OK) {
        bp_writer_refuse(writer, BP_ARTEFACT_FAILED, "%s%s",
                         status == BUGPACK_ERR_CORRUPT ? "not valid JSON: " : "",
                         error.message[0] != '\0' ? error.message : bugpack_status_name(status));
    }
}
