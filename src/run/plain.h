/*
 * What a person reads in a line that was meant for a terminal.
 */
#ifndef BP_RUN_PLAIN_H
#define BP_RUN_PLAIN_H

#include <stddef.h>

/*
 * Copies a line without its escape sequences (ECMA-48: CSI, OSC and other strings, and those of a
 * few bytes), for a pattern to look at; the log keeps them. Other control characters, a NUL among
 * them, become a space. `out` has room for `line_bytes` and a NUL, and may be the line itself when
 * that has the room. Returns the length.
 */
size_t bp_run_plain(const char *line, size_t line_bytes, char *out);

#endif
