/*
 * The directory of a dead session becomes a crash report.
 */
#ifndef BP_REPORT_RECOVER_H
#define BP_REPORT_RECOVER_H

#include <bugpack/recover.h>

#include "model/stacks.h"
#include "platform/crash_page.h"
#include "report/writer.h"

/* A session of another process that is still running. Valid during the call. */
typedef struct bp_running_session {
    const char *app_name; /* "" while it is being opened */
    const char *name;     /* of its directory, `<app>-<pid>-<session id>` */
    int64_t pid;          /* 0 if unknown, as from another pid namespace */
} bp_running_session;

/* Further news from a recovery, beside its reports. */
typedef enum bp_recover_note_kind {
    BP_RECOVER_SEARCHED, /* a directory was searched to its end, or does not exist */
    BP_RECOVER_SKIPPED,  /* a directory was not searched: others made it, or can write it */
    BP_RECOVER_UNSEEN,   /* a directory or a session could not be looked at */
    BP_RECOVER_DROPPED   /* a dead session was removed without a report */
} bp_recover_note_kind;

/* Valid during the call. */
typedef struct bp_recover_note {
    const char *path; /* the directory that is searched */
    const char *text; /* one sentence */
    bp_recover_note_kind kind;
} bp_recover_note;

/* Callbacks beside on_report, with the context of the options. NULL: not called. */
typedef struct bp_recover_calls {
    /* For each session that is left alone because it is running in another process. */
    void (*on_running)(const bp_running_session *session, void *context);
    void (*on_note)(const bp_recover_note *note, void *context);
} bp_recover_calls;

/* Recovers every dead session as bugpack_recover says, with its errors, by options that have been
 * checked. Any thread. */
bugpack_status bp_recover(const bugpack_recover_options *request, const bp_recover_calls *calls,
                          bugpack_error *error);

/* Writes crash.json about a validated page, with the backtrace where one can be had; it is
 * truncated where memory or time for that was missing. `python_frames` of `python` are
 * the crashed thread's. NO_MEMORY, LIMIT of the writer. */
bugpack_status bp_recover_print_crash(const bp_crash_page *page, const bp_stacks *python,
                                      bugpack_writer *writer, bugpack_error *error);

#endif
