#include "cli/redaction.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "cli/output.h"

static const size_t rules_max_bytes = (size_t)1 << 20;

static bugpack_status read_text(bp_cli_redaction *redaction, bugpack_error *error) {
    bp_buffer text;
    int fd = -1;
    bp_buffer_init(&text, rules_max_bytes);
    bugpack_status status = bp_file_open_regular(AT_FDCWD, redaction->path, &fd, error);
    if (status == BUGPACK_OK) {
        status = bp_file_read_fd(fd, redaction->path, &text, error);
        bp_file_close(fd);
    }
    if (status == BUGPACK_OK && memchr(bp_buffer_text(&text), '\0', text.size) != NULL) {
        status = bp_fail(error, BUGPACK_ERR_INVALID, "\"%s\" is no text", redaction->path);
    }
    if (status == BUGPACK_OK && (redaction->text = strdup(bp_buffer_text(&text))) == NULL) {
        status = bp_fail_memory(error, "read redaction rules");
    }
    bp_buffer_release(&text);
    return status;
}

bool bp_cli_redaction_prepare(bp_cli_redaction *redaction, bp_cli_exit *ret_exit) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (redaction->path != NULL && redaction->is_off) {
        *ret_exit = bp_cli_say_usage("--no-redact and --redact exclude each other");
        return false;
    }
    bugpack_status status = redaction->path == NULL ? BUGPACK_OK : read_text(redaction, &error);
    if (status != BUGPACK_OK) {
        *ret_exit = bp_cli_say_failed(&error);
    }
    return status == BUGPACK_OK;
}

void bp_cli_redaction_apply(const bp_cli_redaction *redaction, bugpack_options *options) {
    options->redaction.mode = redaction->is_off ? BUGPACK_REDACT_NEVER : BUGPACK_REDACT_REPORTS;
    options->redaction.rules = redaction->text;
}
