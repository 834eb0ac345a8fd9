/*
 * The directory of a dead session becomes a crash report.
 */
#ifndef BP_REPORT_RECOVER_H
#define BP_REPORT_RECOVER_H

#include <bugpack/recover.h>

typedef struct bp_recover_request {
    const char *recorder_dir;
    const char *report_dir; /* NULL: each session's own */
    const char *app_name;   /* NULL: of every app */
    bugpack_report_done *on_report;
    bugpack_session_running *on_running;
    void *context; /* of both */
} bp_recover_request;

/* Recovers every dead session below recorder_dir, and removes the directories of those that became
 * reports. Errors: those of bp_session_dir_scan. Any thread. */
bugpack_status bp_recover(const bp_recover_request *request, bugpack_error *error);

#endif
