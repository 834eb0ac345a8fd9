#include "inspect/report_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "inspect/manifest_reader.h"
#include "model/metadata.h"
#include "json/pick.h"

static const char metadata_name[] = "metadata.json";
static const char manifest_name[] = "manifest.json";
static const size_t metadata_max_bytes = (size_t)1 << 20;
static const size_t manifest_max_bytes = (size_t)16 << 20;

enum { FACT_ID, FACT_APP, FACT_TYPE, FACT_TIME, FACT_COUNT };

struct bp_report_file {
    char *path;
    int fd; /* -1 until it is ours */
    bp_archive_reader *archive;
    bp_buffer metadata, manifest;
    bp_buffer facts[FACT_COUNT];
};

static bugpack_status append_to_buffer(void *buffer, const void *bytes, size_t byte_count) {
    return bp_buffer_append(buffer, bytes, byte_count);
}

static bugpack_status read_entry(bp_report_file *report, const char *name, uint64_t max_bytes,
                                 bp_sink *sink, void *context, bugpack_error *error) {
    size_t index;
    if (!bp_archive_reader_find(report->archive, name, &index)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "there is no \"%s\" in \"%s\"", name,
                       report->path);
    }
    return bp_archive_reader_read(report->archive, index, max_bytes, sink, context, error);
}

bugpack_status bp_report_file_read(bp_report_file *report, const char *name, bp_buffer *out,
                                   bugpack_error *error) {
    return read_entry(report, name, out->max_size - out->size, append_to_buffer, out, error);
}

bugpack_status bp_report_temp_file(bp_report_file *report, const char *name,
                                   bp_temp_file *temp_file, bugpack_error *error) {
    return read_entry(report, name, temp_file->max_size - temp_file->size, bp_temp_file_sink,
                      temp_file, error);
}

static bugpack_status refuse(const bp_report_file *report, const char *name, const char *why,
                             bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_CORRUPT, "\"%s\" is no report: %s: %s", report->path, name,
                   why);
}

/* One of the two that every report has. */
static bugpack_status read_document(bp_report_file *report, const char *name, bp_json_pick *picks,
                                    size_t pick_count, bp_buffer *out, bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    if (!bp_report_file_has(report, name)) {
        return refuse(report, name, "it is not there", error);
    }
    bugpack_status status = bp_report_file_read(report, name, out, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_json_pick_all(bp_buffer_text(out), out->size, picks, pick_count, &detail);
    if (status == BUGPACK_ERR_CORRUPT) {
        return refuse(report, name, detail.message, error);
    }
    return status == BUGPACK_OK ? status : bp_fail(error, status, "%s", detail.message);
}

/* A number that rises when a shape changes so that older readers would misread it. */
static bugpack_status check_schema(const bp_report_file *report, const char *name,
                                   const bp_json_token *schema, bugpack_error *error) {
    uint64_t number;
    if (!bp_json_token_uint(schema, &number) || number == 0) {
        return refuse(report, name, "it does not say which schema it has", error);
    }
    return number <= BP_SCHEMA_NUMBER
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "\"%s\" was written by a later bugpack",
                         report->path);
}

static bugpack_status read_metadata(bp_report_file *report, bugpack_error *error) {
    bp_json_pick picks[FACT_COUNT + 1] = {[FACT_ID] = {.path = "report_id"},
                                          [FACT_APP] = {.path = "app.name"},
                                          [FACT_TYPE] = {.path = "report_type"},
                                          [FACT_TIME] = {.path = "timestamp"},
                                          [FACT_COUNT] = {.path = "schema"}};
    bugpack_status status =
        read_document(report, metadata_name, picks, FACT_COUNT + 1, &report->metadata, error);
    if (status == BUGPACK_OK) {
        status = check_schema(report, metadata_name, &picks[FACT_COUNT].token, error);
    }
    for (size_t i = 0; i < FACT_COUNT && status == BUGPACK_OK; i++) {
        (void)bp_json_token_text(&picks[i].token, &report->facts[i]);
        if (report->facts[i].status != BUGPACK_OK) {
            status = bp_fail_memory(error, "read a report");
        }
    }
    return status == BUGPACK_OK && report->facts[FACT_ID].size == 0
               ? refuse(report, metadata_name, "it has no report_id", error)
               : status;
}

