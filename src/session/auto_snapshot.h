/*
 * Auto-snapshots: a report every so often into a directory that holds the newest ones.
 *
 * The first comes after a full interval. There is never more than one under way, so that a slow
 * disk delays the next one and does not bunch them: one that was not done when the next was due is
 * followed by a full interval. Times are of the monotonic clock.
 */
#ifndef BP_SESSION_AUTO_SNAPSHOT_H
#define BP_SESSION_AUTO_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/session.h>

#include "session/triggers.h"

typedef struct bp_auto_snapshot bp_auto_snapshot;

/* The interval begins now. NO_MEMORY. */
bugpack_status bp_auto_snapshot_new(const bugpack_options *options, bp_auto_snapshot **ret_auto,
                                    bugpack_error *error);
void bp_auto_snapshot_free(bp_auto_snapshot *snapshots);

/* Orders one if it is due, and says when the next one is. For the session's timer. */
uint64_t bp_auto_snapshot_tick(struct bugpack *session, uint64_t now_ns);

/* When the next is due after one that was due at `due_ns` and was done at `done_ns`. */
uint64_t bp_auto_snapshot_next(uint64_t due_ns, uint64_t done_ns, uint64_t interval_ns);

/* Whether a failure at `now_ns` is told, when one was told at `told_ns` (0: none yet): what goes on
 * failing is told at most once in five minutes. */
bool bp_auto_snapshot_may_tell(uint64_t told_ns, uint64_t now_ns);

/* Adds what they came to, once there was one. NULL has none. */
void bp_auto_snapshot_list(bp_auto_snapshot *snapshots, bp_trigger_list *list);

#endif
