/*
 * Zips for tests of whoever reads them: made byte by byte, so that every field can lie.
 */
#ifndef TESTS_SUPPORT_MADE_ZIP_H
#define TESTS_SUPPORT_MADE_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/reader.h"
#include "base/buffer.h"

enum { MADE_ZIP_MEMBER_MAX = 8 };

typedef struct made_member {
    const char *name;
    const char *content; /* a text; "" is fine */
    bool is_deflated;
} made_member;

/* A zip, and where its headers are. */
typedef struct made_zip {
    bp_buffer bytes;
    size_t local[MADE_ZIP_MEMBER_MAX], central[MADE_ZIP_MEMBER_MAX];
    size_t directory, end;
} made_zip;

/* A whole zip as a report is one: what is to be wrong with it is put in afterwards. */
void made_zip_build(made_zip *zip, const made_member *members, size_t count);

void made_zip_release(made_zip *zip);

void made_zip_put16(made_zip *zip, size_t at, unsigned value);
void made_zip_put32(made_zip *zip, size_t at, uint32_t value);

/*
 * Opens bytes as a file without a name, whose descriptor is the caller's to close; -1 when that
 * fails.
 */
int made_zip_file(const void *bytes, size_t byte_count);

/* The bytes of one entry into a buffer of its own, at most `max_bytes`. */
bugpack_status made_zip_read(bp_archive_reader *reader, const char *name, uint64_t max_bytes,
                             bp_buffer *out, bugpack_error *error);

#endif
