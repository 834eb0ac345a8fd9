/*
 * The files that a directory or a pattern of a command line stands for.
 */
#ifndef BP_CLI_EXPAND_H
#define BP_CLI_EXPAND_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bp_cli_found {
    const char *path;
    const char *relative; /* below the directory that was named; NULL: none was */
    size_t found_bytes;   /* the end of `path` that nobody named; 0: all of it was */
    bool is_stream;       /* "-", or a FIFO */
} bp_cli_found;

/* Gets a file. False ends it. */
typedef bool bp_cli_take_found(void *context, const bp_cli_found *file);

/*
 * What is there under that name is one file, and so is what is not there, to be reported later; but
 * a directory stands for the regular files in it (`is_deep`: and in those below), sorted by name,
 * and a pattern, as in sh, for the files that match. Symbolic links among these are passed over:
 * who can write there could make them. What has no file stands for itself. At most 256.
 *
 * False when `found` was, or after a failure, which was reported: errno is ENOMEM without memory.
 */
bool bp_cli_expand(const char *text, bool is_deep, bp_cli_take_found *found, void *context);

#endif
