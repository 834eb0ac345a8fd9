#include "ring/recovery_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

/* Reads what can be read; the rest, behind the end of the file or on a bad disk, is zeros. */
static void read_or_zero(int fd, uint64_t from, unsigned char *bytes, size_t byte_count) {
    size_t done = 0;
    while (done < byte_count) {
        ssize_t got = pread(fd, bytes + done, byte_count - done, (off_t)(from + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        done += (size_t)got;
    }
    memset(bytes + done, 0, byte_count - done);
}

/* The bytes at `offset`, at most a window full, and valid until the next call. */
static const unsigned char *see(bp_recovery_scan *scan, uint64_t offset, size_t byte_count) {
    if (offset < scan->window_offset ||
        offset + byte_count > scan->window_offset + scan->window_bytes) {
        uint64_t left = scan->capacity - offset;
        scan->window_offset = offset;
        scan->window_bytes =
            left < BP_RECOVERY_WINDOW_BYTES ? (size_t)left : BP_RECOVERY_WINDOW_BYTES;
        read_or_zero(scan->fd, BP_FRAME_DATA_START + offset, scan->window, scan->window_bytes);
    }
    return scan->window + (size_t)(offset - scan->window_offset);
}

static void take_hint(bp_recovery_scan *scan, const bp_frame_page *page) {
    uint64_t head = page->head;
    uint64_t tail = page->tail;
    scan->has_hint = tail <= head && head - tail <= page->capacity && (head | tail) % 8 == 0;
    scan->head_offset = head % page->capacity;
    scan->free_bytes = page->capacity - (head - tail);
}

bugpack_status bp_recovery_open(bp_recovery_scan *scan, int fd, bugpack_error *error) {
    bp_frame_page page;
    read_or_zero(fd, 0, (unsigned char *)&page, sizeof page);
    if (page.magic != BP_FRAME_MAGIC || page.check != bp_frame_page_check(&page)) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "the file does not begin like a ring");
    }
    if (page.version != BP_FRAME_VERSION || page.data_start != BP_FRAME_DATA_START ||
        page.capacity < BP_FRAME_CAPACITY_MIN || page.capacity > BP_FRAME_CAPACITY_MAX ||
        page.capacity % BP_FRAME_CAPACITY_MIN != 0) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT,
                       "the file is no ring that this version can read");
    }
    *scan = (bp_recovery_scan){.fd = fd,
                               .capacity = page.capacity,
                               .seed = page.seed,
                               .refused_count = page.refused_count,
                               .patience_bytes = 4 * page.capacity};
    take_hint(scan, &page);
    scan->window = malloc(BP_RECOVERY_WINDOW_BYTES);
    return scan->window != NULL ? BUGPACK_OK : bp_fail_memory(error, "salvage a ring");
}

void bp_recovery_close(bp_recovery_scan *scan) {
    free(scan->window);
    scan->window = NULL;
}

void bp_recovery_restart(bp_recovery_scan *scan) {
    scan->window_bytes = 0;
    scan->patience_bytes = 4 * scan->capacity;
}

/* Hashes a payload that does not fit into the window, piece by piece. */
static uint64_t mark_in_pieces(bp_recovery_scan *scan, uint64_t offset,
                               const bp_ring_record *record) {
    bp_frame_hash hash;
    bp_frame_hash_begin(&hash, scan->seed, offset, record);
    uint64_t at = offset + sizeof(bp_frame);
    uint64_t end = at + record->payload_bytes;
    while (at < end) {
        uint64_t piece_end = (at / BP_RECOVERY_WINDOW_BYTES + 1) * BP_RECOVERY_WINDOW_BYTES;
        size_t piece = (size_t)((piece_end < end ? piece_end : end) - at);
        bp_frame_hash_add(&hash, at, see(scan, at, piece), piece);
        at += piece;
    }
    return bp_frame_hash_end(&hash);
}

uint64_t bp_recovery_frame(bp_recovery_scan *scan, uint64_t offset, bp_ring_record *ret_record) {
    uint64_t left = scan->capacity - offset;
    if (left < sizeof(bp_frame)) {
        return 0;
    }
    const unsigned char *at = see(scan, offset, sizeof(bp_frame));
    uint64_t mark;
    bp_ring_record record;
    memcpy(&mark, at, sizeof mark);
    memcpy(&record, at + offsetof(bp_frame, record), sizeof record);
    uint64_t frame_bytes = bp_frame_bytes(record.payload_bytes);
    if (!bp_frame_is_beginning(mark, scan->seed, offset, &record) || record.sequence == 0 ||
        frame_bytes > left || frame_bytes > scan->capacity / 4 ||
        frame_bytes > scan->patience_bytes) {
        return 0;
    }
    uint64_t found;
    if (frame_bytes <= BP_RECOVERY_WINDOW_BYTES) {
        at = see(scan, offset, (size_t)frame_bytes);
        found = bp_frame_mark(scan->seed, offset, &record, at + sizeof(bp_frame));
    } else {
        found = mark_in_pieces(scan, offset, &record);
    }
    if (found != mark) {
        scan->patience_bytes -= frame_bytes;
        return 0;
    }
    *ret_record = record;
    return frame_bytes;
}

bool bp_recovery_is_pad(bp_recovery_scan *scan, uint64_t offset) {
    uint64_t mark;
    memcpy(&mark, see(scan, offset, sizeof mark), sizeof mark);
    return mark == bp_frame_pad_mark(scan->seed, offset);
}

/* How far into the free space `offset` lies; the space begins at the head and may go over the end.
 */
static uint64_t into_free(const bp_recovery_scan *scan, uint64_t offset) {
    return offset >= scan->head_offset ? offset - scan->head_offset
                                       : offset + scan->capacity - scan->head_offset;
}

uint64_t bp_recovery_skip_free(const bp_recovery_scan *scan, uint64_t offset) {
    if (!scan->has_hint) {
        return offset;
    }
    uint64_t into = into_free(scan, offset);
    if (into >= scan->free_bytes) {
        return offset;
    }
    uint64_t end = offset + (scan->free_bytes - into);
    return end < scan->capacity ? end : scan->capacity;
}

bool bp_recovery_is_damage(bp_recovery_scan *scan, uint64_t offset) {
    if (scan->has_hint) {
        return into_free(scan, offset) >= scan->free_bytes;
    }
    uint64_t word;
    memcpy(&word, see(scan, offset, sizeof word), sizeof word);
    return word != 0;
}

bugpack_status bp_recovery_give(bp_recovery_scan *scan, uint64_t offset,
                                const bp_ring_record *record, bp_sink *sink, void *context) {
    uint64_t frame_bytes = bp_frame_bytes(record->payload_bytes);
    if (frame_bytes <= BP_RECOVERY_WINDOW_BYTES) {
        const unsigned char *at = see(scan, offset, (size_t)frame_bytes);
        return sink(context, at + offsetof(bp_frame, record),
                    (size_t)frame_bytes - offsetof(bp_frame, record));
    }
    bugpack_status status = sink(context, record, sizeof *record);
    uint64_t at = offset + sizeof(bp_frame);
    uint64_t end = offset + frame_bytes;
    while (status == BUGPACK_OK && at < end) {
        uint64_t left = end - at;
        size_t piece = left < BP_RECOVERY_WINDOW_BYTES ? (size_t)left : BP_RECOVERY_WINDOW_BYTES;
        status = sink(context, see(scan, at, piece), piece);
        at += piece;
    }
    return status;
}
