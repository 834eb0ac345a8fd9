/*
 * The pager of the user, as git starts one: on a terminal alone, $PAGER or less, with LESS=FRX
 * unless that is set. Without a pager, or with one that is empty or "cat", nothing is different.
 */
#ifndef BP_CLI_PAGER_H
#define BP_CLI_PAGER_H

/* Sends standard output to the pager. */
void bp_cli_pager_begin(void);

/* Waits until the user has left the pager. Standard output is the terminal again; a pager that was
 * left early is no failure. */
void bp_cli_pager_end(void);

#endif
