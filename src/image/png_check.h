/*
 * Checks a PNG while it is read: libpng decodes it, row by row, and keeps no picture.
 */
#ifndef BP_IMAGE_PNG_CHECK_H
#define BP_IMAGE_PNG_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

typedef struct bp_png_check bp_png_check;

/* A picture of over `max_bytes` after decompression is refused. NULL without memory. */
bp_png_check *bp_png_check_new(uint64_t max_bytes);
/* NULL is fine. */
void bp_png_check_free(bp_png_check *check);

/* CORRUPT with what is wrong; LIMIT for too large a picture; NO_MEMORY. All of them are final. */
bugpack_status bp_png_check_write(bp_png_check *check, const void *bytes, size_t byte_count,
                                  bugpack_error *error);
/* The same for the end of the file. `ret_bytes` is the size of the picture. */
bugpack_status bp_png_check_end(bp_png_check *check, uint64_t *ret_bytes, bugpack_error *error);

#endif
