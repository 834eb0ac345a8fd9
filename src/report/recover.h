/*
 * The directory of a dead session becomes a crash report.
 */
#ifndef BP_REPORT_RECOVER_H
#define BP_REPORT_RECOVER_H

#include <stdbool.h>

#include <bugpack/recover.h>

#include "platform/staged_file.h"

typedef struct bp_recover_request {
    const char *recorder_dir; /* NULL: all that a session may choose (platform/ring_dirs.h) */
    const char *report_dir;   /* NULL: each session's own */
    const char *app_name;     /* NULL: of every app */
    uint64_t min_free_bytes;
    bool with_machine; /* the name of this machine, for a session that did not ask for one */
    bp_publish_hook hook;
    bugpack_report_callback *on_report;
    bugpack_running_callback *on_running;
    bugpack_recover_note_callback *on_note;
    void *context; /* of all */
} bp_recover_request;

/* Recovers every dead session as bugpack_recover_with says, with its errors. Any thread. */
bugpack_status bp_recover(const bp_recover_request *request, bugpack_error *error);

#endif
