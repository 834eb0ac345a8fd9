/*
 * A cursor over a text that may be cut off anywhere.
 */
#ifndef BP_PLATFORM_LINUX_PROC_SCAN_H
#define BP_PLATFORM_LINUX_PROC_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is left of a text. Borrowed. */
typedef struct bp_proc_scan {
    const char *next;
    const char *end;
} bp_proc_scan;

/* Steps over spaces and tabs. */
void bp_proc_skip_blanks(bp_proc_scan *scan);

/* Takes one line, without its newline. False at the end of the text. */
bool bp_proc_take_line(bp_proc_scan *scan, bp_proc_scan *ret_line);

/* Takes the bytes up to the next space, tab, newline or the end. False when there are none. */
bool bp_proc_take_word(bp_proc_scan *scan, bp_proc_scan *ret_word);

/* Takes one given byte, or nothing. */
bool bp_proc_take_byte(bp_proc_scan *scan, char byte);

/* Takes a given text, or nothing. */
bool bp_proc_take_text(bp_proc_scan *scan, const char *text);

/* Whether all that is left is this text. */
bool bp_proc_is(bp_proc_scan scan, const char *text);

/* Takes an unsigned number of base 10 or 16 that fits in 64 bits, or nothing. */
bool bp_proc_take_number(bp_proc_scan *scan, unsigned base, uint64_t *ret_value);

#endif
