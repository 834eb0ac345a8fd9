/*
 * Auto-snapshots: a report every so often into a directory that holds the newest ones.
 *
 * The first comes after a full interval. At most one is under way, so a slow disk delays the next
 * one and does not bunch them: one that is not done when the next is due is followed by a full
 * interval. Times are of the monotonic clock.
 */
#ifndef BP_TRIGGER_AUTO_SNAPSHOT_H
#define BP_TRIGGER_AUTO_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

/* When the next is due after one that was due at `due_ns` and was done at `done_ns`. Pure. */
uint64_t bp_auto_snapshot_next(uint64_t due_ns, uint64_t done_ns, uint64_t interval_ns);

/* Whether to notify of a failure at `now_ns`, when the last notification was at `notified_ns` (0:
 * never): at most once in five minutes. Pure. */
bool bp_auto_snapshot_may_notify(uint64_t notified_ns, uint64_t now_ns);

#endif
