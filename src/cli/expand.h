/*
 * The files that a directory or a pattern of a command line stands for.
 */
#ifndef BP_CLI_EXPAND_H
#define BP_CLI_EXPAND_H

#include <stdbool.h>

/* Gets a file. `relative` is its path below the directory that was named; NULL: none was. False
 * ends it. */
typedef bool bp_cli_found(void *context, const char *path, const char *relative);

/*
 * What is there under that name is one file, and so is what is not there, to be reported later; but
 * a directory stands for the regular files in it (`is_deep`: and in those below), sorted by name,
 * and a pattern, as in sh, for the files that match. Symbolic links in a directory are passed over:
 * who can write there could make them. A directory without a file stands for itself. At most 256.
 *
 * False when `found` was, or after a failure, which was reported: errno is ENOMEM without memory.
 */
bool bp_cli_expand(const char *text, bool is_deep, bp_cli_found *found, void *context);

#endif
