/*
 * --send: a report that was written is put into the queue, and sent by a process of its own.
 */
#ifndef BP_CLI_HAND_OVER_H
#define BP_CLI_HAND_OVER_H

#include <stdbool.h>

#include <bugpack/error.h>

#include "cli/command.h"
#include "cli/option.h"

/* The row of a table whose command has the name in `field`. */
#define BP_CLI_SEND_OPTION(type, field)                                                            \
    BP_CLI_VALUE(type, field, 0, "send", "NAME",                                                   \
                 "send reports to this destination; see\nbugpack-send(1)", bp_cli_read_text,       \
                 &bp_cli_some_text)

/* Checks that there is such a destination, and says if its reports wait for consent. False after a
 * message. Fine for NULL. */
bool bp_cli_hand_over_prepare(const char *name, bp_cli_exit *ret_exit);

/* Puts the report into the queue and starts to send it, without waiting for that. Nothing for a
 * name of NULL. Any thread. */
bugpack_status bp_cli_hand_over(const char *name, const char *path, bugpack_error *error);

#endif
