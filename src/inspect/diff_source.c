#include "inspect/diff_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "json/pick.h"

const char *bp_diff_artefact_name(bp_diff_artefact artefact) {
    static const char *const names[] = {[BP_DIFF_HOST] = "host-threads.json",
                                        [BP_DIFF_METRICS] = "runtime-metrics.json",
                                        [BP_DIFF_HEAP] = "heap-state.json"};
    return names[artefact];
}

/* What a document is, by keys that only it has. */
static bugpack_status tell_kind(bp_diff_source *source, bugpack_error *error) {
    bp_json_pick picks[] = {
        {.path = "threads"}, {.path = "summary"}, {.path = "process"}, {.path = "allocator"}};
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_json_pick_all(bp_buffer_text(&source->document),
                                             source->document.size, picks, 4, &detail);
    if (status == BUGPACK_ERR_CORRUPT) {
        return bp_fail(error, status, "\"%s\" is neither a report nor JSON: %s", source->path,
                       detail.message);
    }
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "%s", detail.message);
    }
    bool has_threads = bp_json_token_is(&picks[0].token, "[");
    if (has_threads && bp_json_token_is(&picks[1].token, "{")) {
        source->kind = BP_DIFF_HOST;
    } else if (has_threads && bp_json_token_is(&picks[2].token, "{")) {
        source->kind = BP_DIFF_METRICS;
    } else if (!has_threads && picks[3].token.byte_count > 0 && picks[3].token.text[0] == '"') {
        source->kind = BP_DIFF_HEAP;
    } else {
        return bp_fail(error, BUGPACK_ERR_CORRUPT,
                       "\"%s\" is neither a report nor a host-threads.json, runtime-metrics.json "
                       "or heap-state.json",
                       source->path);
    }
    return BUGPACK_OK;
}

/* A damaged report still begins like one, so that it is told what is wrong with it as a zip. */
static bool begins_as_zip(int fd) {
    char begin[4];
    ssize_t count;
    do {
        count = pread(fd, begin, sizeof begin, 0);
    } while (count < 0 && errno == EINTR);
    return count == sizeof begin && memcmp(begin, "PK", 2) == 0;
}

bugpack_status bp_diff_source_open(const char *path, bp_diff_source *ret_source,
                                   bugpack_error *error) {
    bp_diff_source source = {.path = path};
    int fd;
    bp_buffer_init(&source.document, BP_DIFF_DOCUMENT_MAX_BYTES);
    bugpack_status status = bp_file_open_regular(AT_FDCWD, path, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (begins_as_zip(fd)) {
        status = bp_report_file_take(fd, path, &source.report, error);
        fd = status == BUGPACK_OK ? -1 : fd; /* it is the report's */
    } else {
        status = bp_file_read_fd(fd, path, &source.document, error);
        status = status == BUGPACK_OK ? tell_kind(&source, error) : status;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (status != BUGPACK_OK) {
        bp_diff_source_release(&source);
        return status;
    }
    *ret_source = source;
    return BUGPACK_OK;
}

void bp_diff_source_release(bp_diff_source *source) {
    bp_report_file_close(source->report);
    source->report = NULL;
    bp_buffer_release(&source->document);
}

static bugpack_status explain_absence(const bp_diff_source *source, const char *name,
                                      bp_diff_presence *presence, bugpack_error *error) {
    bp_report_line line;
    bugpack_status status = bp_report_file_line(source->report, name, &line, error);
    if (status == BUGPACK_OK && line.is_there) {
        (void)snprintf(presence->reason, sizeof presence->reason, "%s%s%s", line.status,
                       line.reason[0] != '\0' ? ": " : "", line.reason);
    }
    return status;
}

bugpack_status bp_diff_source_take(bp_diff_source *source, bp_diff_artefact artefact,
                                   bp_buffer *ret_text, bp_diff_presence *ret_presence,
                                   bugpack_error *error) {
    const char *name = bp_diff_artefact_name(artefact);
    bp_diff_presence presence = {.is_there = false};
    bugpack_status status = BUGPACK_OK;
    bp_buffer_init(ret_text, BP_DIFF_DOCUMENT_MAX_BYTES);
    if (source->report == NULL) {
        presence.is_there = source->kind == artefact;
        if (presence.is_there) {
            bp_buffer_move(ret_text, &source->document);
        }
    } else if (bp_report_file_has(source->report, name)) {
        presence.is_there = true;
        status = bp_report_file_read(source->report, name, ret_text, error);
    } else {
        status = explain_absence(source, name, &presence, error);
    }
    if (status == BUGPACK_OK) {
        *ret_presence = presence;
    }
    return status;
}
