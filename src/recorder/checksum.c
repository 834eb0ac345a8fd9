#include "recorder/checksum.h"

#include <string.h>

/*
 * Sums 32 bits at a time in the machine's own byte order: a one's complement sum comes out the same
 * whatever the order, but for its own two bytes (RFC 1071, 2 B), which the fold puts right.
 */
uint64_t bp_checksum_add(uint64_t sum, const void *bytes, size_t byte_count) {
    const unsigned char *at = bytes;
    for (; byte_count >= 8; byte_count -= 8, at += 8) {
        uint32_t words[2];
        memcpy(words, at, sizeof words);
        sum += (uint64_t)words[0] + words[1];
    }
    if (byte_count > 0) {
        uint32_t words[2] = {0};
        memcpy(words, at, byte_count);
        sum += (uint64_t)words[0] + words[1];
    }
    return sum;
}

uint16_t bp_checksum_fold(uint64_t sum) {
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    uint16_t folded = (uint16_t)~sum;
    unsigned char stored[2];
    memcpy(stored, &folded, sizeof stored);
    return (uint16_t)(stored[0] << 8 | stored[1]);
}
