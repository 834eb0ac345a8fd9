/*
 * Where a report goes: a directory that is held open, and a file name in two parts.
 */
#ifndef BP_REPORT_DESTINATION_H
#define BP_REPORT_DESTINATION_H

#include <stdint.h>

#include <bugpack/report.h>

#include "base/fd_mark.h"
#include "model/metadata.h"
#include "report/bundle.h"
#include "report/config.h"

/* Where to write: `output_path` (absolute) where it is given, else a standard name in `dir`. What
 * it refers to is borrowed until the destination is released. */
typedef struct bp_destination_request {
    const char *app_name;
    bp_report_kind kind;
    const char *detail; /* of the name; NULL for none */
    uint64_t wall_ns;   /* the trigger's */
    const char *output_path;
    const bp_report_dir *dir;
} bp_destination_request;

/* Start from BP_DESTINATION_INIT. */
typedef struct bp_destination {
    bp_destination_request request;
    char *dir_path; /* absolute */
    char *stem;     /* of an output path; NULL: composed of the request when it is published */
    const char *extension; /* ".zip"; "" where an output path has none */
    int dir_fd;
    bp_fd_mark mark;
} bp_destination;

#define BP_DESTINATION_INIT                                                                        \
    { .dir_fd = -1 }

/* Composes the name and opens the directory. Release it also after a failure. */
bugpack_status bp_destination_open(const bp_destination_request *request,
                                   bp_destination *destination, bugpack_error *error);
void bp_destination_release(bp_destination *destination);

/* Fails with IO and ENOSPC when writing `needed_bytes` would leave less than `min_free_bytes` (0:
 * no bound) of its file system, where that is known. Any thread. */
bugpack_status bp_destination_check_room(const bp_destination *destination, uint64_t min_free_bytes,
                                         uint64_t needed_bytes, bugpack_error *error);

/* Opens the directory again if the host has closed its descriptor meanwhile: a job may have waited.
 * It has to be the same directory. */
bugpack_status bp_destination_hold(bp_destination *destination, bugpack_error *error);

/* Publishes a bundle there, and fills path, size and what is missing into `result`. */
bugpack_status bp_destination_publish(const bp_destination *destination, bp_bundle *bundle,
                                      const bp_trigger_list *triggers,
                                      bugpack_report_result *result, bugpack_error *error);

#endif
