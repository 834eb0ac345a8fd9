/*
 * process.json from the facts that the platform read.
 */
#ifndef BP_MODEL_PROCESS_H
#define BP_MODEL_PROCESS_H

#include <bugpack/error.h>

#include "base/buffer.h"
#include "platform/process_facts.h"

/*
 * Appends process.json. What is not known is left out, a group of which nothing is known as a
 * whole; a limit that is not there is null.
 */
bugpack_status bp_process_print(const bp_process_facts *facts, bp_buffer *out,
                                bugpack_error *error);

#endif
