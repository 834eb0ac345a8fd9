#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "model/entry.h"
#include "sources/source.h"

/* A file that is read whenever a report is taken. It owns its path. */
typedef struct watched_file {
    char *path;
    bugpack_file_kind kind;
    uint64_t limit_bytes;
} watched_file;

static void free_watched_file(void *context) {
    watched_file *file = context;
    free(file->path);
    free(file);
}

/* The whole sentence, for the manifest: a path may be longer than what bugpack_fail keeps. */
static int fail_with(bugpack_writer *writer, const bugpack_error *error) {
    (void)snprintf(writer->line.reason, sizeof writer->line.reason, "%s", error->message);
    return -1;
}

static int read_tail(int fd, const watched_file *file, bugpack_writer *writer) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_file_tail tail;
    if (bp_file_read_tail(fd, file->path, file->limit_bytes, bp_writer_sink, writer, &tail,
                          &error) != BUGPACK_OK) {
        return fail_with(writer, &error);
    }
    if (tail.skipped_bytes > 0) {
        writer->line.has_original_bytes = true;
        writer->line.original_bytes = tail.original_bytes;
        bp_writer_truncate(writer, false, "%s are kept, of %llu bytes",
                           tail.cut_inside_line
                               ? "the newest bytes of a line that is over the limit"
                               : "the newest whole lines",
                           (unsigned long long)tail.original_bytes);
    }
    return 0;
}

/* Until the end of the file, so that it works where st_size is 0 (as under /proc). */
static int copy_whole(int fd, const watched_file *file, bugpack_writer *writer) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    char bytes[16 * 1024];
    bugpack_status status = BUGPACK_OK;
    for (;;) {
        ssize_t count = read(fd, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            status = bp_fail_process_errno(&error, errno, "cannot read \"%s\"", file->path);
        } else if (count > 0) {
            status = bugpack_write(writer, bytes, (size_t)count);
        }
        if (count <= 0 || status != BUGPACK_OK) {
            break;
        }
    }
    if (writer->content.status == BUGPACK_ERR_LIMIT) {
        (void)bp_fail(&error, status, "cannot read \"%s\": it is over the limit of %llu bytes",
                      file->path, (unsigned long long)file->limit_bytes);
    } else if (status != BUGPACK_OK && error.message[0] == '\0') {
        (void)bp_fail(&error, status, "cannot keep \"%s\": %s", file->path,
                      bugpack_status_name(status));
    }
    return status == BUGPACK_OK ? 0 : fail_with(writer, &error);
}

static int read_whole(int fd, const watched_file *file, bugpack_writer *writer) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_size >= 0 && (uint64_t)info.st_size > file->limit_bytes) {
        writer->line.has_original_bytes = true;
        writer->line.original_bytes = (uint64_t)info.st_size;
        writer->line.status = BP_ARTEFACT_OMITTED;
        (void)bp_fail(&error, BUGPACK_ERR_IO, "\"%s\" has %llu bytes and is over the limit of %llu",
                      file->path, (unsigned long long)info.st_size,
                      (unsigned long long)file->limit_bytes);
        return fail_with(writer, &error);
    }
    return copy_whole(fd, file, writer);
}

static int provide_file(bugpack_writer *writer, void *context) {
    const watched_file *file = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    int fd = -1;
    if (bp_file_open_regular(AT_FDCWD, file->path, &fd, &error) != BUGPACK_OK) {
        return fail_with(writer, &error);
    }
    int result = file->kind == BUGPACK_FILE_LOG_TAIL ? read_tail(fd, file, writer)
                                                     : read_whole(fd, file, writer);
    (void)close(fd);
    return result;
}

static bugpack_status make_watched_file(const bp_report_context *context, const char *path,
                                        bugpack_file_kind kind, uint64_t limit_bytes,
                                        watched_file **ret_file, bugpack_error *error) {
    watched_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return bp_fail_memory(error, "register a file");
    }
    file->kind = kind;
    file->limit_bytes = limit_bytes != 0 ? limit_bytes : context->settings->artefact_limit_bytes;
    bugpack_status status = bp_file_absolute_path(path, &file->path, error);
    if (status != BUGPACK_OK) {
        free(file);
        return status;
    }
    *ret_file = file;
    return BUGPACK_OK;
}

static bugpack_status check_arguments(const char *name, const char *path, bugpack_file_kind kind,
                                      uint64_t limit_bytes, bugpack_error *error) {
    const char *refusal = name == NULL ? "it is NULL" : bp_entry_refuse(name);
    if (refusal != NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the artefact name \"%s\" cannot be used: %s",
                       name == NULL ? "" : name, refusal);
    }
    if (path == NULL || kind < BUGPACK_FILE_WHOLE || kind > BUGPACK_FILE_JSON ||
        limit_bytes > SIZE_MAX >> 8) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the file for \"%s\" cannot be registered",
                       name);
    }
    return BUGPACK_OK;
}

bugpack_status bp_source_file(const bp_report_context *context, const char *name, const char *path,
                              bugpack_file_kind kind, uint64_t limit_bytes, bugpack_error *error) {
    bugpack_status status = check_arguments(name, path, kind, limit_bytes, error);
    watched_file *file = NULL;
    if (status == BUGPACK_OK) {
        status = make_watched_file(context, path, kind, limit_bytes, &file, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    const bp_provider_spec spec = {
        .name = name,
        .form = kind == BUGPACK_FILE_JSON ? BP_CONTENT_JSON : BP_CONTENT_BYTES,
        .provide = provide_file,
        .context = file,
        .release = free_watched_file,
        /* One byte more is read, to find the line that a cut falls into. */
        .limit_bytes = (size_t)file->limit_bytes + 1,
        .timeout_ms = context->settings->provider_timeout_ms};
    return bp_provider_list_add(context->providers, &spec, error);
}
