/*
 * A report that is sent: an open file with an id and a name.
 */
#ifndef BP_SEND_REPORT_H
#define BP_SEND_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/id.h"

typedef struct bp_send_report {
    int fd; /* -1: closed */
    uint64_t bytes;
    char id[BP_ID_BYTES]; /* the report's own, the same for every attempt */
    char name[256];       /* of its file, without a directory, with ".zip" */
} bp_send_report;

/*
 * Opens the file at `path`, or standard input for "-", which has to be a report. `name` NULL is the
 * last part of the path. Close it also after a failure. Errors of bp_report_file_take.
 */
bugpack_status bp_send_report_open(const char *path, const char *name, bp_send_report *report,
                                   bugpack_error *error);
void bp_send_report_close(bp_send_report *report);

/* How far sending is. False ends it. */
typedef bool bp_send_progress(void *context, uint64_t sent_bytes, uint64_t total_bytes);

/*
 * Copies it to `name`, which ends with ".zip", in a directory, or to another name where that is
 * taken: the copy has its name when it is whole and on the disk. `dir_path` is for sentences.
 * CANCELLED by `progress`, which may be NULL; CORRUPT where the report cannot be read to its end;
 * IO.
 */
bugpack_status bp_send_report_copy(const bp_send_report *report, int dir_fd, const char *dir_path,
                                   const char *name, bp_send_progress *progress, void *context,
                                   char *ret_name, size_t name_bytes, bugpack_error *error);

#endif
