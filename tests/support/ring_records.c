#include "support/ring_records.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

/* Word `i` of a number's payload: every word of every record is another one. */
static uint64_t word(uint64_t number, size_t i) {
    uint64_t mixed = (number * 0x9e3779b97f4a7c15u) ^ ((uint64_t)i * 0xbf58476d1ce4e5b9u);
    return mixed ^ (mixed >> 29);
}

uint64_t append_number(bp_ring *ring, uint32_t tag, uint64_t number, size_t byte_count) {
    unsigned char *bytes = malloc(byte_count + 8);
    CHECK(bytes != NULL);
    for (size_t i = 0; i * 8 < byte_count; i++) {
        uint64_t value = word(number, i);
        memcpy(bytes + i * 8, &value, sizeof value);
    }
    size_t cut = byte_count / 3;
    struct iovec parts[] = {{.iov_base = bytes, .iov_len = cut},
                            {.iov_base = NULL, .iov_len = 0},
                            {.iov_base = bytes + cut, .iov_len = byte_count - cut}};
    uint64_t sequence = bp_ring_append(ring, tag, parts, sizeof parts / sizeof parts[0]);
    free(bytes);
    return sequence;
}

bool is_number(const void *payload, size_t byte_count, uint64_t number) {
    const unsigned char *bytes = payload;
    for (size_t i = 0; i * 8 < byte_count; i++) {
        uint64_t value = word(number, i);
        size_t left = byte_count - i * 8;
        if (memcmp(bytes + i * 8, &value, left < 8 ? left : 8) != 0) {
            return false;
        }
    }
    return true;
}

bugpack_status keep_in_buffer(void *buffer, const void *bytes, size_t byte_count) {
    return bp_buffer_append(buffer, bytes, byte_count);
}

const bp_ring_record *next_record(const bp_buffer *records, size_t *offset,
                                  const void **ret_payload) {
    if (*offset == records->size) {
        return NULL;
    }
    CHECK(records->size - *offset >= sizeof(bp_ring_record));
    const bp_ring_record *record = (const void *)(records->data + *offset);
    size_t record_bytes = sizeof *record + ((record->payload_bytes + 7u) & ~(size_t)7);
    CHECK(records->size - *offset >= record_bytes);
    *ret_payload = (const char *)record + sizeof *record;
    *offset += record_bytes;
    return record;
}
