/*
 * Bytes of a text that a person does not see: escape sequences of a terminal (ECMA-48), as bytes
 * or as programs print them (\x1b[0m, \033[0m, \e[0m, ^[[0m, #033[0m); characters that are written
 * in another way (\u003d, %3D, &quot;); and what a printer struck over (x, backspace, x).
 */
#ifndef BP_REDACT_CODES_H
#define BP_REDACT_CODES_H

#include <stdbool.h>
#include <stddef.h>

typedef enum bp_code_mode {
    BP_CODES_KEPT,   /* the text as it is */
    BP_CODES_SHOWN,  /* what a terminal would show; %3D and &quot; are as they are */
    BP_CODES_DECODED /* these are decoded too, and what a terminal keeps to itself, such as the
                      * address of a link, is between line ends */
} bp_code_mode;

enum { BP_CODE_NOTHING = -1 };

typedef struct bp_code {
    size_t from, to;
    int byte; /* that it stands for, or BP_CODE_NOTHING */
} bp_code;

/* The first one at or behind `at`. A sequence that does not end is none. */
bool bp_code_find(const unsigned char *text, size_t size, size_t at, bp_code_mode mode,
                  bp_code *ret_code);

/* Where the sequence at `at` ends, if one begins there; else `at`. */
size_t bp_code_skip_sequence(const char *text, size_t size, size_t at);

/* Keywords (redact/keywords.h), one of which is in each code that may divide or hide another one.
 */
extern const char bp_code_keywords[];

/* The bytes of which one is in each code. */
extern const bool bp_code_bytes[256];

#endif
