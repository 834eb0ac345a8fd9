/*
 * What a bundle is made of, for the files that collect it and write it.
 */
#ifndef BP_REPORT_BUNDLE_PRIVATE_H
#define BP_REPORT_BUNDLE_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "report/bundle.h"

struct bp_artefact {
    bp_buffer content;
    bp_temp_file temp_file; /* where it is open, it is the content */
    bp_manifest_line line;  /* its name is ours to free */
    size_t order;           /* of adding, to keep the sort stable */
};

struct bp_bundle {
    struct bp_artefact *artefacts;
    size_t count;
    size_t capacity;
    const bp_trigger_entry *triggers;
    size_t trigger_count;
    bp_buffer manifest;
};

/* The size of its content, wherever that lies. */
uint64_t bp_artefact_bytes(const struct bp_artefact *artefact);

#endif
