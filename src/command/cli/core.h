/*
 * The core of a process that has died: --core, --exe and --coredump.
 */
#ifndef BP_CLI_CORE_H
#define BP_CLI_CORE_H

#include "cli/option.h"
#include "session/command.h"
#include "stacks/core_file.h"

/* Strings are borrowed from the command line; NULL: not given. */
typedef struct bp_cli_core {
    const char *path, *exe;
    const char *match; /* as coredumpctl(1) takes it */
    bp_core_file file; /* once it was read */
} bp_cli_core;

/* The rows of a table whose command has it in `field`. */
#define BP_CLI_CORE_OPTIONS(type, field)                                                           \
    BP_CLI_VALUE(type, field.path, 0, "core", "FILE",                                              \
                 "a core instead: how a process died, and where its\nthreads were",                \
                 bp_cli_read_text, &bp_cli_some_text),                                             \
        BP_CLI_VALUE(type, field.exe, 0, "exe", "FILE",                                            \
                     "with a core: its program, if that has moved", bp_cli_read_text,              \
                     &bp_cli_some_text),                                                           \
        BP_CLI_VALUE(type, field.match, 0, "coredump", "MATCH",                                    \
                     "the newest core of coredumpctl(1) for a PID, a name\nor a path",             \
                     bp_cli_read_text, &bp_cli_some_text)

static inline bool bp_cli_core_is_given(const bp_cli_core *core) {
    return core->path != NULL || core->match != NULL;
}

/* Reads what was given; reports a failure. The caller frees the file, after the session. */
bugpack_status bp_cli_core_read(bp_cli_core *core);

/* Adds crash.json and the stacks to a session without a process; reports a failure. */
bugpack_status bp_cli_core_provide(const bp_cli_core *core, bugpack_session *session);

/* The end of the process, for the report. */
bp_target_end bp_cli_core_end(const bp_cli_core *core);

#endif
