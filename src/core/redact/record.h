/*
 * What a redactor is, and the search of one record. What the rules find has its place in the view
 * (redact/view.h); a span has it in the record.
 */
#ifndef BP_REDACT_RECORD_H
#define BP_REDACT_RECORD_H

#include "redact/redactor.h"
#include "redact/scan.h"
#include "redact/tag.h"

enum {
    BP_REDACT_RECORD_MAX = 256 * 1024, /* a longer one is searched in pieces */
    BP_REDACT_LINES = 8                /* that are followed over several records at a time */
};

/* A secret, in the bytes of a record. */
typedef struct bp_redact_span {
    size_t from, to;
    size_t match_from; /* what it was found by begins here: the two belong together */
    uint64_t hash;     /* of the secret */
    uint16_t rule;
    bool is_bare; /* a JSON value without quotes */
} bp_redact_span;

/* The end of a line whose next part is a record of its own, or lines that a match may go on from.
 */
struct bp_redact_line {
    uint64_t stream; /* of the thread and channel; 0: none */
    uint64_t age;
    bp_buffer text;
    bool is_swallowed; /* a secret without an end has begun: the rest of the line is replaced */
    uint16_t rule;
    unsigned lines_left; /* that a match in whole lines may go on in */
    bool is_joined;      /* the last of these lines begins as one that goes on */
};

/* Where an entry is. */
struct bp_redact_entry {
    bp_redact_form form;
    bool is_begun;      /* its first bytes were looked at */
    bool is_in_string;  /* the buffer begins inside of a JSON string that was cut */
    bool is_swallowing; /* the buffer begins with the rest of a secret */
    uint64_t stream;    /* whose record the last one was; 0 for one that is alone */
    size_t aim;         /* the buffer is searched when it holds so many bytes */
    bp_buffer held;
    bp_sink *pass_on;
    void *context;
};

struct bp_redactor {
    const bp_rule_set *set;
    bp_tag_key key;
    bp_scan scan;
    bp_view view;
    struct bp_redact_entry entry;
    bp_names names;        /* of JSON: what the buffer begins below */
    bp_redact_span *spans; /* of the record being searched: in its order, without overlap */
    size_t span_count, span_capacity;
    struct bp_redact_line lines[BP_REDACT_LINES];
    uint64_t line_age;
    unsigned near_count; /* records that are searched, as a match may go on in them */
    uint64_t *counts;
    uint64_t marks[BP_KEYWORD_MARK_WORDS(BP_REDACT_RECORD_MAX)]; /* of the block being searched */
};

/* A text that is searched at once: a line, a message, or the part of a document between two places
 * where it may be divided. */
typedef struct bp_redact_record {
    const char *raw;
    size_t size;
    bool is_json;
    bool is_piece;     /* more of it follows, and what depends on that may wait for it */
    bool is_in_string; /* JSON: whether it begins inside of a string, and
                        * afterwards whether it ends there */
    unsigned part;     /* of its line: BUGPACK_PART_ flags and BP_PART_WAS_CUT */
    uint64_t stream;   /* of the thread and channel, or 0 */
    /* The answer. */
    size_t end;        /* of what was searched */
    bool is_swallowed; /* a secret goes on behind `end`: so does its line or string */
    /* While it is searched. */
    struct bp_redact_line *line; /* the parts before this one and of this one; or NULL */
    bool follows;                /* the lines before it are in `line` */
    bp_code_mode mode;           /* in which it was seen last */
    bool has_codes;              /* a text: of any kind */
    size_t undecided_from;       /* where a match begins that depends on what follows */
    size_t safe_end;             /* the last place to divide it at */
    size_t earlier_from;         /* in the view: from where on the next part of the line
                                    needs it */
} bp_redact_record;

/* Fills `spans` and the answer. The redactor's `names` become those at the end. NO_MEMORY. */
bugpack_status bp_redact_record_search(bp_redactor *redactor, bp_redact_record *record);

/*
 * Values whose name is not beside them: in the arrays and objects below a key of JSON, as in
 * {"password":["a",{"x":"b"}]}. Each is replaced if it would be as the only value of that name.
 */

/* A bp_view_value of JSON; `scan` gets its hit. */
bool bp_nested_value(void *scan, const bp_view *view, size_t from, size_t to, bool is_bare);

/* Adds the hits in JSON that is in a text, in one line of it or in one string of JSON, with any
 * number of backslashes. NO_MEMORY. */
bugpack_status bp_nested_search(bp_scan *scan, const bp_view *view);

/* Searches the frame, or header, that an entry of frames holds up to its `aim`; less where the
 * entry ends. Each frame is searched by itself. */
enum { BP_REDACT_FRAMES_BEGIN = 24 }; /* the header of the file: the first aim */
bugpack_status bp_redact_frames(bp_redactor *redactor);

#endif
