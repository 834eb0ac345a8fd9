/*
 * Where a report goes: a directory that is held open, and a file name in two parts.
 */
#ifndef BP_SESSION_DESTINATION_H
#define BP_SESSION_DESTINATION_H

#include <bugpack/report.h>
#include <bugpack/session.h>

#include "report/bundle.h"

struct bp_order;

/* Everything in it is freed by bp_destination_release; start from BP_DESTINATION_INIT. */
typedef struct bp_destination {
    char *dir_path;  /* absolute */
    char *stem;      /* "viewer-bugreport-2026-11-21T00-36-51Z" */
    char *extension; /* ".zip"; "" where an output path has none */
    int dir_fd;
} bp_destination;

#define BP_DESTINATION_INIT                                                                        \
    { NULL, NULL, NULL, -1 }

/*
 * Composes the name and opens the directory: those of the order's output path where it has one,
 * else the order's or the session's directory and the standard name.
 */
bugpack_status bp_destination_open(const bugpack_options *options, const struct bp_order *order,
                                   bp_destination *destination, bugpack_error *error);
void bp_destination_release(bp_destination *destination);

/*
 * Publishes a bundle there, and fills path, size and what is missing into `result`. `wall_ns` is
 * the time of its entries; `watch` may be NULL.
 */
bugpack_status bp_destination_publish(const bp_destination *destination, bp_bundle *bundle,
                                      const char *report_id, uint64_t wall_ns,
                                      const bp_watch *watch, bugpack_report_result *result,
                                      bugpack_error *error);

#endif
