/*
 * A libFuzzer target for the comparison of two JSON documents. The first byte of an input chooses
 * the rule; then one document ends at the first NUL, and the other is the rest. A document must not
 * differ from itself, the rows must be the same both ways, and what they hold must be JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "inspect/json_diff.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count);

static const bp_json_diff_rule rules[] = {{"session.json", "", "", false},
                                          {"process.json", "", "pid address", false},
                                          {"runtime-metrics.json", "threads", "tid", true},
                                          {"metadata.json", "app tags exit", "", false}};
enum { rule_count = sizeof rules / sizeof rules[0], text_max_bytes = 1 << 24 };

static void require(bool is_so) {
    if (!is_so) {
        abort();
    }
}

static bool is_json(const char *text) {
    bp_buffer out;
    bp_buffer_init(&out, text_max_bytes);
    bugpack_status status = bp_json_reformat(text, strlen(text), &out, NULL);
    bp_buffer_release(&out);
    return status == BUGPACK_OK;
}

/* What differs, which is to be released. False where a document is none. */
static bool compare(const bp_json_diff_rule *rule, const bp_buffer *before, const bp_buffer *after,
                    bp_json_differences *list) {
    bp_json_differences_init(list);
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_json_diff(before, after, rule, list, &error);
    require(status == BUGPACK_OK || (status == BUGPACK_ERR_CORRUPT && error.message[0] != '\0'));
    const char *texts = bp_buffer_text(&list->texts);
    for (size_t i = 0; i < list->count; i++) {
        const bp_json_difference *row = &list->rows[i];
        require(row->has_before || row->has_after);
        require(strlen(texts + row->path) < text_max_bytes);
        require(!row->has_before || is_json(texts + row->before));
        require(!row->has_after || is_json(texts + row->after));
    }
    return status == BUGPACK_OK;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count) {
    if (byte_count < 2) {
        return 0;
    }
    const bp_json_diff_rule *rule = &rules[data[0] % rule_count];
    const unsigned char *end = data + byte_count;
    const unsigned char *first_end = memchr(data + 1, '\0', byte_count - 1);
    first_end = first_end != NULL ? first_end : end;
    bp_buffer texts[2];
    bp_json_differences there, back, same;
    bp_buffer_init(&texts[0], text_max_bytes);
    bp_buffer_init(&texts[1], text_max_bytes);
    (void)bp_buffer_append(&texts[0], data + 1, (size_t)(first_end - data - 1));
    if (first_end < end) {
        (void)bp_buffer_append(&texts[1], first_end + 1, (size_t)(end - first_end - 1));
    }
    bool is_sound = compare(rule, &texts[0], &texts[1], &there);
    require(compare(rule, &texts[1], &texts[0], &back) == is_sound);
    require(there.count == back.count || there.is_cut || back.is_cut);
    require(there.redacted_count == back.redacted_count || there.is_cut || back.is_cut);
    (void)compare(rule, &texts[0], &texts[0], &same);
    require(same.count == 0);
    bp_json_differences_release(&there);
    bp_json_differences_release(&back);
    bp_json_differences_release(&same);
    bp_buffer_release(&texts[0]);
    bp_buffer_release(&texts[1]);
    return 0;
}
