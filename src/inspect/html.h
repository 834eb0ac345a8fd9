/*
 * A report as one page of HTML: no script, nothing loaded from elsewhere, everything from the
 * report escaped.
 */
#ifndef BP_INSPECT_HTML_H
#define BP_INSPECT_HTML_H

#include "base/sink.h"
#include "inspect/summary.h"

/*
 * Writes the page of a summary that was read and judged. Reads entries again, as far as the
 * summary's `left_bytes` allow. The newest 2,000 log records and pictures of up to 16 MiB are on
 * it. What cannot be read is named on the page. NO_MEMORY, or what the sink returns.
 */
bugpack_status bp_html_write(bp_summary *summary, bp_sink *sink, void *context,
                             bugpack_error *error);

#endif
