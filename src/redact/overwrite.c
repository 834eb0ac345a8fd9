#include <string.h>

#include "redact/redactor_private.h"

/* Whether a text is what a secret was overwritten with, which may have been cut. */
static bool is_filler(const unsigned char *text, size_t byte_count) {
    size_t length = sizeof BP_TAG_PREFIX - 1;
    return memcmp(text, BP_TAG_PREFIX, byte_count < length ? byte_count : length) == 0;
}

/* The tag, cut or filled up to the length of what it replaces. */
static void overwrite(const bp_redactor *redactor, const bp_redact_span *span,
                      unsigned char *bytes) {
    char tag[BP_TAG_BYTES];
    const char *rule = bp_rule_set_rule(redactor->set, span->rule)->id;
    size_t length = bp_tag_print(&redactor->key, rule, span->hash, tag);
    size_t byte_count = span->to - span->from;
    memset(bytes + span->from, 'x', byte_count);
    memcpy(bytes + span->from, tag, length < byte_count ? length : byte_count);
}

bugpack_status bp_redactor_overwrite(bp_redactor *redactor, unsigned char *bytes, size_t byte_count,
                                     size_t count_from, size_t count_to) {
    bp_scan *scan = &redactor->scan;
    bp_redact_record record = {.raw = (const char *)bytes, .size = byte_count};
    bp_scan_reset(scan);
    scan->is_of_traffic = true;
    bugpack_status status = bp_redact_record_search(redactor, &record);
    for (size_t i = 0; status == BUGPACK_OK && i < redactor->span_count; i++) {
        const bp_redact_span *span = &redactor->spans[i];
        if (!is_filler(bytes + span->from, span->to - span->from)) {
            redactor->counts[span->rule] += span->from >= count_from && span->from < count_to;
            overwrite(redactor, span, bytes);
        }
    }
    bp_scan_reset(scan);
    scan->is_of_traffic = false;
    return status;
}
