/*
 * A file in the syntax of git-config(1): sections with keys, of which each may come several times.
 * Includes are not followed.
 */
#ifndef BP_SEND_CONFIGURATION_H
#define BP_SEND_CONFIGURATION_H

#include <bugpack/error.h>

/* A key and where it is. The texts are in the file's, and stay as long as it does. */
typedef struct bp_configuration_row {
    const char *section;    /* in lower case */
    const char *subsection; /* "" if there is none */
    const char *key;        /* in lower case */
    const char *value;      /* NULL for a key without "=", which means true */
    unsigned line;
} bp_configuration_row;

/* Anything but OK ends the reading. */
typedef bugpack_status bp_configuration_taker(void *context, const bp_configuration_row *row,
                                              bugpack_error *error);

/* Reads the text, which is changed. INVALID with the line of what is malformed; what `take`
 * returns. `path` is for sentences. */
bugpack_status bp_configuration_read(char *text, const char *path, bp_configuration_taker *take,
                                     void *context, bugpack_error *error);

#endif
