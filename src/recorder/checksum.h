/*
 * The Internet checksum (RFC 1071).
 */
#ifndef BP_RECORDER_CHECKSUM_H
#define BP_RECORDER_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/*
 * Adds `byte_count` bytes to a running sum that began as 0. All pieces but the last have an even
 * length. A sum holds 4 GiB before it could overflow.
 */
uint64_t bp_checksum_add(uint64_t sum, const void *bytes, size_t byte_count);

/* The sum as a header has it: complemented, to be stored with the high byte first. */
uint16_t bp_checksum_fold(uint64_t sum);

#endif
