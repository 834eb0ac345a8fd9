#include "inspect/content.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "image/png_check.h"
#include "inspect/check_json.h"
#include "inspect/check_pcap.h"
#include "inspect/report_file.h"
#include "inspect/schema_files.h"

enum { schema_count_max = 64 };

typedef enum kind { KIND_ANY, KIND_JSON, KIND_LINES, KIND_PCAP, KIND_PNG } kind;

struct bp_content {
    bool has_schemas;
    bp_content_budget *budget;
    bp_json_schema *schemas[schema_count_max]; /* those that were needed, by file */
    kind kind;
    bool is_open;
    bp_json_stream json;
    bp_pcap_check pcap;
    bp_png_check *png;
};

bp_content *bp_content_new(bool has_schemas, bp_content_budget *budget) {
    bp_content *content = calloc(1, sizeof *content);
    if (content != NULL) {
        content->has_schemas = has_schemas;
        content->budget = budget;
    }
    return content;
}

static void take_off(uint64_t *budget, uint64_t used) {
    *budget -= used < *budget ? used : *budget;
}

static void close_entry(bp_content *content) {
    if (content->is_open && (content->kind == KIND_JSON || content->kind == KIND_LINES)) {
        take_off(&content->budget->json_steps, bp_json_stream_steps(&content->json));
        bp_json_stream_release(&content->json);
    }
    bp_png_check_free(content->png);
    content->png = NULL;
    content->is_open = false;
}

void bp_content_free(bp_content *content) {
    if (content == NULL) {
        return;
    }
    close_entry(content);
    for (size_t i = 0; i < schema_count_max; i++) {
        bp_json_schema_free(content->schemas[i]);
    }
    free(content);
}

/* The schema of an entry, or NULL. Its title is the entry's name, or says that it is for a line. */
static bugpack_status find_schema(bp_content *content, const char *name, bool *ret_is_lines,
                                  bp_json_schema **ret_schema, bugpack_error *error) {
    static const char of_line[] = "One line of ";
    size_t place = 0;
    for (; bp_schema_files[place].title != NULL; place++) {
        const char *title = bp_schema_files[place].title;
        *ret_is_lines = strncmp(title, of_line, sizeof of_line - 1) == 0;
        if (strcmp(title + (*ret_is_lines ? sizeof of_line - 1 : 0), name) == 0) {
            break;
        }
    }
    const bp_schema_file *file = &bp_schema_files[place];
    *ret_schema = NULL;
    if (file->title == NULL || place >= schema_count_max) {
        return BUGPACK_OK;
    }
    if (content->schemas[place] == NULL) {
        bugpack_status status =
            bp_json_schema_read(file->text, file->byte_count, &content->schemas[place], error);
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    *ret_schema = content->schemas[place];
    return BUGPACK_OK;
}

/* Names of other entries are free: an attached file called x.json may be anything. */
static kind kind_of(const char *name, bool has_schema, bool is_lines) {
    if (strcmp(name, "traffic.pcap") == 0) {
        return KIND_PCAP;
    }
    if (strcmp(name, "screenshot.png") == 0 || strcmp(name, "screenshot-region.png") == 0) {
        return KIND_PNG;
    }
    if (has_schema) {
        return is_lines ? KIND_LINES : KIND_JSON;
    }
    return strcmp(name, "session.json") == 0 || strcmp(name, "channel-state.json") == 0 ? KIND_JSON
                                                                                        : KIND_ANY;
}

bugpack_status bp_content_begin(bp_content *content, const char *name, bugpack_error *error) {
    bp_json_schema *schema = NULL;
    bool is_lines = false;
    close_entry(content);
    name += bp_report_folder_bytes(name); /* each of several processes has the same entries */
    bugpack_status status = find_schema(content, name, &is_lines, &schema, error);
    content->kind = kind_of(name, schema != NULL, is_lines);
    if (status == BUGPACK_OK && content->kind == KIND_PNG) {
        content->png = bp_png_check_new(content->budget->picture_bytes);
        status = content->png != NULL ? BUGPACK_OK : bp_fail_memory(error, "check a PNG");
    } else if (status == BUGPACK_OK && content->kind == KIND_PCAP) {
        content->pcap = (bp_pcap_check){.header_bytes = 0};
    } else if (content->budget->json_steps == 0) {
        content->kind = KIND_ANY; /* the entry before it was too much, which was said */
    } else if (status == BUGPACK_OK && content->kind != KIND_ANY) {
        content->is_open = true;
        status =
            bp_json_stream_begin(&content->json, content->has_schemas ? schema : NULL,
                                 content->kind == KIND_LINES, content->budget->json_steps, error);
    }
    return status;
}

/* With `bytes` NULL the entry ends. */
static bugpack_status write_pcap(bp_content *content, const void *bytes, size_t byte_count,
                                 bugpack_error *error) {
    const char *wrong = bytes != NULL ? bp_pcap_check_write(&content->pcap, bytes, byte_count)
                                      : bp_pcap_check_end(&content->pcap);
    return wrong == NULL ? BUGPACK_OK
                         : bp_fail(error, BUGPACK_ERR_CORRUPT, "record %llu: %s",
                                   (unsigned long long)content->pcap.record_count, wrong);
}

bugpack_status bp_content_write(bp_content *content, const void *bytes, size_t byte_count,
                                bugpack_error *error) {
    switch (content->kind) {
    case KIND_JSON:
    case KIND_LINES:
        return bp_json_parts_write(&content->json.parts, bytes, byte_count, error);
    case KIND_PCAP:
        return write_pcap(content, bytes, byte_count, error);
    case KIND_PNG:
        return bp_png_check_write(content->png, bytes, byte_count, error);
    case KIND_ANY:
        break;
    }
    return BUGPACK_OK;
}

bugpack_status bp_content_end(bp_content *content, bugpack_error *error) {
    uint64_t picture_bytes = 0;
    bugpack_status status = BUGPACK_OK;
    if (content->kind == KIND_JSON || content->kind == KIND_LINES) {
        status = bp_json_parts_end(&content->json.parts, error);
    } else if (content->kind == KIND_PCAP) {
        status = write_pcap(content, NULL, 0, error);
    } else if (content->kind == KIND_PNG) {
        status = bp_png_check_end(content->png, &picture_bytes, error);
        take_off(&content->budget->picture_bytes, picture_bytes);
    }
    close_entry(content);
    return status;
}
