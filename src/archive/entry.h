/*
 * Reads one entry of a zip, step by step. Every byte that comes out is counted before anybody gets
 * it.
 */
#ifndef BP_ARCHIVE_ENTRY_H
#define BP_ARCHIVE_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "archive/directory.h"
#include "archive/inflate.h"
#include "base/sink.h"

/* The caller fills in the first seven; what they point to is the caller's. */
typedef struct bp_entry_reading {
    int fd;
    const char *path; /* for sentences */
    const bp_directory_entry *entry;
    bp_inflater *inflater;
    bp_sink *sink;
    void *context;
    bugpack_error *error;
    uint64_t at, left; /* what is still to be read of the zip */
    uint64_t done;
    uint32_t crc;
    bool is_over;
    bool is_told; /* the failure has its sentence */
} bp_entry_reading;

/*
 * In turn, the second while there is something left: finds the bytes of the entry; passes on what
 * the next of them hold, at most `max_bytes`, which are read to `piece`; checks the end. Errors:
 * those of bp_archive_reader_read.
 */
bugpack_status bp_entry_begin(bp_entry_reading *reading);
bugpack_status bp_entry_step(bp_entry_reading *reading, char *piece, size_t max_bytes);
bugpack_status bp_entry_check(bp_entry_reading *reading);

#endif
