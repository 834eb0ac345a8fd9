/*
 * One entry: where its bytes are, and the zip_source through which libzip copies them.
 */
#ifndef BP_ARCHIVE_ENTRY_H
#define BP_ARCHIVE_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include <zip.h>

#include "archive/bytes.h"
#include "archive/pack.h"
#include "archive/sink.h"

typedef struct bp_entry {
    struct bp_entry *next;
    bp_bytes plain;
    uint64_t wall_ns;
    zip_uint64_t index; /* in libzip's list */
    const bp_sink *sink;
    bp_packed packed;       /* valid after bp_pack; freed as soon as libzip has copied it */
    uint64_t position;      /* how far libzip has read */
    uint64_t header_offset; /* of the local header, once it is written */
    uint64_t end_offset;    /* behind the data, once they are written */
    zip_error_t zip_error;
} bp_entry;

/*
 * The source of an entry that lives at least as long; reading it needs `packed`. NULL when memory
 * is short.
 */
zip_source_t *bp_entry_source(bp_entry *entry);

/* Frees it with what it still holds. NULL is fine. Only after libzip is through with its source. */
void bp_entry_free(bp_entry *entry);

#endif
