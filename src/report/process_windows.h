/*
 * The metrics window of a report: one for all processes that the session is about.
 */
#ifndef BP_REPORT_PROCESS_WINDOWS_H
#define BP_REPORT_PROCESS_WINDOWS_H

#include "report/assemble.h"

typedef struct bp_process_windows bp_process_windows;

/*
 * Takes the first sample of each process that the session has now, but of the first where the job
 * has a window of its trigger. Borrows all; NULL without memory.
 */
bp_process_windows *bp_process_windows_begin(const bp_report_context *context, const bp_job *job);
void bp_process_windows_free(bp_process_windows *windows);

/* The processes, the session's own first; NULL after the last. */
bp_subject *bp_process_windows_subject(const bp_process_windows *windows, size_t index);

/* Waits until the window has passed, or all processes have ended. `show` gets how much of it is
 * done. CANCELLED, TIMEOUT. */
bugpack_status bp_process_windows_wait(bp_process_windows *windows, const bp_progress *progress,
                                       void (*show)(const bp_progress *progress, uint64_t done,
                                                    uint64_t total),
                                       bugpack_error *error);

/* Adds runtime-metrics.json of each process. */
bugpack_status bp_process_windows_add(const bp_process_windows *windows, bp_bundle *bundle,
                                      bugpack_error *error);

#endif
