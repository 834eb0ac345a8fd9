#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/file.h"
#include "base/status.h"
#include "model/entry.h"
#include "sources/source.h"

/* A file that is read whenever a report is taken. It owns its path. */
typedef struct watched_file {
    char *path;
    bp_file_plan plan; /* without its strings */
    bp_child child;
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

/* A read-only file system, such as a CD's, is always full: that does not count. */
static bool is_disk_full(int fd) {
    struct statvfs info;
    return fstatvfs(fd, &info) == 0 && info.f_blocks > 0 && info.f_bavail == 0 &&
           (info.f_flag & ST_RDONLY) == 0;
}

static int read_tail(int fd, const watched_file *file, bugpack_writer *writer) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_file_tail tail;
    writer->line.is_disk_full = is_disk_full(fd);
    if (bp_file_read_tail(fd, file->path, file->plan.limit_bytes, bp_writer_sink, writer, &tail,
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
                      file->path, (unsigned long long)file->plan.limit_bytes);
    } else if (status != BUGPACK_OK && error.message[0] == '\0') {
        (void)bp_fail(&error, status, "cannot keep \"%s\": %s", file->path,
                      bugpack_status_name(status));
    }
    return status == BUGPACK_OK ? 0 : fail_with(writer, &error);
}

static int read_whole(int fd, const watched_file *file, bugpack_writer *writer) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_size >= 0 &&
        (uint64_t)info.st_size > file->plan.limit_bytes) {
        writer->line.has_original_bytes = true;
        writer->line.original_bytes = (uint64_t)info.st_size;
        writer->line.status = BP_ARTEFACT_OMITTED;
        (void)bp_fail(&error, BUGPACK_ERR_IO, "\"%s\" has %llu bytes and is over the limit of %llu",
                      file->path, (unsigned long long)info.st_size,
                      (unsigned long long)file->plan.limit_bytes);
        return fail_with(writer, &error);
    }
    return copy_whole(fd, file, writer);
}

static int read_here(bugpack_writer *writer, const watched_file *file) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    int fd = -1;
    bugpack_status status =
        file->plan.found_bytes > 0
            ? bp_file_open_found(file->path, file->plan.found_bytes, &fd, &error)
            : bp_file_open_regular(AT_FDCWD, file->path, &fd, &error);
    if (status != BUGPACK_OK) {
        return fail_with(writer, &error);
    }
    int result = file->plan.kind == BUGPACK_FILE_LOG_TAIL ? read_tail(fd, file, writer)
                                                          : read_whole(fd, file, writer);
    (void)close(fd);
    return result;
}

/* The result of a child process that has read a file, beside its bytes. */
struct answer {
    int result;
    bp_manifest_line line;
};

/* A bp_sink. */
static bugpack_status give(void *fd, const void *bytes, size_t byte_count) {
    return bp_file_write_all(*(const int *)fd, bytes, byte_count) == 0 ? BUGPACK_OK
                                                                       : BUGPACK_ERR_IO;
}

static void read_in_child(const void *context, void *ret_answer, int out_fd) {
    const watched_file *file = context;
    struct answer *answer = ret_answer;
    bugpack_writer writer;
    bp_writer_init(&writer, (size_t)file->plan.limit_bytes + 1);
    writer.sink = give;
    writer.sink_context = &out_fd;
    answer->result = read_here(&writer, file);
    if (answer->result == 0 && bp_writer_flush(&writer, NULL) != BUGPACK_OK) {
        answer->result = -1;
    }
    answer->line = writer.line;
}

static int provide_file(bugpack_writer *writer, void *context) {
    watched_file *file = context;
    const bp_aside aside = {.work = read_in_child,
                            .context = file,
                            .answer_bytes = sizeof(struct answer),
                            .stall_ms = file->plan.stall_ms,
                            .is_cancelled = bp_writer_is_abandoned,
                            .observed = writer};
    struct answer answer;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = BUGPACK_ERR_UNSUPPORTED; /* by us */
    if (file->plan.run_aside != NULL) {
        status = file->plan.run_aside(&aside, bp_writer_sink, writer, &answer, &file->child);
    }
    if (status == BUGPACK_OK) {
        writer->line = answer.line;
        return answer.result;
    }
    if (status == BUGPACK_ERR_UNSUPPORTED) {
        return read_here(writer, file);
    }
    if (status == BUGPACK_ERR_TIMEOUT) {
        (void)bp_fail(&error, status, "cannot read \"%s\": nothing came within %.1f s", file->path,
                      file->plan.stall_ms / 1000.0);
    } else if (status == BUGPACK_ERR_BUSY) {
        (void)bp_fail(&error, status, "cannot read \"%s\": an earlier reading still hangs",
                      file->path);
    } else {
        (void)bp_fail(&error, status, "cannot read \"%s\": %s", file->path,
                      bugpack_status_name(status));
    }
    return fail_with(writer, &error);
}

bugpack_status bp_source_file(const bp_report_context *context, const bp_file_plan *plan,
                              bugpack_error *error) {
    const char *refusal = plan->name == NULL ? "it is NULL" : bp_entry_refuse(plan->name);
    if (refusal != NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the artefact name \"%s\" cannot be used: %s",
                       plan->name == NULL ? "" : plan->name, refusal);
    }
    if (plan->path == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the path of \"%s\" is NULL", plan->name);
    }
    if ((unsigned)plan->kind > BUGPACK_FILE_JSON) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "kind: %u is no bugpack_file_kind",
                       (unsigned)plan->kind);
    }
    if (plan->limit_bytes > SIZE_MAX >> 8) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "limit_bytes must be at most %zu",
                       SIZE_MAX >> 8);
    }
    watched_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return bp_fail_memory(error, "register a file");
    }
    file->plan = *plan;
    if (plan->limit_bytes == 0) {
        file->plan.limit_bytes = context->config->artefact_limit_bytes;
    }
    bugpack_status status = bp_file_absolute_path(plan->path, &file->path, error);
    if (status != BUGPACK_OK) {
        free(file);
        return status;
    }
    const bp_provider_spec spec = {
        .name = plan->name,
        .form = plan->kind == BUGPACK_FILE_JSON ? BUGPACK_PROVIDE_JSON : BUGPACK_PROVIDE_BYTES,
        .provide = provide_file,
        .context = file,
        .release = free_watched_file,
        /* One byte more is read, to find the line that a cut falls into. */
        .limit_bytes = (size_t)file->plan.limit_bytes + 1,
        .is_late = bp_entry_is_late(plan->name),
        .timeout_ms = context->config->provider_timeout_ms};
    return bp_provider_list_add(context->providers, &spec, error);
}
