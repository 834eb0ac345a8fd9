/*
 * Artefacts filled by hand, for the tests of what is printed and of the published schemas. "Full"
 * has everything that can be known, and hostile bytes in every text; "bare" only what must be.
 */
#ifndef TESTS_SUPPORT_MODEL_SAMPLES_H
#define TESTS_SUPPORT_MODEL_SAMPLES_H

#include "model/disconnect.h"
#include "model/heap_state.h"
#include "model/manifest.h"
#include "model/metadata.h"
#include "model/metrics.h"
#include "model/pedantic_summary.h"
#include "model/process.h"
#include "model/stacks.h"

/* All of them static: nothing is to be released. */
extern const bp_metadata sample_metadata_full, sample_metadata_bare,
    sample_metadata_without_process;
extern const bp_metrics sample_metrics_full, sample_metrics_bare;
extern const bp_process_facts sample_process_full, sample_process_bare;
extern const bugpack_heap_state sample_heap_state_full, sample_heap_state_bare;

/* A blocked thread that three libraries and no file have code of, a running one, one that moved. */
extern const bp_stacks sample_stacks_full, sample_stacks_bare;

extern const bp_disconnect sample_disconnect_full, sample_disconnect_bare;
extern const bp_hang sample_hang;

#define SAMPLE_LEDGER_COUNT 4
extern const bp_manifest_line sample_ledger[SAMPLE_LEDGER_COUNT];

#define SAMPLE_TRIGGER_COUNT 2
extern const bp_trigger_entry sample_triggers[SAMPLE_TRIGGER_COUNT];

/* A ledger of everything above, and one of nothing. */
extern const bp_manifest sample_manifest_full, sample_manifest_bare;

/* What pedantic mode leaves: with a gap of each sort, and with one that tells the least. */
extern const bp_pedantic_summary sample_summary_full, sample_summary_bare;

#endif
