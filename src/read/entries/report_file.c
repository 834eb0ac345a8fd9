#include "entries/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "base/temp_file.h"
#include "json/tree.h"
#include "model/metadata.h"
#include "platform/machine.h"

static const char metadata_name[] = "metadata.json";
static const char manifest_name[] = "manifest.json";
static const size_t metadata_max_bytes = (size_t)1 << 20, metadata_tree_bytes = (size_t)2 << 20;
static const size_t manifest_max_bytes = (size_t)8 << 20;

struct bp_report_file {
    char *path;
    int fd;      /* -1 until the report owns it */
    bool is_any; /* another program may have written it */
    bp_archive_reader *archive;
    bp_json_tree *metadata, *manifest;
};

static const char input_name[] = "standard input";

/* Until the end, or until the file takes no more, which its flush reports. */
static bugpack_status copy_all(int from_fd, bp_temp_file *file, bugpack_error *error) {
    char piece[64 * 1024];
    ssize_t count;
    do {
        count = read(from_fd, piece, sizeof piece);
        if (count < 0 && errno != EINTR) {
            return bp_fail_errno(error, errno, "cannot read %s", input_name);
        }
    } while (count < 0 ||
             (count > 0 && bp_temp_file_write(file, piece, (size_t)count) == BUGPACK_OK));
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_temp_file_flush(file, &detail);
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "cannot copy %s: %s", input_name, detail.message);
    }
    return file->size > 0 ? BUGPACK_OK
                          : bp_fail(error, BUGPACK_ERR_CORRUPT, "%s is empty", input_name);
}

bugpack_status bp_report_input_copy(int from_fd, uint64_t max_bytes, int *ret_fd,
                                    bugpack_error *error) {
    const char *dir = bp_machine_environment("TMPDIR");
    bp_temp_file file = BP_TEMP_FILE_INIT;
    dir = dir != NULL && dir[0] == '/' ? dir : "/tmp";
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bugpack_status status =
        dir_fd < 0 ? bp_fail_errno(error, errno, "cannot use the directory \"%s\"", dir)
                   : bp_temp_file_open(&file, dir_fd, max_bytes, error);
    if (status == BUGPACK_OK) {
        status = copy_all(from_fd, &file, error);
    }
    bp_file_close(dir_fd);
    if (status != BUGPACK_OK) {
        bp_temp_file_release(&file);
        return status;
    }
    *ret_fd = file.fd; /* the flush has released the rest */
    return BUGPACK_OK;
}

bugpack_status bp_report_input_open(const char *path, int *ret_fd, bugpack_error *error) {
    if (strcmp(path, "-") != 0) {
        return bp_file_open_regular(AT_FDCWD, path, ret_fd, error);
    }
    if (isatty(STDIN_FILENO) == 1) {
        return bp_fail(error, BUGPACK_ERR_IO, "cannot read a report from %s: it is a terminal",
                       input_name);
    }
    return bp_report_input_copy(STDIN_FILENO, BP_REPORT_INPUT_MAX_BYTES, ret_fd, error);
}

bugpack_status bp_report_file_read(const bp_report_file *report, const char *name, bp_buffer *out,
                                   bugpack_error *error) {
    return bp_report_file_stream(report, name, out->max_size - out->size, bp_buffer_sink, out,
                                 error);
}

bugpack_status bp_report_file_stream(const bp_report_file *report, const char *name,
                                     uint64_t max_bytes, bp_sink *sink, void *context,
                                     bugpack_error *error) {
    size_t index;
    if (!bp_archive_reader_find(report->archive, name, &index)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "there is no \"%s\" in \"%s\"", name,
                       report->path);
    }
    return bp_archive_reader_read(report->archive, index, max_bytes, sink, context, error);
}

bugpack_status bp_report_entry_give(const void *context, bp_sink *sink, void *sink_context,
                                    bugpack_error *error) {
    const bp_report_entry *entry = context;
    return bp_report_file_stream(entry->report, entry->name, entry->max_bytes, sink, sink_context,
                                 error);
}

