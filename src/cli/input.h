/*
 * The files that a user wants in the report, each with the entry that it becomes.
 */
#ifndef BP_CLI_INPUT_H
#define BP_CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/provide.h>

typedef struct bp_cli_input {
    const char *path; /* borrowed from the command line */
    char *name;       /* of the entry, owned */
    bugpack_file_kind kind;
} bp_cli_input;

/* Starts zeroed. */
typedef struct bp_cli_inputs {
    bp_cli_input *items;
    size_t count;
    size_t capacity;
} bp_cli_inputs;

/*
 * Adds `path`. The entry's name is `folder` ("" or ending in '/'), then `name_bytes` bytes of
 * `name`, which the library will judge; or, where `name` is NULL, the path's last component, in
 * which what no entry may be called becomes '_' and what is too long is cut. A name that is taken,
 * also when it differs only in case, gets "-2", "-3", … before its extension.
 * False when there is no memory.
 */
bool bp_cli_inputs_add(bp_cli_inputs *inputs, bugpack_file_kind kind, const char *folder,
                       const char *name, size_t name_bytes, const char *path);

void bp_cli_inputs_release(bp_cli_inputs *inputs);

#endif
