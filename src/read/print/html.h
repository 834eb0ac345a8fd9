/*
 * A report as one page of HTML: no script, nothing loaded from elsewhere, everything from the
 * report escaped.
 */
#ifndef BP_PRINT_HTML_H
#define BP_PRINT_HTML_H

#include "base/sink.h"
#include "facts/facts.h"

/*
 * Writes the page of a report. Reads entries again, as far as the `left_bytes` of the facts allow.
 * The newest 2,000 log records and pictures of up to 16 MiB are on it. What cannot be read is named
 * on the page. NO_MEMORY, or what the sink returns.
 */
bugpack_status bp_html_write(bp_facts *facts, bp_sink *sink, void *context, bugpack_error *error);

#endif
