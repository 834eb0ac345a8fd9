/*
 * The processes that a command is about: --pid, --name, --unit, --cgroup and --children.
 */
#ifndef BP_CLI_SELECT_H
#define BP_CLI_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <bugpack/session.h>

#include "cli/command.h"
#include "cli/option.h"

/* The ways to select them but by their ids. */
enum { BP_CLI_BY_NAME, BP_CLI_BY_UNIT, BP_CLI_BY_CGROUP, BP_CLI_BY_COUNT };

typedef struct bp_cli_pid_list {
    pid_t *items; /* owned */
    size_t count;
} bp_cli_pid_list;

typedef struct bp_cli_select {
    bp_cli_pid_list pids;
    const char *texts[BP_CLI_BY_COUNT]; /* borrowed; NULL: not given */
    bool with_children;
} bp_cli_select;

bp_cli_reader bp_cli_read_pids;
bp_cli_reader bp_cli_read_cgroup;

/* The rows of a table whose command has it in `field`. */
#define BP_CLI_SELECT_OPTIONS(type, field)                                                         \
    BP_CLI_VALUE(type, field.pids, 0, "pid", "PID",                                                \
                 "the process to examine; repeatable, the first at the\ntop of the report",        \
                 bp_cli_read_pids, &bp_cli_pids),                                                  \
        BP_CLI_VALUE(type, field.texts[BP_CLI_BY_NAME], 0, "name", "NAME",                         \
                     "the process of this name, with its workers", bp_cli_read_text,               \
                     &bp_cli_some_text),                                                           \
        BP_CLI_VALUE(type, field.texts[BP_CLI_BY_UNIT], 0, "unit", "UNIT",                         \
                     "the processes of a systemd unit", bp_cli_read_text, &bp_cli_some_text),      \
        BP_CLI_VALUE(type, field.texts[BP_CLI_BY_CGROUP], 0, "cgroup", "PATH",                     \
                     "the processes of a cgroup", bp_cli_read_cgroup, &bp_cli_some_text),          \
        BP_CLI_FLAG(type, field.with_children, 0, "children", "also all their descendants")

/* The number of --pid, --name, --unit and --cgroup that are given. */
int bp_cli_select_kinds(const bp_cli_select *select);

/* Options that exclude each other. NULL: none do. */
const char *bp_cli_select_conflict(const bp_cli_select *select);

/* Opens the session about the first process. Reports a failure, but that there is no process only
 * if `says_all`. */
typedef bugpack_status bp_cli_opener(void *context, pid_t pid, bool says_all,
                                     bugpack_session **ret_session);

/*
 * Opens a session about what was selected, and searches again where a process has ended in between.
 * Reports a failure; `is_quiet`: not that there is no process, or no single tree of them.
 * `ret_exit` is the program's exit status.
 */
bugpack_status bp_cli_select_open(const bp_cli_select *select, bool is_quiet, bp_cli_opener *open,
                                  void *context, bugpack_session **ret_session,
                                  bp_cli_exit *ret_exit);

#endif
