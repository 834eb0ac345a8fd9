/*
 * Names of functions and lines of source for the frames of a report, by whoever has the debug files
 * of what it ran.
 */
#ifndef BP_ENTRIES_SYMBOLIZE_H
#define BP_ENTRIES_SYMBOLIZE_H

#include <stdint.h>

#include "entries/rewrite_report.h"
#include "json/tree.h"
#include "model/stacks.h"
#include "platform/crash_page.h"

enum { BP_SYMBOLIZE_UNNAMED_MAX = 16 };

typedef struct bp_symbolizer {
    bp_frame_finder finder;
    uint64_t named_count; /* frames that have got a name or a line */
    /* Files with frames that have no name; the caller frees their paths. */
    struct {
        char *path, build_id[BP_CRASH_BUILD_ID_BYTES];
    } unnamed[BP_SYMBOLIZE_UNNAMED_MAX];
    size_t unnamed_count;
    /* The document that was changed last, which two entries are made of. */
    bp_json_tree *document;
    char *document_name;
    uint64_t document_count; /* of its frames */
} bp_symbolizer;

/* Frees the last document; not the symbolizer. */
void bp_symbolizer_release(bp_symbolizer *symbolizer);

/* Its context is a bp_symbolizer. Changes crash.json, stacks.json and stacks.txt, also those of
 * further processes, and counts frames. Errors: those of bp_json_tree_read and of the reader. */
bp_entry_changer bp_symbolize_entry;

#endif