bugpack_status bp_report_file_each(const bp_report_file *report, const char *name,
                                   const bp_json_tree_list *lists, void *context,
                                   bp_json_tree **ret_rest, bugpack_error *error) {
    const bp_report_entry entry = {report, name, UINT64_MAX};
    const bp_giver giver = {.give = bp_report_entry_give, .context = &entry};
    return bp_json_tree_each(&giver, lists, context, ret_rest, error);
}

bugpack_status bp_report_file_begin(const bp_report_file *report, size_t index,
                                    bp_archive_stream **ret_stream, bugpack_error *error) {
    return bp_archive_stream_open(report->archive, index, ret_stream, error);
}

static bugpack_status refuse(const bp_report_file *report, const char *name, const char *why,
                             bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_CORRUPT, "\"%s\" is no report: %s: %s", report->path, name,
                   why);
}

static bugpack_status parse(const bp_report_file *report, const char *name, const bp_buffer *text,
                            size_t tree_bytes, bp_json_tree **ret_tree, bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    uint64_t schema;
    bugpack_status status =
        bp_json_tree_read_within(bp_buffer_text(text), text->size, tree_bytes, ret_tree, &detail);
    if (status == BUGPACK_ERR_CORRUPT) {
        return refuse(report, name, detail.message, error);
    }
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "%s", detail.message);
    }
    if (!bp_json_tree_uint(*ret_tree, "schema", &schema) || schema == 0) {
        return report->is_any ? BUGPACK_OK
                              : refuse(report, name, "it does not say which schema it has", error);
    }
    return schema == BP_SCHEMA_NUMBER
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                         "\"%s\" was written by %s bugpack: %s has schema %" PRIu64
                         ", and this one reads schema %d",
                         report->path, schema < BP_SCHEMA_NUMBER ? "an older" : "a later", name,
                         schema, BP_SCHEMA_NUMBER);
}

/* Reads one of the two documents that every report has. */
static bugpack_status read_document(bp_report_file *report, const char *name, size_t max_bytes,
                                    size_t tree_bytes, bp_json_tree **ret_tree,
                                    bugpack_error *error) {
    bp_buffer text;
    if (!bp_report_file_has(report, name, NULL)) {
        return report->is_any ? BUGPACK_OK : refuse(report, name, "it is not there", error);
    }
    bp_buffer_init(&text, max_bytes);
    bugpack_status status = bp_report_file_read(report, name, &text, error);
    if (status == BUGPACK_OK) {
        status = parse(report, name, &text, tree_bytes, ret_tree, error);
    }
    bp_buffer_release(&text);
    return status;
}

