/*
 * Who called sudo: what root writes for them is theirs.
 */
#ifndef BP_CLI_CALLER_H
#define BP_CLI_CALLER_H

#include <stdbool.h>
#include <sys/types.h>

/* False where nobody did: only root can give a file away, and nobody else has a reason to. */
bool bp_cli_find_caller(uid_t *ret_uid, gid_t *ret_gid);

/* Gives them an open file, by its descriptor, before it has a name. */
void bp_cli_give_to_caller(int fd);

#endif
