/*
 * Identifiers that nobody can guess or meet twice: 128 random bits from the system.
 */
#ifndef BP_BASE_ID_H
#define BP_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>

/* 32 lower-case hexadecimal digits and a NUL. */
#define BP_ID_BYTES 33
void bp_id_new(char out[BP_ID_BYTES]);

/* Random bytes of the system, at most 256. False where it has none. */
bool bp_random_bytes(void *out, size_t byte_count);

#endif
