/*
 * What reports may cost the disk: free space that must remain, and bounds on what is there.
 */
#ifndef BP_REPORT_LIMITS_H
#define BP_REPORT_LIMITS_H

#include <stdint.h>

#include <bugpack/error.h>

#include "report/context.h"
#include "report/destination.h"

/* Fails with IO and ENOSPC when writing `needed_bytes` would leave less than `min_free_bytes` (0:
 * no bound) of the destination's file system, where that is known. Any thread. */
bugpack_status bp_limits_check_room(uint64_t min_free_bytes, const bp_destination *destination,
                                    uint64_t needed_bytes, bugpack_error *error);

/* The bounds of one kind of report in its directory; 0: none. */
typedef struct bp_limits_rolling {
    bp_report_kind kind;
    uint32_t max_count;
    uint64_t max_bytes;
} bp_limits_rolling;

/* Brings the directory of a new report within the bounds of `rolling` (NULL for none), then within
 * those of the settings over all kinds. The new report stays; what is removed is logged. Worker. */
void bp_limits_apply(const bp_report_context *context, const char *report_path,
                     const bp_limits_rolling *rolling);

#endif
