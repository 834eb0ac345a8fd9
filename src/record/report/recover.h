/*
 * The directory of a dead session becomes a crash report.
 */
#ifndef BP_REPORT_RECOVER_H
#define BP_REPORT_RECOVER_H

#include <bugpack/recover.h>

#include "platform/crash_page.h"
#include "report/writer.h"

/* Recovers every dead session as bugpack_recover says, with its errors, by options that have been
 * checked. Any thread. */
bugpack_status bp_recover(const bugpack_recover_options *request, bugpack_error *error);

/* Writes crash.json about a validated page, with the backtrace where one can be had; it is
 * truncated where memory or time for that was missing. `is_host`: nothing is loaded into this
 * process for it. NO_MEMORY, LIMIT of the writer. */
bugpack_status bp_recover_print_crash(const bp_crash_page *page, bool is_host,
                                      bugpack_writer *writer, bugpack_error *error);

#endif
