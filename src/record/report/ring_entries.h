/*
 * The artefacts of a report that come from a snapshot of the rings.
 */
#ifndef BP_REPORT_RING_ENTRIES_H
#define BP_REPORT_RING_ENTRIES_H

#include "recorder/snapshot.h"
#include "report/bundle.h"
#include "report/config.h"

/* The names of channels; `only` NULL: all. Borrowed. */
typedef struct bp_channel_choice {
    const char *only;
    const char *const *others;
    size_t other_count;
} bp_channel_choice;

/*
 * Adds logs.jsonl, notifications.json, metrics-history.jsonl, traffic.pcap and its index, each
 * where its ring is on and, except for the log, holds something. An entry that cannot be written
 * costs itself; the manifest says why. `choice` limits the traffic to the channels of its names, if
 * the snapshot has one of them; a note says so. Entries that the config leaves out are not there.
 * Fails only when the bundle cannot take an entry.
 */
bugpack_status bp_ring_entries_add(bp_snapshot *snapshot, const bp_channel_choice *choice,
                                   const bp_config *config, bp_bundle *bundle,
                                   bugpack_error *error);

#endif
