#include <string.h>

#include "redact/redactor_private.h"

/* The tag, cut or filled up to the length of what it replaces. */
static void overwrite(bp_redactor *redactor, const bp_hit *hit, const unsigned char *text,
                      unsigned char *to, size_t byte_count) {
    char tag[BP_TAG_BYTES];
    const char *rule = bp_rule_set_rule(redactor->set, hit->rule)->id;
    size_t length = bp_tag_print(&redactor->key, rule, text + hit->from, hit->to - hit->from, tag);
    memset(to, 'x', byte_count);
    memcpy(to, tag, length < byte_count ? length : byte_count);
}

bugpack_status bp_redactor_overwrite(bp_redactor *redactor, unsigned char *bytes, size_t byte_count,
                                     size_t count_from, size_t count_to) {
    bp_view *view = &redactor->view;
    bp_scan *scan = &redactor->scan;
    bool has_view = memmem(bytes, byte_count, "\\u00", 4) != NULL;
    bugpack_status status =
        has_view ? bp_view_text(view, (const char *)bytes, byte_count, SIZE_MAX) : BUGPACK_OK;
    bp_scan_reset(scan);
    if (status == BUGPACK_OK) {
        status = bp_scan_record(scan, has_view ? view->text : bytes,
                                has_view ? view->size : byte_count, false, 0);
    }
    if (status == BUGPACK_OK) {
        status = bp_nested_search(scan, has_view ? view->text : bytes,
                                  has_view ? view->size : byte_count, false);
    }
    for (size_t i = scan->hit_count; status == BUGPACK_OK && i-- > 0;) {
        const bp_hit *hit = &scan->hits[i];
        size_t from = has_view ? bp_view_raw(view, hit->from) : hit->from;
        size_t to = has_view ? bp_view_raw(view, hit->to) : hit->to;
        redactor->counts[hit->rule] += from >= count_from && from < count_to;
        overwrite(redactor, hit, has_view ? view->text : bytes, bytes + from, to - from);
    }
    bp_scan_reset(scan);
    return status;
}
