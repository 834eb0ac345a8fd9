#include "cli/provide.h"

#include <stddef.h>

#include <bugpack/provide.h>

#include "cli/message.h"

/* The largest session file; it is held in memory as a whole. */
static const uint64_t session_limit_bytes = (uint64_t)64 << 20;

bugpack_status bp_cli_check_session_file(const char *path) {
    if (path == NULL) {
        return BUGPACK_OK;
    }
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bugpack_check_json_file(path, session_limit_bytes, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
    }
    return status;
}

static bugpack_status provide_file(bugpack *session, const char *command, const char *name,
                                   const char *path, bugpack_file_kind kind, uint64_t limit_bytes) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bugpack_provide_file(session, name, path, kind, limit_bytes, &error);
    if (status == BUGPACK_ERR_INVALID) {
        bp_cli_say_usage(command, "%s", error.message);
    } else if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
    }
    return status;
}

static bugpack_status provide_inputs(bugpack *session, const char *command,
                                     const bp_cli_inputs *inputs, uint64_t limit_bytes) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < inputs->count; i++) {
        const bp_cli_input *input = &inputs->items[i];
        status = provide_file(session, command, input->name, input->path, input->kind, limit_bytes);
    }
    return status;
}

bugpack_status bp_cli_provide_files(bugpack *session, const char *command,
                                    const bp_cli_files *files) {
    bugpack_status status = BUGPACK_OK;
    if (files->session_path != NULL) {
        status = provide_file(session, command, "session.json", files->session_path,
                              BUGPACK_FILE_JSON, session_limit_bytes);
    }
    if (status == BUGPACK_OK) {
        status = provide_inputs(session, command, files->logs, files->log_limit_bytes);
    }
    if (status == BUGPACK_OK) {
        status = provide_inputs(session, command, files->attachments, files->attach_limit_bytes);
    }
    return status;
}