static bugpack_status read_documents(bp_report_file *report, bugpack_error *error) {
    bugpack_status status = read_document(report, metadata_name, metadata_max_bytes,
                                          metadata_tree_bytes, &report->metadata, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    const char *id = bp_json_tree_text_or(report->metadata, "report_id", "");
    if (id[0] == '\0' && !report->is_any) {
        return refuse(report, metadata_name, "it has no report_id", error);
    }
    status = read_document(report, manifest_name, manifest_max_bytes, BP_REPORT_MANIFEST_TREE_BYTES,
                           &report->manifest, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (report->manifest == NULL) {
        return BUGPACK_OK;
    }
    if (bp_json_tree_array(report->manifest, "artefacts") == NULL) {
        return refuse(report, manifest_name, "it lists no artefacts", error);
    }
    /* A damaged report may have lost its metadata. */
    return report->metadata == NULL ||
                   strcmp(bp_json_tree_text_or(report->manifest, "report_id", ""), id) == 0
               ? BUGPACK_OK
               : refuse(report, manifest_name, "it belongs to another report", error);
}

static bugpack_status take(int fd, const char *path, bool is_any, bp_report_file **ret_report,
                           bugpack_error *error) {
    bp_report_file *report = calloc(1, sizeof *report);
    if (report == NULL) {
        return bp_fail_memory(error, "read a report");
    }
    report->fd = -1;
    report->is_any = is_any;
    report->path = strdup(path);
    bugpack_status status = report->path == NULL
                                ? bp_fail_memory(error, "read a report")
                                : bp_archive_reader_open(fd, path, &report->archive, error);
    if (status == BUGPACK_OK) {
        status = read_documents(report, error);
    }
    if (status != BUGPACK_OK) {
        bp_report_file_close(report);
        return status;
    }
    report->fd = fd;
    *ret_report = report;
    return BUGPACK_OK;
}

bugpack_status bp_report_file_take(int fd, const char *path, bp_report_file **ret_report,
                                   bugpack_error *error) {
    return take(fd, path, false, ret_report, error);
}

/* A damaged report still begins like one, and is then refused as a zip. */
static bool begins_as_zip(int fd) {
    char begin[4];
    return bp_file_read_range(fd, begin, sizeof begin, 0) == sizeof begin &&
           memcmp(begin, "PK", 2) == 0;
}

bugpack_status bp_report_file_open_or_plain(const char *path, bp_report_file **ret_report,
                                            int *ret_fd, bugpack_error *error) {
    int fd = -1;
    bp_report_file *report = NULL;
    bugpack_status status = bp_report_input_open(path, &fd, error);
    if (status == BUGPACK_OK && begins_as_zip(fd)) {
        status = take(fd, path, false, &report, error);
    }
    if (status != BUGPACK_OK) {
        bp_file_close(fd);
        return status;
    }
    *ret_report = report;
    *ret_fd = fd;
    return BUGPACK_OK;
}

static bugpack_status open_report(const char *path, bool is_any, bp_report_file **ret_report,
                                  bugpack_error *error) {
    int fd = -1;
    bugpack_status status = bp_report_input_open(path, &fd, error);
    if (status == BUGPACK_OK) {
        status = take(fd, path, is_any, ret_report, error);
        if (status != BUGPACK_OK) {
            bp_file_close(fd);
        }
    }
    return status;
}

bugpack_status bp_report_file_open(const char *path, bp_report_file **ret_report,
                                   bugpack_error *error) {
    return open_report(path, false, ret_report, error);
}

bugpack_status bp_report_file_open_any(const char *path, bp_report_file **ret_report,
                                       bugpack_error *error) {
    return open_report(path, true, ret_report, error);
}

void bp_report_file_close(bp_report_file *report) {
    if (report == NULL) {
        return;
    }
    bp_archive_reader_free(report->archive);
    bp_json_tree_free(report->metadata);
    bp_json_tree_free(report->manifest);
    if (report->fd >= 0) {
        (void)close(report->fd);
    }
    free(report->path);
    free(report);
}

const bp_json_tree *bp_report_file_metadata(const bp_report_file *report) {
    return report->metadata;
}

const bp_json_tree *bp_report_file_manifest(const bp_report_file *report) {
    return report->manifest;
}

bool bp_report_file_has(const bp_report_file *report, const char *name, uint64_t *ret_bytes) {
    size_t index;
    bool is_there = bp_archive_reader_find(report->archive, name, &index);
    if (is_there && ret_bytes != NULL) {
        *ret_bytes = bp_archive_reader_member(report->archive, index).bytes;
    }
    return is_there;
}

size_t bp_report_file_count(const bp_report_file *report) {
    return bp_archive_reader_count(report->archive);
}

const char *bp_report_file_name(const bp_report_file *report, size_t index) {
    return bp_archive_reader_member(report->archive, index).name;
}

void bp_report_process_key(const bp_json_tree *process, char out[BP_REPORT_KEY_BYTES]) {
    const char *boot = bp_json_tree_text_or(process, "boot_id", "");
    uint64_t pid, ticks;
    out[0] = '\0';
    if (boot[0] != '\0' && strlen(boot) < 40 && bp_json_tree_uint(process, "pid", &pid) &&
        bp_json_tree_uint(process, "start_ticks", &ticks)) {
        (void)snprintf(out, BP_REPORT_KEY_BYTES, "%s:%" PRIu64 ":%" PRIu64, boot, pid, ticks);
    }
}

const bp_json_tree *bp_report_file_line(const bp_report_file *report, const char *name) {
    const bp_json_tree *artefact = bp_json_tree_rows(report->manifest, "artefacts");
    while (artefact != NULL && strcmp(bp_json_tree_text_or(artefact, "name", ""), name) != 0) {
        artefact = bp_json_tree_next(artefact);
    }
    return artefact;
}
