/*
 * Charts of a page, as SVG in it.
 */
#ifndef BP_INSPECT_HTML_CHARTS_H
#define BP_INSPECT_HTML_CHARTS_H

#include "inspect/html_text.h"
#include "inspect/summary.h"

/* CPU and memory over the history, each a chart with the trigger marked. Nothing without samples.
 */
void bp_html_history(bp_html *html, const bp_summary *summary);

/* A row of bars: of each of `count` parts of the time from `from_ns` to `to_ns`. */
void bp_html_bars(bp_html *html, const char *title, const uint64_t *values, size_t count);

#endif
