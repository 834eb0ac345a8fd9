/*
 * JSON numbers from the inside: checking one, and writing one that is not an integer.
 */
#ifndef BP_JSON_NUMBER_H
#define BP_JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Checks the number that begins at `text`. Returns NULL when it is well-formed, with its length.
 * Otherwise returns what is wrong, static, with the offset of it.
 */
const char *bp_json_check_number(const unsigned char *text, size_t byte_count, size_t *ret_at);

/* Room for the largest double, 309 digits, with its sign, point, 9 decimals and NUL. */
#define BP_JSON_NUMBER_BYTES 336

/*
 * Writes a finite value rounded to `decimals` digits (0 to 9), without trailing zeros, with a point
 * whatever the locale says. False when the C library fails to print it.
 */
bool bp_json_write_number(double value, unsigned decimals, char out[BP_JSON_NUMBER_BYTES]);

#endif
