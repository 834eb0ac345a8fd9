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

uint64_t bp_frame_pad_mark(uint64_t seed, uint64_t offset) {
    uint64_t mark = XXH3_64bits_withSeed(&offset, sizeof offset, seed) & ~(uint64_t)1;
    return mark != 0 ? mark : 2;
}

static inline uint64_t hash_record(uint64_t seed, uint64_t offset, const bp_ring_record *record) {
    return XXH3_64bits_withSeed(record, sizeof *record, seed ^ offset);
}

static inline uint64_t join(uint64_t record, uint64_t payload) {
    /* The record's hash is mixed into the lower half too, so that no payload determines it. */
    uint64_t mixed = (payload ^ record) * 0x9e3779b97f4a7c15u;
    return (record & 0xffffffff00000000u) | (mixed >> 32) | 1;
}

void bp_frame_hash_begin(bp_frame_hash *hash, uint64_t seed, uint64_t offset,
                         const bp_ring_record *record) {
    hash->record = hash_record(seed, offset, record);
    hash->payload = 0;
    hash->gathered = 0;
    hash->is_whole = record->payload_bytes <= BP_FRAME_HASH_WHOLE;
}

static void hash_lines(bp_frame_hash *hash) {
    uint64_t lines = XXH3_64bits(hash->lines, hash->gathered);
    hash->payload = ((hash->payload << 29) | (hash->payload >> 35)) * 0x9fb21c651e98df25u + lines;
    hash->gathered = 0;
}

/* A line cut short by the end of its sector or of the payload, padded with zeros. */
static void gather_short(bp_frame_hash *hash, const unsigned char *bytes, size_t byte_count) {
    unsigned char *line = hash->lines + hash->gathered;
    memset(line, 0, BP_FRAME_LINE);
    memcpy(line, bytes, byte_count);
    hash->gathered += BP_FRAME_LINE;
    if (hash->gathered == sizeof hash->lines) {
        hash_lines(hash);
    }
}

void bp_frame_hash_add(bp_frame_hash *hash, uint64_t offset, const unsigned char *bytes,
                       size_t byte_count) {
    if (hash->is_whole) {
        hash->payload = XXH3_64bits(bytes, byte_count);
        return;
    }
    /* Lines end with their sector, so that the hash does not depend on how the payload is cut. */
    size_t at = BP_FRAME_SECTOR - (size_t)(offset % BP_FRAME_SECTOR);
    size_t first = at < byte_count ? at : byte_count;
    gather_short(hash, bytes, first < BP_FRAME_LINE ? first : BP_FRAME_LINE);
    for (; at + BP_FRAME_LINE <= byte_count; at += BP_FRAME_SECTOR) {
        memcpy(hash->lines + hash->gathered, bytes + at, BP_FRAME_LINE);
        hash->gathered += BP_FRAME_LINE;
        if (hash->gathered == sizeof hash->lines) {
            hash_lines(hash);
        }
    }
    if (at < byte_count) {
        gather_short(hash, bytes + at, byte_count - at);
    }
}

uint64_t bp_frame_hash_end(bp_frame_hash *hash) {
    if (hash->gathered > 0) {
        hash_lines(hash);
    }
    return join(hash->record, hash->payload);
}

uint64_t bp_frame_mark(uint64_t seed, uint64_t offset, const bp_ring_record *record,
                       const unsigned char *payload) {
    if (record->payload_bytes <= BP_FRAME_HASH_WHOLE) {
        return join(hash_record(seed, offset, record), XXH3_64bits(payload, record->payload_bytes));
    }
    bp_frame_hash hash;
    bp_frame_hash_begin(&hash, seed, offset, record);
    bp_frame_hash_add(&hash, offset + sizeof(bp_frame), payload, record->payload_bytes);
    return bp_frame_hash_end(&hash);
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
    size_t padding = (size_t)(bp_frame_padded(record->payload_bytes) - record->payload_bytes);
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
