/*
 * What reports may cost the disk: removes the oldest reports of a directory until it is within its
 * bounds. Only regular files of this user that are named like a report of the app are removed.
 * Nothing is opened and no link is followed.
 */
#ifndef BP_REPORT_RETENTION_H
#define BP_REPORT_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "model/metadata.h"
#include "report/context.h"

#define BP_RETENTION_KIND(kind) (1u << (unsigned)(kind))
#define BP_RETENTION_ALL_KINDS (BP_RETENTION_KIND(BP_REPORT_EXIT + 1) - 1)

/* Reports that bugpack takes by itself. */
#define BP_RETENTION_AUTOMATIC_KINDS                                                               \
    (BP_RETENTION_KIND(BP_REPORT_PEDANTIC) | BP_RETENTION_KIND(BP_REPORT_DISCONNECT) |             \
     BP_RETENTION_KIND(BP_REPORT_AUTO_SNAPSHOT) | BP_RETENTION_KIND(BP_REPORT_HANG) |              \
     BP_RETENTION_KIND(BP_REPORT_CONDITION) | BP_RETENTION_KIND(BP_REPORT_CRASH) |                 \
     BP_RETENTION_KIND(BP_REPORT_EXIT))

/* The reports that count, and how much of them may stay. */
typedef struct bp_retention_policy {
    const char *app;       /* as the session has it; NULL: of every app */
    unsigned kinds;        /* BP_RETENTION_KIND of each that counts and may be removed */
    unsigned first_kinds;  /* of these, those to be removed before all others */
    uint32_t max_count;    /* 0: any number */
    uint64_t max_bytes;    /* by file size; 0: any */
    uint64_t max_age_secs; /* since the time in the name; 0: any */
    bool is_dry_run;       /* only say what would be removed */
    const char *keep;      /* the name of the one that stays whatever it costs; NULL: none */
    uint64_t now_wall_ns;
} bp_retention_policy;

/* Told of each report that was removed, or would be. */
typedef void bp_retention_removed(const char *name, uint64_t bytes, void *context);

/* The counted reports that are left. */
typedef struct bp_retention_outcome {
    uint64_t count, bytes;
    uint64_t removed_count, removed_bytes;
} bp_retention_outcome;

/*
 * Removes reports from the directory `dir_fd` (borrowed; `dir_name` is for sentences) until it is
 * within the policy, the oldest by name first. Reports dated after `now_wall_ns` count as older
 * still: they were written before the clock was set back.
 *
 * Lists at most BP_RETENTION_LOOK_MAX reports in one call. `on_removed` and `ret_outcome` are
 * optional. Errors: IO (the directory cannot be read, or a report could not be removed, after the
 * others were), NO_MEMORY. Any thread, any number at once, also in other processes.
 */
#define BP_RETENTION_LOOK_MAX 20000
bugpack_status bp_retention_prune(int dir_fd, const char *dir_name,
                                  const bp_retention_policy *policy,
                                  bp_retention_removed *on_removed, void *context,
                                  bp_retention_outcome *ret_outcome, bugpack_error *error);

/* Brings the directory of a new report of this kind within the bounds for that, then within those
 * of the config over all kinds. The new report stays; what is removed is logged. Worker. */
void bp_retention_apply(const bp_report_context *context, const char *report_path,
                        bp_report_kind kind, bp_report_bounds bounds);

#endif
