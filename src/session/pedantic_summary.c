#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "model/pedantic_summary.h"
#include "platform/staged_file.h"
#include "report/name.h"
#include "session/pedantic.h"
#include "session/session.h"

static const size_t summary_limit_bytes = (size_t)16 << 20;

bugpack_status bp_pedantic_list(bugpack *session, const bp_order *order,
                                bp_trigger_entry **ret_entries, size_t *ret_count,
                                bugpack_error *error) {
    bp_pedantic_gap *rows = NULL;
    bp_trigger_entry *entries = NULL;
    size_t count = 0;
    const bp_gap *own =
        order != NULL && order->kind == BP_REPORT_PEDANTIC ? order->settled_context : NULL;
    bugpack_status status = bp_gaps_list(session->pedantic->gaps, own, &rows, &count, error);
    if (status == BUGPACK_OK && count > 0) {
        entries = calloc(count, sizeof *entries);
        status = entries == NULL ? bp_fail_memory(error, "list the gaps") : BUGPACK_OK;
    }
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        entries[i] = (bp_trigger_entry){.kind = BP_REPORT_PEDANTIC,
                                        .key = rows[i].key,
                                        .count = rows[i].count,
                                        .written_count = rows[i].is_written,
                                        .first_wall_ns = rows[i].first_wall_ns,
                                        .last_wall_ns = rows[i].last_wall_ns,
                                        .reason = rows[i].reason};
    }
    free(rows);
    if (status == BUGPACK_OK) {
        *ret_entries = entries;
        *ret_count = count;
    }
    return status;
}

static bugpack_status write_all(int fd, const char *dir_path, const bp_buffer *text,
                                bugpack_error *error) {
    for (size_t at = 0; at < text->size;) {
        ssize_t count = write(fd, text->data + at, text->size - at);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return bp_fail_errno(error, count == 0 ? ENOSPC : errno, "cannot write in \"%s\"",
                                 dir_path);
        }
        at += (size_t)count;
    }
    return BUGPACK_OK;
}

/* As a report is: whole and under its name, or not there. */
static bugpack_status publish(const bugpack_options *options, const bp_buffer *text,
                              uint64_t wall_ns, bugpack_error *error) {
    int dir_fd = -1;
    bp_staged_file *file = NULL;
    char stem[BP_NAME_STEM_BYTES];
    char name[256];
    const char *dir = options->pedantic_dir;
    bugpack_status status = bp_file_open_directory(dir, options->create_report_dir, &dir_fd, error);
    if (status == BUGPACK_OK) {
        status = bp_staged_file_new(dir_fd, dir, &file, error);
    }
    if (status == BUGPACK_OK) {
        status = write_all(bp_staged_file_fd(file), dir, text, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_staged_file_sync(file, error);
    }
    if (status == BUGPACK_OK) {
        bp_name_report_stem(options->app_name, BP_REPORT_PEDANTIC, "summary", wall_ns, stem);
        status = bp_staged_file_publish(file, stem, ".json", name, sizeof name, error);
    }
    bp_staged_file_free(file);
    if (dir_fd >= 0) {
        (void)close(dir_fd);
    }
    return status;
}

bugpack_status bp_pedantic_write_summary(bugpack *session, bugpack_error *error) {
    const bugpack_options *options = &session->options;
    bp_pedantic_gap *rows = NULL;
    bp_buffer text;
    bp_pedantic_summary summary = {.session_id = session->id,
                                   .app_name = options->app_name,
                                   .app_version = options->app_version,
                                   .app_build_id = options->app_build_id,
                                   .pid = getpid(),
                                   .opened_wall_ns = session->opened.wall_ns,
                                   .closed_wall_ns = bp_clock_wall_ns(),
                                   .cap = options->pedantic_cap,
                                   .channel_cap = options->pedantic_channel_cap};
    bugpack_status status =
        bp_gaps_list(session->pedantic->gaps, NULL, &rows, &summary.gap_count, error);
    if (status != BUGPACK_OK || summary.gap_count == 0) {
        return status;
    }
    summary.gaps = rows;
    bp_buffer_init(&text, summary_limit_bytes);
    status = bp_pedantic_summary_print(&summary, &text, error);
    if (status == BUGPACK_OK) {
        status = publish(options, &text, summary.closed_wall_ns, error);
    }
    bp_buffer_release(&text);
    free(rows);
    return status;
}
