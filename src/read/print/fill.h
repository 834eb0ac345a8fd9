/*
 * Lines of text with facts in them, for what renders the facts of a report. A pattern is text with
 * fields, {path:format|default}:
 *
 *   {app|(no name)}            the text at a path of the object
 *   {name:-16s}                in 16 columns, to the left
 *   {cpu_percent:6.1f}         a number; u: an integer
 *   {uptime_secs:.0f s|?}      with what follows it where it is known, and "?" where it is not
 *   {rss_kb:k} {bytes:b}       KiB and bytes in the unit that fits: "1.5 MiB"
 *   {rss_kb:.1m} {window_ms:.2t} {cpu_ns:.2n} {bytes:K}    in MiB, in seconds, in seconds, in KiB
 *   {cpu_percent:.1c}          at most 100
 *   {share:.0h}                in percent
 *   thread{count:p}            "s", except for one
 *   {is_born:!} {count:+}      nothing, and known only where it is true, or there; or above 0
 *   {load:*} {title:~}         nothing, and known only where it has elements or members; is not
 * there
 *
 * {[, {rss_kb:k} resident]} is left out where a field in it is not known.
 */
#ifndef BP_PRINT_FILL_H
#define BP_PRINT_FILL_H

#include <stdbool.h>
#include <stddef.h>

#include "json/tree.h"

/* Takes a piece of a line: of the pattern, or of the report, which may be hostile. */
typedef void bp_fill_taker(void *context, const char *text, size_t byte_count, bool is_fact);

/* Passes on the pieces of a pattern. False, and nothing, where a field outside of groups is not
 * known and has no default. */
bool bp_fill(const char *pattern, const bp_json_tree *facts, bp_fill_taker *take, void *context);

/* "1.5 MiB" */
enum { BP_FILL_BYTES = 16 };
const char *bp_fill_bytes(double bytes, char out[BP_FILL_BYTES]);

#endif