static bugpack_status read_manifest(bp_report_file *report, bugpack_error *error) {
    bp_json_pick picks[] = {{.path = "report_id"}, {.path = "schema"}, {.path = "artefacts"}};
    bp_buffer id;
    bugpack_status status =
        read_document(report, manifest_name, picks, 3, &report->manifest, error);
    if (status == BUGPACK_OK) {
        status = check_schema(report, manifest_name, &picks[1].token, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    if (!bp_json_token_is(&picks[2].token, "[")) {
        return refuse(report, manifest_name, "it lists no artefacts", error);
    }
    bp_buffer_init(&id, metadata_max_bytes);
    (void)bp_json_token_text(&picks[0].token, &id);
    if (strcmp(bp_buffer_text(&id), bp_buffer_text(&report->facts[FACT_ID])) != 0) {
        status = refuse(report, manifest_name, "it belongs to another report", error);
    }
    bp_buffer_release(&id);
    return status;
}

bugpack_status bp_report_file_take(int fd, const char *path, bp_report_file **ret_report,
                                   bugpack_error *error) {
    bp_report_file *report = calloc(1, sizeof *report);
    if (report == NULL) {
        return bp_fail_memory(error, "read a report");
    }
    report->fd = -1;
    bp_buffer_init(&report->metadata, metadata_max_bytes);
    bp_buffer_init(&report->manifest, manifest_max_bytes);
    for (size_t i = 0; i < FACT_COUNT; i++) {
        bp_buffer_init(&report->facts[i], metadata_max_bytes);
    }
    report->path = strdup(path);
    bugpack_status status = report->path == NULL
                                ? bp_fail_memory(error, "read a report")
                                : bp_archive_reader_open(fd, path, &report->archive, error);
    status = status == BUGPACK_OK ? read_metadata(report, error) : status;
    status = status == BUGPACK_OK ? read_manifest(report, error) : status;
    if (status != BUGPACK_OK) {
        bp_report_file_close(report);
        return status;
    }
    report->fd = fd;
    *ret_report = report;
    return BUGPACK_OK;
}

bugpack_status bp_report_file_open(const char *path, bp_report_file **ret_report,
                                   bugpack_error *error) {
    int fd;
    bugpack_status status = bp_file_open_regular(AT_FDCWD, path, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_report_file_take(fd, path, ret_report, error);
    if (status != BUGPACK_OK) {
        (void)close(fd);
    }
    return status;
}

void bp_report_file_close(bp_report_file *report) {
    if (report == NULL) {
        return;
    }
    bp_archive_reader_free(report->archive);
    for (size_t i = 0; i < FACT_COUNT; i++) {
        bp_buffer_release(&report->facts[i]);
    }
    bp_buffer_release(&report->metadata);
    bp_buffer_release(&report->manifest);
    if (report->fd >= 0) {
        (void)close(report->fd);
    }
    free(report->path);
    free(report);
}

const char *bp_report_file_path(const bp_report_file *report) {
    return report->path;
}

bp_report_facts bp_report_file_facts(const bp_report_file *report) {
    return (bp_report_facts){.report_id = bp_buffer_text(&report->facts[FACT_ID]),
                             .app_name = bp_buffer_text(&report->facts[FACT_APP]),
                             .report_type = bp_buffer_text(&report->facts[FACT_TYPE]),
                             .timestamp = bp_buffer_text(&report->facts[FACT_TIME])};
}

const bp_buffer *bp_report_file_metadata(const bp_report_file *report) {
    return &report->metadata;
}

const bp_buffer *bp_report_file_manifest(const bp_report_file *report) {
    return &report->manifest;
}

const bp_archive_reader *bp_report_file_archive(const bp_report_file *report) {
    return report->archive;
}

bool bp_report_file_has(const bp_report_file *report, const char *name) {
    size_t index;
    return bp_archive_reader_find(report->archive, name, &index);
}

bugpack_status bp_report_file_line(const bp_report_file *report, const char *name,
                                   bp_report_line *ret_line, bugpack_error *error) {
    return bp_manifest_find(&report->manifest, name, ret_line, error);
}
