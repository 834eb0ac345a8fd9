/*
 * What a redactor is, for the files that it consists of.
 */
#ifndef BP_REDACT_REDACTOR_PRIVATE_H
#define BP_REDACT_REDACTOR_PRIVATE_H

#include "redact/base64.h"
#include "redact/nested.h"
#include "redact/redactor.h"
#include "redact/scan.h"
#include "redact/tag.h"
#include "redact/view.h"

enum { BP_REDACT_RECORD_MAX = 256 * 1024 /* a longer one is searched in pieces */ };

/* Where an entry is. */
struct bp_redact_entry {
    bp_redact_form form;
    bool is_begun;      /* its first bytes were looked at */
    bool is_in_string;  /* the buffer begins inside of a JSON string that was cut */
    bool is_swallowing; /* the buffer begins with the rest of a secret */
    uint64_t stream;    /* of a text: whose it is; 0 for one that is alone */
    bp_buffer held;
    bp_sink *pass_on;
    void *context;
};

struct bp_redactor {
    const bp_rule_set *set;
    bp_tag_key key;
    bp_scan scan;
    bp_view view;
    bp_base64 *base64; /* NULL: what is in base64 is not searched */
    struct bp_redact_entry entry;
    bp_names names; /* of JSON: what the buffer begins below */
    uint64_t *counts;
    uint64_t marks[BP_KEYWORD_MARK_WORDS(BP_REDACT_RECORD_MAX)]; /* of the block being searched */
};

/* Whether the first bytes of a text say that it is none. */
bool bp_redact_form_is_binary(bp_redact_form form, const void *bytes, size_t byte_count);

#endif
