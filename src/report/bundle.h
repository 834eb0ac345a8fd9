/*
 * The artefacts of one report on their way into one zip.
 */
#ifndef BP_REPORT_BUNDLE_H
#define BP_REPORT_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/cancel.h"
#include "report/writer.h"

typedef struct bp_bundle bp_bundle;

/* An empty bundle. NULL when there is no memory. */
bp_bundle *bp_bundle_new(void);
void bp_bundle_free(bp_bundle *bundle);

/*
 * Takes over what a writer holds, its spool too, as the artefact `name`, which is copied. Artefacts
 * with content become entries of the zip; all of them become lines of the ledger. The writer is
 * empty afterwards. A spool that cannot be written to its end costs its artefact, not the report:
 * the ledger says that it failed, and why. On failure nothing was taken.
 */
bugpack_status bp_bundle_add(bp_bundle *bundle, const char *name, bugpack_writer *writer,
                             bugpack_error *error);

/*
 * The last step of a collector: adds what was made where `made` is OK, else passes `made` on as the
 * failure of the report. The writer is released in any case.
 */
bugpack_status bp_bundle_put(bp_bundle *bundle, const char *name, bugpack_status made,
                             bugpack_writer *writer, bugpack_error *error);

/* What triggers came to so far, for the ledger; borrowed until the bundle was published. */
void bp_bundle_set_triggers(bp_bundle *bundle, const bp_trigger_entry *triggers, size_t count);

/* How many artefacts are missing; their names and reasons, a line each, cut where `text` ends. */
uint32_t bp_bundle_missing(const bp_bundle *bundle, char *text, size_t text_bytes);

/* Who may stop a publication, and who hears how far it is, on the publishing thread. */
typedef struct bp_watch {
    const bp_cancel_token *token;
    void (*on_bytes)(void *context, uint64_t done_bytes, uint64_t total_bytes); /* NULL: nobody */
    void *context;
} bp_watch;

/* What to write, and where. */
typedef struct bp_publication {
    int dir_fd;           /* borrowed */
    const char *dir_name; /* for error sentences */
    const char *stem, *extension;
    const char *report_id;
    uint64_t wall_ns;      /* the time that all entries carry: the trigger's */
    const bp_watch *watch; /* NULL: nobody watches */
} bp_publication;

/*
 * Puts the artefacts in their fixed order, adds the ledger behind them, writes the zip and
 * publishes it: afterwards it is on disk whole, under `ret_name` (without directory), or there is
 * nothing. CANCELLED or TIMEOUT when the watch's halt was due before it got its name.
 */
bugpack_status bp_bundle_publish(bp_bundle *bundle, const bp_publication *publication,
                                 char *ret_name, size_t name_bytes, uint64_t *ret_zip_bytes,
                                 bugpack_error *error);

#endif
