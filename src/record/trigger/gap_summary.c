#include "trigger/gap_summary.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "model/pedantic_summary.h"
#include "platform/staged_file.h"
#include "recorder/recorder.h"
#include "redact/redactor.h"
#include "report/name.h"

static const size_t summary_limit_bytes = (size_t)16 << 20;

/* Like a report: whole and under its name, or absent. */
static bugpack_status publish(const bp_report_dir *dir, const char *app_name, const bp_buffer *text,
                              uint64_t wall_ns, bugpack_error *error) {
    int dir_fd = -1;
    bp_staged_file *file = NULL;
    char stem[BP_NAME_STEM_BYTES];
    char name[256];
    bugpack_status status = bp_file_open_directory(dir->path, dir->may_create, &dir_fd, error);
    if (status == BUGPACK_OK) {
        status = bp_staged_file_new(dir_fd, dir->path, &file, error);
    }
    if (status == BUGPACK_OK) {
        int failed = bp_file_write_all(bp_staged_file_fd(file), text->data, text->size);
        status = failed == 0 ? bp_staged_file_sync(file, error)
                             : bp_fail_errno(error, failed, "cannot write to \"%s\"", dir->path);
    }
    if (status == BUGPACK_OK) {
        bp_name_report_stem(app_name, BP_REPORT_PEDANTIC, "summary", wall_ns, stem);
        status = bp_staged_file_publish(file, stem, ".json", name, sizeof name, error);
    }
    bp_staged_file_free(file);
    bp_file_close(dir_fd);
    return status;
}

/* The two without secrets, like what a report holds; as they are without redaction. */
static bugpack_status redact(bp_redaction *redaction, const char *app_name, const bp_buffer *text,
                             bp_buffer *ret_name, bp_buffer *ret_text, bugpack_error *error) {
    bp_rule_set *rules = NULL;
    bp_redactor *redactor = NULL;
    bugpack_status status = bp_redaction_hold(redaction, &rules, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (rules == NULL) {
        status = bp_buffer_append_text(ret_name, app_name);
        status = status == BUGPACK_OK ? bp_buffer_append(ret_text, text->data, text->size) : status;
        goto out;
    }
    redactor = bp_redactor_new(rules);
    status = redactor == NULL ? BUGPACK_ERR_NO_MEMORY
                              : bp_redactor_text(redactor, app_name, strlen(app_name), ret_name);
    if (status == BUGPACK_OK) {
        bp_redactor_begin(redactor, BP_REDACT_JSON);
        status = bp_redactor_write(redactor, text->data, text->size, bp_buffer_sink, ret_text);
    }
    if (status == BUGPACK_OK) {
        status = bp_redactor_write(redactor, NULL, 0, bp_buffer_sink, ret_text);
    }
out:
    bp_redactor_free(redactor);
    bp_rule_set_drop(rules);
    return status == BUGPACK_OK ? BUGPACK_OK
                                : bp_fail(error, status, "it cannot be searched for secrets: %s",
                                          bugpack_status_name(status));
}

void bp_gap_summary_write(const bp_report_context *context, bp_gaps *gaps) {
    const bp_config *config = context->config;
    bp_pedantic_gap *rows = NULL;
    bp_buffer text, safe_text, safe_name;
    bp_pedantic_summary summary = {.session_id = context->identity->id,
                                   .app_name = config->app_name,
                                   .app_version = config->app_version,
                                   .app_build_id = config->app_build_id,
                                   .pid = getpid(),
                                   .opened_wall_ns = context->identity->opened.wall_ns,
                                   .closed_wall_ns = bp_clock_wall_ns(),
                                   .cap = config->pedantic.cap,
                                   .channel_cap = config->pedantic.channel_cap};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer_init(&text, summary_limit_bytes);
    bp_buffer_init(&safe_text, 2 * summary_limit_bytes);
    bp_buffer_init(&safe_name, (size_t)64 << 10);
    bugpack_status status = bp_gaps_list(gaps, NULL, &rows, &summary.gap_count, &error);
    if (status != BUGPACK_OK || summary.gap_count == 0) {
        goto out;
    }
    summary.gaps = rows;
    status = bp_pedantic_summary_print(&summary, &text, &error);
    if (status == BUGPACK_OK) {
        status =
            redact(context->redaction, config->app_name, &text, &safe_name, &safe_text, &error);
    }
    if (status == BUGPACK_OK) {
        status = publish(&config->pedantic.dir, bp_buffer_text(&safe_name), &safe_text,
                         summary.closed_wall_ns, &error);
    }
out:
    if (status != BUGPACK_OK) {
        bp_note_diagnose(context->recorder, BUGPACK_LEVEL_WARN,
                         "the summary of the gaps was not written: %s", error.message);
    }
    bp_buffer_release(&text);
    bp_buffer_release(&safe_text);
    bp_buffer_release(&safe_name);
    free(rows);
}
