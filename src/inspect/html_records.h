/*
 * The sections of a page that are made of many records, and what all sections share.
 */
#ifndef BP_INSPECT_HTML_RECORDS_H
#define BP_INSPECT_HTML_RECORDS_H

#include "inspect/html_text.h"
#include "inspect/summary.h"

/* A page being written. */
typedef struct bp_html_page {
    bp_html html;
    bp_summary *summary;
    bugpack_status status; /* NO_MEMORY */
} bp_html_page;

void bp_html_begin_section(bp_html_page *page, const char *id, const char *title);
void bp_html_end_section(bp_html_page *page);

/* Whether an entry is there and may be read; its size then counts as read. One that is too large is
 * named on the page. */
bool bp_html_may_read(bp_html_page *page, const char *entry, uint64_t max_bytes);

/* Reads an entry into a sink, up to where it is damaged. */
void bp_html_stream(bp_html_page *page, const char *entry, bp_sink *sink, void *context);

void bp_html_log(bp_html_page *page);
void bp_html_traffic(bp_html_page *page);
void bp_html_machine(bp_html_page *page);
void bp_html_pictures(bp_html_page *page);

#endif
