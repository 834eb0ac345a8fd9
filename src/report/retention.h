/*
 * Keeping a directory of reports within bounds: the oldest go, own files only.
 *
 * What is removed is named like a report of the app (report/name.h), is a regular file and
 * belongs to this user. Nothing is opened and no link is followed, so that a FIFO, a directory or a
 * link of such a name stays where it is, and costs nothing.
 */
#ifndef BP_REPORT_RETENTION_H
#define BP_REPORT_RETENTION_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "model/metadata.h"

#define BP_RETENTION_KIND(kind) (1u << (unsigned)(kind))
#define BP_RETENTION_ALL_KINDS (BP_RETENTION_KIND(BP_REPORT_CRASH + 1) - 1)

/* What bugpack takes by itself. */
#define BP_RETENTION_AUTOMATIC_KINDS                                                               \
    (BP_RETENTION_KIND(BP_REPORT_PEDANTIC) | BP_RETENTION_KIND(BP_REPORT_DISCONNECT) |             \
     BP_RETENTION_KIND(BP_REPORT_AUTO_SNAPSHOT) | BP_RETENTION_KIND(BP_REPORT_CRASH))

/* Which reports count, and how much of them may stay. */
typedef struct bp_retention_policy {
    const char *app;      /* as the session has it; NULL: of every app */
    unsigned kinds;       /* BP_RETENTION_KIND of each that counts and may go */
    unsigned first_kinds; /* of these, what goes before any of the others goes */
    uint32_t max_count;   /* 0: any number */
    uint64_t max_bytes;   /* by file size; 0: any */
    const char *keep;     /* the name of the one that stays whatever it costs; NULL: none */
    uint64_t now_wall_ns;
} bp_retention_policy;

/* Told of each report that was removed. */
typedef void bp_retention_removed(const char *name, uint64_t bytes, void *context);

/* What is there afterwards, of what counts. */
typedef struct bp_retention_outcome {
    uint64_t count, bytes;
    uint64_t removed_count, removed_bytes;
} bp_retention_outcome;

/*
 * Removes reports from the directory `dir_fd` (borrowed; `dir_name` is for sentences), until it is
 * within the policy or nothing is left that may go. The oldest by name goes first, and before that
 * what is dated after `now_wall_ns`: it was written before the clock was set back, and would else
 * outlive everything that is written from now on.
 *
 * Looks at no more than BP_RETENTION_LOOK_MAX reports of those that are there; the next call goes
 * on. `on_removed` and `ret_outcome` are optional. Errors: IO (the directory cannot be read, or a
 * report that had to go could not be removed, after the others were), NO_MEMORY. Any thread; two at
 * once, also in two processes, remove each what the other has left.
 */
#define BP_RETENTION_LOOK_MAX 20000
bugpack_status bp_retention_prune(int dir_fd, const char *dir_name,
                                  const bp_retention_policy *policy,
                                  bp_retention_removed *on_removed, void *context,
                                  bp_retention_outcome *ret_outcome, bugpack_error *error);

#endif
