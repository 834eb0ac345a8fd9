/*
 * A report within a number of bytes: entries of the least worth (model/entry.h) are left out, or
 * lose their oldest records.
 */
#ifndef BP_MODEL_FIT_H
#define BP_MODEL_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "archive/archive.h"

/* The smallest limit: metadata.json and a manifest fit. */
#define BP_FIT_MIN_BYTES ((uint64_t)64 << 10)

/* True for 0, which is no limit, and for a limit that every report can keep. */
static inline bool bp_fit_is_limit(uint64_t max_bytes) {
    return max_bytes == 0 || max_bytes >= BP_FIT_MIN_BYTES;
}

/* An entry that has lost bytes. */
typedef struct bp_fit_loss {
    const char *name;
    uint64_t bytes, lost_bytes;
    char sha256[BP_SHA256_TEXT_BYTES]; /* of what is left; "" where nothing is */
    char reason[160];
} bp_fit_loss;

/* The manifest of the archive. */
typedef struct bp_fit_manifest {
    void (*take)(void *context, const bp_fit_loss *loss); /* of an entry, which may lose again */
    /* Adds it to the archive, as the last entry, with the losses so far. */
    bugpack_status (*add)(void *context, bugpack_error *error);
    void *context;
} bp_fit_manifest;

/*
 * Adds the manifest, and makes the entries of an archive fit into a zip of `max_bytes`; with 0 they
 * stay as they are. metadata.json stays in any case. An entry that can be cut leaves half of the
 * room to those of less worth.
 *
 * Errors: LIMIT, where metadata.json and the manifest alone are larger; those of bp_archive_change
 * and of `add`.
 */
bugpack_status bp_fit(bp_archive *archive, uint64_t max_bytes, const bp_fit_manifest *manifest,
                      bugpack_error *error);

#endif
