/*
 * Numbers of a report with the unit that their key has.
 */
#ifndef BP_CLI_DIFF_UNIT_H
#define BP_CLI_DIFF_UNIT_H

#include <stdbool.h>
#include <stdint.h>

enum { BP_CLI_AMOUNT_BYTES = 64 };

/*
 * "4.3 MiB" for 4408 of "process.rss_kb", "1.500 s" for 1500 of "uptime_ms"; a number by itself
 * where the path of its member names no unit, and with `is_raw`. The last `decimals` (at most 9)
 * digits of the value are behind its point. Returns `out`.
 */
const char *bp_cli_format_amount(const char *path, uint64_t value, unsigned decimals, bool is_raw,
                                 char out[BP_CLI_AMOUNT_BYTES]);

/* Likewise, with its sign; of two percentages in points. */
void bp_cli_format_delta(const char *path, int64_t delta, unsigned decimals, bool is_raw,
                         char out[BP_CLI_AMOUNT_BYTES]);

#endif
