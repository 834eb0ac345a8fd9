/*
 * Standard output as a screen of text from a report.
 */
#ifndef BP_CLI_SCREEN_H
#define BP_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/export.h>

typedef enum bp_screen_style {
    BP_SCREEN_PLAIN = 0,
    BP_SCREEN_BOLD = 1,
    BP_SCREEN_DIM = 2,
    BP_SCREEN_RED = 31,
    BP_SCREEN_YELLOW = 33
} bp_screen_style;

/* Finds out how wide the screen is and what it can show: before anything is printed. */
void bp_screen_look(void);
bool bp_screen_has_utf8(void);
/* How many columns a line has behind those that are used; SIZE_MAX if it is never cut. */
size_t bp_screen_columns_left(size_t used);

/*
 * Prints a line, and cuts it at the end of the screen. What is from a report is escaped; a
 * character beyond U+1100 is counted as two columns.
 */
void bp_screen_print(int style, const char *format, ...) BUGPACK_PRINTF(2, 3);

/* The same, on as many lines as it takes: all but the first begin with so many blanks. */
void bp_screen_wrap(int style, size_t indent, const char *format, ...) BUGPACK_PRINTF(3, 4);

/* A title, after an empty line. */
void bp_screen_heading(const char *title);

#endif
