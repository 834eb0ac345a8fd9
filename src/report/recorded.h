/*
 * What a recorder kept, as artefacts of a report.
 */
#ifndef BP_REPORT_RECORDED_H
#define BP_REPORT_RECORDED_H

#include "recorder/snapshot.h"
#include "report/bundle.h"

/*
 * Adds logs.jsonl, notifications.json, metrics-history.jsonl, traffic.pcap and its index, each
 * where its ring is on and, but for the log, holds something. They are written into spools in
 * `dir_fd`. A part that cannot be written costs itself; the ledger says why. Fails only when the
 * bundle cannot take one.
 */
bugpack_status bp_recorded_add(bp_snapshot *snapshot, int dir_fd, bp_bundle *bundle,
                               bugpack_error *error);

#endif
