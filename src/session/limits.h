/*
 * What reports may cost the disk: a floor of free space before one is begun, and bounds over what
 * is there after one was written.
 */
#ifndef BP_SESSION_LIMITS_H
#define BP_SESSION_LIMITS_H

#include <stdint.h>

#include <bugpack/report.h>
#include <bugpack/session.h>

struct bp_order;

/*
 * Fails with IO and ENOSPC when the file system of `dir_fd` (borrowed; `dir_path` is for the
 * sentence) would be left with less than min_free_bytes after `needed_bytes` more. What a file
 * system does not tell is no obstacle. Any thread.
 */
bugpack_status bp_limits_check_room(const bugpack_options *options, int dir_fd,
                                    const char *dir_path, uint64_t needed_bytes,
                                    bugpack_error *error);

/*
 * After an order has ended: brings the directory of a report that was written, and that bugpack
 * chose the name of, back within its bounds; for an auto-snapshot those of the rolling directory
 * first. What is removed is told in the log. Worker only.
 */
void bp_limits_apply(struct bugpack *session, const struct bp_order *order,
                     const bugpack_report_result *result);

/* The same for a report of this app that was written by whatever else, by its path. */
void bp_limits_apply_beside(struct bugpack *session, const char *report_path);

#endif
