#include "ring/frame.h"

#include <string.h>

#include "base/hash.h"
#include "base/id.h"

uint64_t bp_frame_new_seed(void) {
    char id[BP_ID_BYTES];
    bp_id_new(id);
    return XXH3_64bits(id, sizeof id);
}

uint64_t bp_frame_page_check(const bp_frame_page *page) {
    return XXH3_64bits(page, offsetof(bp_frame_page, check));
}

uint64_t bp_frame_owner_check(const bp_frame_page *page, const char *session_id) {
    const uint64_t fields[] = {page->kind, page->number, page->seed};
    uint64_t check =
        XXH3_64bits_withSeed(session_id, strlen(session_id), XXH3_64bits(fields, sizeof fields));
    return check != 0 ? check : 1;
}

static inline uint64_t hash_record(uint64_t seed, uint64_t offset, const bp_ring_record *record) {
    return XXH3_64bits_withSeed(record, sizeof *record, seed ^ offset);
}

static inline uint64_t join(uint64_t record, uint64_t payload) {
    /* The record's hash is mixed into the lower half too, so that no payload determines it. */
    uint64_t mixed = (payload ^ record) * 0x9e3779b97f4a7c15u;
    return (record & 0xffffffff00000000u) | (mixed >> 32) | 1;
}

/* Lines of a payload that is large. */
typedef struct line_hash {
    uint64_t hash;
    size_t gathered;
    unsigned char lines[1024];
} line_hash;

static void hash_lines(line_hash *it) {
    uint64_t lines = XXH3_64bits(it->lines, it->gathered);
    it->hash = ((it->hash << 29) | (it->hash >> 35)) * 0x9fb21c651e98df25u + lines;
    it->gathered = 0;
}

/* A line cut short by the end of its sector or of the payload is padded with zeros. */
static inline void gather(line_hash *it, const unsigned char *bytes, size_t byte_count) {
    unsigned char *line = it->lines + it->gathered;
    if (byte_count < BP_FRAME_LINE) {
        memset(line, 0, BP_FRAME_LINE);
        memcpy(line, bytes, byte_count);
    } else {
        memcpy(line, bytes, BP_FRAME_LINE);
    }
    it->gathered += BP_FRAME_LINE;
    if (it->gathered == sizeof it->lines) {
        hash_lines(it);
    }
}

/* Lines end with their sector, so that each sector has one. */
static uint64_t hash_large(uint64_t offset, const unsigned char *payload, size_t byte_count) {
    line_hash it; /* not the lines, which would take as long to clear as to hash */
    it.hash = it.gathered = 0;
    size_t sector_end = BP_FRAME_SECTOR - (size_t)(offset % BP_FRAME_SECTOR);
    gather(&it, payload, sector_end);
    for (size_t at = sector_end; at < byte_count; at += BP_FRAME_SECTOR) {
        gather(&it, payload + at, byte_count - at);
    }
    if (it.gathered > 0) {
        hash_lines(&it);
    }
    return it.hash;
}

uint64_t bp_frame_mark(uint64_t seed, uint64_t offset, const bp_ring_record *record,
                       const unsigned char *payload) {
    uint64_t byte_count = bp_frame_payload_bytes(record);
    return join(hash_record(seed, offset, record),
                byte_count <= BP_FRAME_HASH_WHOLE
                    ? XXH3_64bits(payload, byte_count)
                    : hash_large(offset + sizeof(bp_frame), payload, byte_count));
}

void bp_frame_write(unsigned char *data, uint64_t offset, uint64_t seed,
                    const bp_ring_record *record, const struct iovec *parts, size_t part_count) {
    bp_frame *frame = (void *)(data + offset);
    atomic_store_explicit(&frame->mark, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_release);
    frame->record = *record;
    unsigned char *payload = (unsigned char *)frame + sizeof *frame;
    unsigned char *at = payload;
    for (size_t i = 0; i < part_count; i++) {
        if (parts[i].iov_len > 0) {
            memcpy(at, parts[i].iov_base, parts[i].iov_len);
            at += parts[i].iov_len;
        }
    }
    uint64_t payload_bytes = bp_frame_payload_bytes(record);
    size_t padding = (size_t)(bp_frame_padded(payload_bytes) - payload_bytes);
    for (size_t i = 0; i < padding; i++) {
        at[i] = 0;
    }
    atomic_store_explicit(&frame->mark, bp_frame_mark(seed, offset, record, payload),
                          memory_order_release);
}

#if defined(__has_attribute)
#if __has_attribute(no_sanitize)
__attribute__((no_sanitize("thread")))
#endif
#endif
void
bp_frame_copy_racing(void *to, const void *from, size_t byte_count) {
    uint64_t *out = to;
    const volatile uint64_t *in = from;
    for (size_t i = 0; i < byte_count / sizeof *out; i++) {
        out[i] = in[i];
    }
}

bool bp_frame_is_beginning(uint64_t mark, uint64_t seed, uint64_t offset,
                           const bp_ring_record *record) {
    return (mark & 1) == 1 && ((hash_record(seed, offset, record) ^ mark) >> 32) == 0;
}
