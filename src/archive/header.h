/*
 * Parses and checks the headers of a zip: of an entry, in the directory and before its bytes; and
 * the end, which says where the directory is.
 */
#ifndef BP_ARCHIVE_HEADER_H
#define BP_ARCHIVE_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "archive/directory.h"
#include "archive/zip_format.h"

/*
 * Parses the header in the directory that begins at `bytes`, of which `available` are there. The
 * name points into them. Returns NULL with its length, or what is wrong as the end of a sentence;
 * then `ret_entry->name` is NULL, or the name with its length where that much is known.
 */
const char *bp_header_parse_central(const unsigned char *bytes, size_t available,
                                    bp_directory_entry *ret_entry, size_t *ret_length);

/* How long the header is whose first BP_ZIP_LOCAL_BYTES bytes are given; 0 when it is none. */
size_t bp_header_local_length(const unsigned char *bytes);

/* Whether a whole header before the bytes says what the directory says. NULL, or what differs. */
const char *bp_header_check_local(const unsigned char *bytes, const bp_directory_entry *entry);

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
