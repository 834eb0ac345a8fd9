#include "archive/stored.h"

#include <string.h>

static const size_t block_bytes = 65535;

size_t bp_stored_chunk(const unsigned char *bytes, size_t byte_count, bool is_last,
                       unsigned char *out) {
    unsigned char *next = out;
    while (byte_count > 0) {
        size_t step = byte_count < block_bytes ? byte_count : block_bytes;
        *next++ = is_last && step == byte_count; /* the last-block bit; the type is 0 */
        *next++ = (unsigned char)step;
        *next++ = (unsigned char)(step >> 8);
        *next++ = (unsigned char)~step;
        *next++ = (unsigned char)(~step >> 8);
        memcpy(next, bytes, step);
        next += step;
        bytes += step;
        byte_count -= step;
    }
    return (size_t)(next - out);
}
