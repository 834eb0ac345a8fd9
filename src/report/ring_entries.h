/*
 * What a snapshot of the rings holds, as artefacts of a report.
 */
#ifndef BP_REPORT_RING_ENTRIES_H
#define BP_REPORT_RING_ENTRIES_H

#include "recorder/snapshot.h"
#include "report/bundle.h"

/*
 * Adds logs.jsonl, notifications.json, metrics-history.jsonl, traffic.pcap and its index, each
 * where its ring is on and, but for the log, holds something. An entry that cannot be written costs
 * itself; the manifest says why. `only_channel` limits the traffic to the channel of that name, if
 * the snapshot has one; a note says so. NULL: all channels. Entries that the
 * list `without` names (NULL: none) are left out. Fails only when the bundle cannot take
 * an entry.
 */
bugpack_status bp_ring_entries_add(bp_snapshot *snapshot, const char *only_channel,
                                   const char *without, bp_bundle *bundle, bugpack_error *error);

#endif
