/*
 * The automatic reports of one bug that a day may have, over all sessions that write to a
 * directory: a small file there counts them.
 *
 * It is asked before a report is assembled, so what is counted is what a trigger knows of the
 * signature: the kind and the key.
 */
#ifndef BP_REPORT_QUOTA_H
#define BP_REPORT_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "model/metadata.h"

#define BP_QUOTA_NAME ".bugpack-signatures"

/* Why there is no report, for the manifest. */
extern const char bp_quota_reason[];

/* The bugs that a file counts. One more takes the place of one of the oldest day. */
enum { BP_QUOTA_ROW_MAX = 256 };

/* Texts are borrowed. */
typedef struct bp_quota {
    int dir_fd;
    const char *app; /* NULL: not known */
    bp_report_kind kind;
    const char *key;
    uint64_t wall_ns; /* of the trigger */
} bp_quota;

/*
 * Counts a report, or that it was suppressed: false if `max_count` were taken on the same day
 * (UTC). `ret_suppressed_count`: how many were suppressed since the last one that was taken. A file
 * that cannot be read or written, is not this user's own, or is locked for 100 ms by another
 * process, suppresses nothing. Worker, as the other.
 */
bool bp_quota_take(const bp_quota *quota, uint32_t max_count, uint64_t *ret_suppressed_count);

/* The report that was taken is not written. */
void bp_quota_give_back(const bp_quota *quota, uint64_t suppressed_count);

#endif
