/*
 * The pieces that process facts are read in.
 */
#ifndef BP_PLATFORM_DARWIN_FACTS_PRIVATE_H
#define BP_PLATFORM_DARWIN_FACTS_PRIVATE_H

#include "platform/darwin/procargs.h"
#include "platform/darwin/process_private.h"
#include "platform/facts_denied.h"

/* Fills the limits of our own process, under the names that they have on Linux, so that one look
 * works for reports of both. False when memory is short. */
bool bp_darwin_read_limits(bp_process_facts *facts);

#endif
