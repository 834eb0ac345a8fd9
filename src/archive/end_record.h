/*
 * The end of a zip, which says where its directory is.
 */
#ifndef BP_ARCHIVE_END_RECORD_H
#define BP_ARCHIVE_END_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "archive/zip_format.h"

/* With everything that zip64 adds. */
#define BP_END_RECORD_BYTES_MAX (BP_ZIP64_END_BYTES + BP_ZIP64_LOCATOR_BYTES + BP_ZIP_END_BYTES)

typedef struct bp_end_record {
    uint64_t entry_count;
    uint64_t directory_offset, directory_bytes;
} bp_end_record;

/*
 * Reads the last `byte_count` bytes of a file of `file_bytes`: at most BP_END_RECORD_BYTES_MAX, and
 * less only where the file is that short. The directory ends where the record begins. Returns NULL,
 * or what is wrong as the end of a sentence.
 */
const char *bp_end_record_parse(const unsigned char *bytes, size_t byte_count, uint64_t file_bytes,
                                bp_end_record *ret_record);

#endif
