/*
 * Writes a page of HTML whose text comes from outside: markup is a literal of ours, everything else
 * is escaped on its way in; and its charts.
 */
#ifndef BP_PRINT_HTML_TEXT_H
#define BP_PRINT_HTML_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <nettle/base64.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

#include "base/buffer.h"
#include "base/sink.h"
#include "facts/facts.h"

/* A page being written; the first failure sticks. */
typedef struct bp_html {
    bp_sink *sink;
    void *context;
    bp_buffer out;
    bugpack_status status;
} bp_html;

void bp_html_init(bp_html *html, bp_sink *sink, void *context);

/* Passes on what is left and frees it. The first failure. */
bugpack_status bp_html_finish(bp_html *html);

/*
 * Markup in `format`, with numbers, and texts that are escaped: %s, %d, % PRIu64,
 * %.Nf and %% alone.
 * What a browser would obey, or cannot show, becomes text: a control character \x1b, one that
 * changes the direction of text \u202e, a byte that is part of no character \xff.
 */
void bp_html_print(bp_html *html, const char *format, ...) BUGPACK_PRINTF(2, 3);

/* Markup by a pattern of print/fill.h, with facts that are escaped; nothing where a fact that it
 * needs is not known. */
void bp_html_fill(bp_html *html, const char *pattern, const bp_json_tree *facts);

/* The same of any bytes; a bp_sink whose context is the page. */
bugpack_status bp_html_text(void *html, const void *bytes, size_t byte_count);

/* A picture as base64, for an address of data; its bp_sink, and its end. */
typedef struct bp_html_picture {
    bp_html *html;
    struct base64_encode_ctx base64;
} bp_html_picture;
bugpack_status bp_html_picture_write(void *picture, const void *bytes, size_t byte_count);
void bp_html_picture_end(bp_html_picture *picture);

/* The begin of a table with these columns, "Thread|CPU". */
void bp_html_begin_table(bp_html *html, const char *columns);

/* A finding in words, in which threads lead to their stacks. */
void bp_html_sentence(bp_html *html, const bp_sentence *sentence);

/* CPU and memory over the history, each a chart with the trigger marked. Nothing without samples.
 */
void bp_html_history(bp_html *html, const bp_facts *facts);

/* Boxes of threads and processes, each above what it waits for, with arrows; the causes are marked.
 */
void bp_html_waits(bp_html *html, const bp_waits *waits);

/* A profile: what the facts say of it, a flame graph, from the threads at the top down, and the
 * functions in which most samples were taken. */
void bp_html_profile(bp_html *html, const bp_json_tree *document, const bp_call_tree *profile);

/* A row of bars: of each of `count` parts of the time from `from_ns` to `to_ns`. */
void bp_html_bars(bp_html *html, const char *title, const uint64_t *values, size_t count);

#endif
