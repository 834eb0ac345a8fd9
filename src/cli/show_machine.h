#ifndef BP_CLI_SHOW_MACHINE_H
#define BP_CLI_SHOW_MACHINE_H

#include "inspect/summary_machine.h"

/* The part of a screen about a capture of the whole machine; nothing without one. */
void bp_cli_show_machine(const bp_machine *machine);

#endif
