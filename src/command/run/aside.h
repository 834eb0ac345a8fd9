/*
 * Work in a child process of the command (base/aside.h).
 */
#ifndef BP_RUN_ASIDE_H
#define BP_RUN_ASIDE_H

#include "base/aside.h"

bp_aside_runner bp_run_aside;

#endif
