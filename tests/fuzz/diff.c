/*
 * A libFuzzer target for the comparison of two JSON documents. The first byte of an input chooses
 * the rule; then one document ends at the first NUL, and the other is the rest. A document must not
 * differ from itself, the rows must be the same both ways, and what they hold must be JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/json_diff.h"
#include "fuzz/require.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count);

static const bp_json_diff_rule rules[] = {{"session.json", "", ""},
                                          {"process.json", "", "pid address"},
                                          {"runtime-metrics.json", "threads", "tid"},
                                          {"metadata.json", "app tags exit", ""}};
enum { rule_count = sizeof rules / sizeof rules[0], text_max_bytes = 1 << 24 };

typedef struct fuzzed_text {
    const unsigned char *text;
    size_t byte_count;
} fuzzed_text;

/* In two pieces. */
static bugpack_status give_text(const void *context, bp_sink *sink, void *sink_context,
                                bugpack_error *error) {
    const fuzzed_text *fuzzed = context;
    size_t half_bytes = fuzzed->byte_count / 2;
    (void)error;
    bugpack_status status = sink(sink_context, fuzzed->text, half_bytes);
    return status == BUGPACK_OK
               ? sink(sink_context, fuzzed->text + half_bytes, fuzzed->byte_count - half_bytes)
               : status;
}

/* The root of a document; 0 for what is none. */
static uint32_t read_side(bp_json_side *side, fuzzed_text text, const bp_json_diff_rule *rule) {
    const bp_giver giver = {give_text, &text};
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint32_t root = 0;
    bp_json_side_init(side);
    bugpack_status status = bp_json_side_read(side, &giver, rule, &root, &error);
    require(status == BUGPACK_OK || (status == BUGPACK_ERR_CORRUPT && error.message[0] != '\0'));
    return root;
}

static void require_json(const bp_json_token *value) {
    bp_buffer out;
    bp_buffer_init(&out, text_max_bytes);
    require(value->byte_count == 0 ||
            bp_json_reformat(value->text, value->byte_count, &out, NULL) == BUGPACK_OK);
    bp_buffer_release(&out);
}

static bp_json_changes compare(const bp_json_side *before, uint32_t before_root,
                               const bp_json_side *after, uint32_t after_root) {
    bp_json_changes list = {.rows = NULL};
    require(bp_json_diff(before, before_root, after, after_root, "x", &list, NULL) == BUGPACK_OK);
    for (size_t i = 0; i < list.count; i++) {
        const bp_json_change *row = &list.rows[i];
        require(row->before.byte_count > 0 || row->after.byte_count > 0);
        require(strlen(row->path) < text_max_bytes);
        require_json(&row->before);
        require_json(&row->after);
    }
    return list;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count) {
    if (byte_count < 2) {
        return 0;
    }
    const bp_json_diff_rule *rule = &rules[data[0] % rule_count];
    const unsigned char *end = data + byte_count;
    const unsigned char *first_end = memchr(data + 1, '\0', byte_count - 1);
    first_end = first_end != NULL ? first_end : end;
    const unsigned char *second = first_end < end ? first_end + 1 : end;
    bp_json_side before, after;
    uint32_t one =
        read_side(&before, (fuzzed_text){data + 1, (size_t)(first_end - data - 1)}, rule);
    uint32_t other = read_side(&after, (fuzzed_text){second, (size_t)(end - second)}, rule);
    if (one != 0 && other != 0) {
        bp_json_changes there = compare(&before, one, &after, other);
        bp_json_changes back = compare(&after, other, &before, one);
        bp_json_changes same = compare(&before, one, &before, one);
        require(there.count == back.count || there.is_cut || back.is_cut);
        require(same.count == 0);
        bp_json_changes_release(&there);
        bp_json_changes_release(&back);
        bp_json_changes_release(&same);
    }
    bp_json_side_release(&before);
    bp_json_side_release(&after);
    return 0;
}
