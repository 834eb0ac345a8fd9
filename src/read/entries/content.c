#include "entries/content.h"

#include "base/status.h"
#include "model/entry.h"

/* Keys that a processor's cache does not hold cost more to compare. */
enum { steps_per_token = 6, steps_per_far_key = 32, key_count_cached = 4096 };

void bp_content_release(bp_content *content) {
    if (content->is_json) {
        bp_json_parts_release(&content->json);
    }
    content->is_json = false;
}

static bugpack_status count_token(void *context, const bp_json_token *token, bugpack_error *error) {
    bp_content *content = context;
    bool is_far = content->json.scanner.keys.count > key_count_cached;
    uint64_t steps = steps_per_token + (is_far ? steps_per_far_key : 0);
    (void)token;
    content->steps_left -= steps < content->steps_left ? steps : content->steps_left;
    return content->steps_left > 0
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_LIMIT, "it has more values than are checked");
}

void bp_content_begin(bp_content *content, const char *name) {
    bp_content_release(content);
    /* Names of other entries are free: an attached file called x.json may be anything. */
    bp_entry_id id = bp_entry_find(name);
    bp_entry_form form = id < BP_ENTRY_COUNT ? bp_entries[id].form : BP_ENTRY_ANY;
    content->is_json =
        (form == BP_ENTRY_JSON || form == BP_ENTRY_JSON_LINES) &&
        content->steps_left > 0; /* else the entry before was too much: it was said */
    if (content->is_json) {
        bp_json_parts_init(&content->json, count_token, content);
        content->json.scanner.is_lines = form == BP_ENTRY_JSON_LINES;
    }
}

bugpack_status bp_content_write(bp_content *content, const void *bytes, size_t byte_count,
                                bugpack_error *error) {
    return content->is_json ? bp_json_parts_write(&content->json, bytes, byte_count, error)
                            : BUGPACK_OK;
}

bugpack_status bp_content_end(bp_content *content, bugpack_error *error) {
    bugpack_status status =
        content->is_json ? bp_json_parts_end(&content->json, error) : BUGPACK_OK;
    bp_content_release(content);
    return status;
}
