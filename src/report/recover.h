/*
 * The directory of a dead session becomes a crash report.
 */
#ifndef BP_REPORT_RECOVER_H
#define BP_REPORT_RECOVER_H

#include <bugpack/recover.h>

/* Recovers every dead session as bugpack_recover says, with its errors, by options that have been
 * checked. Any thread. */
bugpack_status bp_recover(const bugpack_recover_options *request, bugpack_error *error);

#endif
