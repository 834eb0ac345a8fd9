/*
 * The functions of Python that the threads of a host were in as it crashed, as faulthandler wrote
 * them into a file of the session directory (src/bindings/python).
 */
#ifndef BP_REPORT_PYTHON_TRACEBACK_H
#define BP_REPORT_PYTHON_TRACEBACK_H

#include <stddef.h>

#include "model/stacks.h"
#include "platform/crash_page.h"

/* The name of that file. */
#define BP_PYTHON_TRACEBACK_NAME "python"

/* Adds them to the stacks of the crash, as far as it is known which thread is meant. Any text. */
void bp_python_traceback_add(const char *text, size_t text_bytes, const bp_crash_page *page,
                             bp_stacks *stacks);

#endif
