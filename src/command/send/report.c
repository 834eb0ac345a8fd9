#include "send/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/status.h"
#include "entries/report_file.h"
#include "platform/staged_file.h"

enum { piece_bytes = 64 * 1024, stem_max_bytes = 200 };

static const char extension[] = ".zip";

/* It becomes part of a file's name, and of a header. */
static bool is_id(const char *text) {
    return strlen(text) == BP_ID_BYTES - 1 && strspn(text, "0123456789abcdef") == BP_ID_BYTES - 1;
}

/* Reads what is in it, by a descriptor of its own. */
static bugpack_status look_into(bp_send_report *report, const char *path, bugpack_error *error) {
    bp_report_file *file = NULL;
    int fd = fcntl(report->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot read \"%s\"", path);
    }
    bugpack_status status = bp_report_file_take(fd, path, &file, error);
    if (status != BUGPACK_OK) {
        bp_file_close(fd);
        return status;
    }
    const char *id = bp_json_tree_text_or(bp_report_file_metadata(file), "report_id", "");
    if (is_id(id)) {
        memcpy(report->id, id, sizeof report->id);
    } else {
        status = bp_fail(error, BUGPACK_ERR_CORRUPT, "\"%s\": its report_id is malformed", path);
    }
    bp_report_file_close(file);
    return status;
}

bugpack_status bp_send_report_open(const char *path, const char *name, bp_send_report *report,
                                   bugpack_error *error) {
    struct stat info;
    *report = (bp_send_report){.fd = -1};
    bugpack_status status = bp_report_input_open(path, &report->fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (fstat(report->fd, &info) != 0) {
        return bp_fail_errno(error, errno, "cannot read \"%s\"", path);
    }
    const char *slash = strrchr(path, '/');
    if (name == NULL) {
        name = slash != NULL ? slash + 1 : path;
    }
    name = strcmp(name, "-") == 0 ? "report" : name;
    size_t length = strlen(name), end = sizeof extension - 1;
    length -= length > end && strcmp(name + length - end, extension) == 0 ? end : 0;
    (void)snprintf(report->name, sizeof report->name, "%.*s%s",
                   length < stem_max_bytes ? (int)length : (int)stem_max_bytes, name, extension);
    report->bytes = (uint64_t)info.st_size;
    return look_into(report, path, error);
}

void bp_send_report_close(bp_send_report *report) {
    bp_file_close(report->fd);
    report->fd = -1;
}

static bugpack_status copy(const bp_send_report *report, bp_staged_file *file,
                           bp_send_progress *progress, void *context, bugpack_error *error) {
    char piece[piece_bytes];
    for (uint64_t at = 0; at < report->bytes;) {
        uint64_t left = report->bytes - at;
        int64_t count = bp_file_read_range(report->fd, piece,
                                           left < sizeof piece ? (size_t)left : sizeof piece, at);
        if (count <= 0) {
            return bp_fail(error, BUGPACK_ERR_CORRUPT,
                           "the report cannot be read, or has become shorter");
        }
        int failure = bp_file_write_all(bp_staged_file_fd(file), piece, (size_t)count);
        if (failure != 0) {
            return bp_fail_errno(error, failure, "cannot write the copy");
        }
        at += (uint64_t)count;
        if (progress != NULL && !progress(context, at, report->bytes)) {
            return bp_fail(error, BUGPACK_ERR_CANCELLED, "interrupted");
        }
    }
    return BUGPACK_OK;
}

bugpack_status bp_send_report_copy(const bp_send_report *report, int dir_fd, const char *dir_path,
                                   const char *name, bp_send_progress *progress, void *context,
                                   char *ret_name, size_t name_bytes, bugpack_error *error) {
    bp_staged_file *file = NULL;
    char stem[256];
    (void)snprintf(stem, sizeof stem, "%.*s", (int)(strlen(name) - (sizeof extension - 1)), name);
    bugpack_status status = bp_staged_file_new(dir_fd, dir_path, &file, error);
    if (status == BUGPACK_OK) {
        status = copy(report, file, progress, context, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_staged_file_sync(file, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_staged_file_publish(file, stem, extension, ret_name, name_bytes, error);
    }
    bp_staged_file_free(file);
    return status;
}
