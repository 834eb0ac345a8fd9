/*
 * crash.json: what a process died of.
 */
#ifndef BP_MODEL_CRASH_H
#define BP_MODEL_CRASH_H

#include <bugpack/error.h>

#include "base/buffer.h"
#include "model/stacks.h"
#include "platform/crash_page.h"

/* The state of the copy of the stack. */
typedef struct bp_crash_backtrace {
    const bp_stacks *stacks; /* with the thread of the page; NULL: none */
    const char *reason;      /* why */
} bp_crash_backtrace;

/* Appends the document about a page that was validated. NO_MEMORY, LIMIT of the buffer. */
bugpack_status bp_crash_print(const bp_crash_page *page, const bp_crash_backtrace *backtrace,
                              bp_buffer *out, bugpack_error *error);

#endif
