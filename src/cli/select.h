/*
 * The processes that a command is about: --pid, --name, --unit, --cgroup and --children.
 */
#ifndef BP_CLI_SELECT_H
#define BP_CLI_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <bugpack/session.h>

#include "cli/option.h"
#include "probe/process_list.h"

typedef struct bp_cli_pids {
    pid_t *items; /* owned */
    size_t count;
} bp_cli_pid_list;

/* The texts are borrowed; NULL: not given. */
typedef struct bp_cli_selector {
    bp_cli_pid_list pids;
    const char *name, *unit, *cgroup;
    bool with_children;
} bp_cli_selector;

bp_cli_reader bp_cli_read_pids;
bp_cli_reader bp_cli_read_cgroup;

/* The rows of a table whose command has it in `field`. */
#define BP_CLI_SELECT_OPTIONS(type, field)                                                         \
    BP_CLI_VALUE(type, field.pids, 0, "pid", "PID",                                                \
                 "the process to examine; repeatable, the first at the\ntop of the report",        \
                 bp_cli_read_pids, &bp_cli_pids),                                                  \
        BP_CLI_VALUE(type, field.name, 0, "name", "NAME",                                          \
                     "the process of this name, with its workers", bp_cli_read_text,               \
                     &bp_cli_some_text),                                                           \
        BP_CLI_VALUE(type, field.unit, 0, "unit", "UNIT", "the processes of a systemd unit",       \
                     bp_cli_read_text, &bp_cli_some_text),                                         \
        BP_CLI_VALUE(type, field.cgroup, 0, "cgroup", "PATH", "the processes of a cgroup",         \
                     bp_cli_read_cgroup, &bp_cli_some_text),                                       \
        BP_CLI_FLAG(type, field.with_children, 0, "children", "and all their descendants")

void bp_cli_selector_release(bp_cli_selector *selector);

/* Whether it selects anything. */
bool bp_cli_select_is_given(const bp_cli_selector *selector);

/* Whether it searches for them, and they may have ended when they are found. */
bool bp_cli_select_is_search(const bp_cli_selector *selector);

/* Options that exclude each other. NULL: none do. */
const char *bp_cli_select_conflict(const bp_cli_selector *selector);

/* What was selected, the first at the top of the report. */
typedef struct bp_cli_targets {
    pid_t *pids;
    size_t count;
    bp_process_list list; /* of which `processes` are chosen; none where the ids were given */
    bp_process_choice choice;
    bool is_search;
} bp_cli_targets;

/* False after a failure that was reported, with the program's exit status. */
bool bp_cli_select(const bp_cli_selector *selector, bp_cli_targets *ret_targets,
                   bp_cli_exit *ret_exit);
void bp_cli_select_release(bp_cli_targets *targets);

/*
 * Adds the targets to a session that is about the first. One that has ended since it was found is
 * left out. NO_PROCESS where a process is another now than when it was chosen, or one whose id was
 * given is not there. Reports a failure, but that only if `says_all`.
 */
bugpack_status bp_cli_select_add(const bp_cli_targets *targets, bugpack *session, bool says_all);

#endif
