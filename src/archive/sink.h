/*
 * Where libzip writes to: a zip_source over a descriptor that somebody else staged. libzip opens,
 * renames and removes nothing.
 */
#ifndef BP_ARCHIVE_SINK_H
#define BP_ARCHIVE_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include <zip.h>

#include "archive/stop.h"

/*
 * In the caller's storage, and alive for as long as the source that was made of it. `stop` is
 * borrowed: it is asked before every write, and is told of the first write that failed.
 */
typedef struct bp_sink {
    int fd; /* borrowed */
    bp_stop *stop;
    uint64_t write_offset;
    uint64_t read_offset;
    uint64_t size; /* the end of what was written */
    zip_error_t zip_error;
} bp_sink;

/*
 * Makes the source that zip_open_from_source takes, with ZIP_CREATE and ZIP_TRUNCATE. NULL when
 * memory is short. zip_source_free frees it, or libzip once it owns it.
 */
zip_source_t *bp_sink_source(bp_sink *sink, int fd, bp_stop *stop);

/*
 * All of a range, whatever signals arrive, beside what libzip does. False on failure, with its
 * errno in `stop`; where the file ends inside the range that is EIO.
 */
bool bp_sink_write_at(bp_sink *sink, uint64_t offset, const void *bytes, uint64_t byte_count);
bool bp_sink_read_at(bp_sink *sink, uint64_t offset, void *bytes, uint64_t byte_count);

#endif
