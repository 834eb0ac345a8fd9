#include "inspect/content.h"

#include <stdlib.h>

#include "base/status.h"
#include "image/png_check.h"
#include "inspect/check_pcap.h"
#include "model/entry.h"
#include "json/parts.h"

/* Keys that a processor's cache does not hold cost more to compare. */
enum { steps_per_token = 6, steps_per_far_key = 32, key_count_cached = 4096 };

struct bp_content {
    bp_content_budget *budget;
    bp_entry_form form;
    bool is_open;
    bp_json_parts json;
    bp_pcap_check pcap;
    bp_png_check *png;
};

bp_content *bp_content_new(bp_content_budget *budget) {
    bp_content *content = calloc(1, sizeof *content);
    if (content != NULL) {
        content->budget = budget;
    }
    return content;
}

static void take_off(uint64_t *budget, uint64_t used) {
    *budget -= used < *budget ? used : *budget;
}

static bool is_json(const bp_content *content) {
    return content->form == BP_ENTRY_JSON || content->form == BP_ENTRY_JSON_LINES;
}

static void close_entry(bp_content *content) {
    if (content->is_open && is_json(content)) {
        bp_json_parts_release(&content->json);
    }
    bp_png_check_free(content->png);
    content->png = NULL;
    content->is_open = false;
}

void bp_content_free(bp_content *content) {
    if (content != NULL) {
        close_entry(content);
        free(content);
    }
}

/* A bp_json_token_taker. */
static bugpack_status count_token(void *context, const bp_json_token *token, bugpack_error *error) {
    bp_content *content = context;
    bool is_far = content->json.scanner.keys.count > key_count_cached;
    (void)token;
    take_off(&content->budget->json_steps, steps_per_token + (is_far ? steps_per_far_key : 0));
    return content->budget->json_steps > 0
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_LIMIT, "it has more values than are checked");
}

bugpack_status bp_content_begin(bp_content *content, const char *name, bugpack_error *error) {
    close_entry(content);
    /* Names of other entries are free: an attached file called x.json may be anything. */
    bp_entry_id id = bp_entry_find(name);
    content->form = id < BP_ENTRY_COUNT ? bp_entries[id].form : BP_ENTRY_ANY;
    if (is_json(content) && content->budget->json_steps == 0) {
        content->form = BP_ENTRY_ANY; /* the entry before it was too much, which was said */
    }
    if (content->form == BP_ENTRY_PNG) {
        content->png = bp_png_check_new(content->budget->picture_bytes);
        return content->png != NULL ? BUGPACK_OK : bp_fail_memory(error, "check a PNG");
    }
    if (content->form == BP_ENTRY_PCAP) {
        content->pcap = (bp_pcap_check){.header_bytes = 0};
    }
    if (is_json(content)) {
        content->is_open = true;
        bp_json_parts_init(&content->json, count_token, content);
        content->json.scanner.is_lines = content->form == BP_ENTRY_JSON_LINES;
    }
    return BUGPACK_OK;
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
    switch (content->form) {
    case BP_ENTRY_JSON:
    case BP_ENTRY_JSON_LINES:
        return bp_json_parts_write(&content->json, bytes, byte_count, error);
    case BP_ENTRY_PCAP:
        return write_pcap(content, bytes, byte_count, error);
    case BP_ENTRY_PNG:
        return bp_png_check_write(content->png, bytes, byte_count, error);
    case BP_ENTRY_ANY:
    case BP_ENTRY_TEXT:
        break;
    }
    return BUGPACK_OK;
}

bugpack_status bp_content_end(bp_content *content, bugpack_error *error) {
    uint64_t picture_bytes = 0;
    bugpack_status status = BUGPACK_OK;
    if (is_json(content)) {
        status = bp_json_parts_end(&content->json, error);
    } else if (content->form == BP_ENTRY_PCAP) {
        status = write_pcap(content, NULL, 0, error);
    } else if (content->form == BP_ENTRY_PNG) {
        status = bp_png_check_end(content->png, &picture_bytes, error);
        take_off(&content->budget->picture_bytes, picture_bytes);
    }
    close_entry(content);
    return status;
}
