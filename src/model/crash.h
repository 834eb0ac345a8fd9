/*
 * crash.json: what a process died of.
 */
#ifndef BP_MODEL_CRASH_H
#define BP_MODEL_CRASH_H

#include <bugpack/error.h>

#include "base/buffer.h"
#include "platform/crash_page.h"

/* Appends the document about a page that was validated. NO_MEMORY, LIMIT of the buffer. */
bugpack_status bp_crash_print(const bp_crash_page *page, bp_buffer *out, bugpack_error *error);

#endif
