/*
 * Recovery: what sessions that died left behind becomes one `crash` report each.
 */
#ifndef BUGPACK_RECOVER_H
#define BUGPACK_RECOVER_H

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/report.h>

BUGPACK_BEGIN_DECLS

/*
 * Looks through the directory in which sessions lie (NULL: $XDG_RUNTIME_DIR/bugpack) and turns each
 * dead one of `app_name` (NULL: of any) into a report in `report_dir` (NULL: where that session put
 * its own). `on_report` is told of each, also of one that failed; its directory then stays for the
 * next try. A session that is alive is not touched, nor one that somebody else is just recovering:
 * two recoverers at once give one report. No session and no directory is a success.
 *
 * bugpack_open does this by itself, for its own app, on its worker's thread.
 *
 * Errors: IO, DENIED (the directory is not this user's alone), UNSUPPORTED (no directory is known),
 * NO_MEMORY. Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_recover(const char *recorder_dir,
                                                             const char *report_dir,
                                                             const char *app_name,
                                                             bugpack_report_done *on_report,
                                                             void *context, bugpack_error *error);

BUGPACK_END_DECLS

#endif
