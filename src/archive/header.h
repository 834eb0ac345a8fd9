/*
 * One header of an entry: that in the directory, or that before its bytes.
 */
#ifndef BP_ARCHIVE_HEADER_H
#define BP_ARCHIVE_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "archive/directory.h"

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

#endif
