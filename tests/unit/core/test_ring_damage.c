#include "ring/ring.h"

#include <fcntl.h>

#include "ring/chunk.h"
#include "ring/frame.h"
#include "support/ring_records.h"
#include "unit/file_ring.h"
#include "unit/unit.h"

/* A byte and not a word, which would be another byte where the order is the other. */
static void flip(int fd, off_t at, uint8_t bits) {
    uint8_t byte = 0;
    cr_assert(eq(i64, pread(fd, &byte, 1, at), 1));
    byte ^= bits;
    cr_assert(eq(i64, pwrite(fd, &byte, 1, at), 1));
}

/* Where the first chunk begins. */
static off_t first_frame(size_t capacity) {
    return page + (off_t)bp_chunk_divide(capacity).first_offset;
}

static uint64_t frame_bytes(int fd, off_t at) {
    bp_frame frame;
    cr_assert(eq(i64, pread(fd, &frame, sizeof frame, at), sizeof frame));
    return bp_frame_bytes(frame.record.payload_bytes);
}

Test(ring_damage, one_damaged_record_costs_itself_alone) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(8 * page);
    append_numbers(it.ring, 1, 20, 120);
    off_t at = first_frame(8 * page);
    uint64_t lost_bytes = 0;
    for (uint64_t i = 1; i < 5; i++) {
        lost_bytes = frame_bytes(it.fd, at);
        at += (off_t)lost_bytes;
    }
    lost_bytes = frame_bytes(it.fd, at);
    flip(it.fd, at + 40, 1);
    bp_ring_view view = recovery_well(it.fd);
    cr_assert(eq(u64, view.record_count, 19));
    cr_assert(eq(u64, view.last_sequence, 20));
    cr_assert(eq(u64, view.damaged_bytes, lost_bytes));
    cr_assert(eq(u64, view.damaged_count, 1));
    cr_assert(zero(u64, view.evicted_count));
}

Test(ring_damage, what_was_cut_off_or_zeroed_is_counted_and_not_taken_for_evicted) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(16 * page);
    append_numbers(it.ring, 1, 100, 100);
    bp_ring_view whole = recovery_well(it.fd);
    cr_assert(eq(u64, whole.record_count, 100));
    cr_assert(not(whole.is_damaged));
    cr_assert(zero(int, ftruncate(it.fd, 3 * page)));
    bp_ring_view view = recovery_well(it.fd);
    cr_assert(gt(u64, view.damaged_count, 0));
    cr_assert(eq(u64, view.record_count + view.damaged_count, 100));
    cr_assert(zero(u64, view.evicted_count));
    cr_assert(zero(int, ftruncate(it.fd, page)));
    cr_assert(gt(u64, recovery_well(it.fd).damaged_count, 0), "at least one of each chunk");
}

Test(ring_damage, of_a_ring_that_has_evicted_records_those_that_are_damaged_are_counted) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(4 * page);
    append_numbers(it.ring, 1, 500, 60);
    bp_ring_view whole = recovery_well(it.fd);
    cr_assert(not(whole.is_damaged));
    cr_assert(eq(u64, whole.record_count + whole.evicted_count, 500));
    for (off_t at = 3 * page; at < 4 * page; at += 8) {
        write_word(it.fd, at, 0);
    }
    bp_ring_view view = recovery_well(it.fd);
    cr_assert(view.is_damaged);
    cr_assert(eq(u64, view.record_count + view.damaged_count + view.evicted_count, 500));
    cr_assert(lt(u64, view.record_count, whole.record_count));
}

/* Chunks of 4 KiB: the record is in three of them. */
Test(ring_damage, a_record_in_several_chunks_needs_each_of_its_pieces) {
    enum { capacity = 16 * page };
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(capacity);
    append_numbers(it.ring, 1, 5, 20);
    cr_assert(ne(u64, append_number(it.ring, 6, 6, 10000), 0));
    append_numbers(it.ring, 7, 9, 20);
    cr_assert(eq(u64, recovery_well(it.fd).record_count, 9));
    bp_chunk_layout layout = bp_chunk_divide(capacity);
    for (uint64_t chunk = 0; chunk < 3; chunk++) {
        /* In the middle of a chunk, where a sector begins in it or ends the piece. */
        off_t at = (off_t)(page + bp_chunk_offset(&layout, chunk) + 1024);
        at = at / 512 * 512 + (chunk == 2 ? 0 : 512);
        flip(it.fd, at, 1);
        bp_ring_view view = recovery_well(it.fd);
        cr_assert(eq(u64, view.record_count, 8), "piece %d", (int)chunk);
        cr_assert(eq(u64, view.damaged_count, 1));
        cr_assert(view.is_damaged);
        flip(it.fd, at, 1);
    }
    cr_assert(eq(u64, recovery_well(it.fd).record_count, 9));
}

Test(ring_damage, every_sector_of_a_large_record_is_under_its_checksum) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(64 * page);
    cr_assert(ne(u64, append_number(it.ring, 1, 1, 10000), 0));
    off_t first = first_frame(64 * page) + (off_t)sizeof(bp_frame);
    for (off_t at = first; at < first + 10000; at = (at / 512 + 1) * 512) {
        flip(it.fd, at + 1, 1);
        cr_assert(zero(u64, recovery_well(it.fd).record_count), "at %lld", (long long)at);
        flip(it.fd, at + 1, 1);
    }
    cr_assert(eq(u64, recovery_well(it.fd).record_count, 1));
}

Test(ring_damage, what_is_no_ring_is_corrupt) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(page);
    append_numbers(it.ring, 1, 5, 20);
    bp_ring_view view;
    for (off_t at = 0; at < 48; at += 4) { /* every field of the header that never changes */
        flip(it.fd, at, 0x10);
        cr_assert(eq(int, salvage(it.fd, &view), BUGPACK_ERR_CORRUPT), "at %d", (int)at);
        flip(it.fd, at, 0x10);
    }
    cr_assert(zero(int, salvage(it.fd, &view)));
    cr_assert(temp_dir_write(&it.dir, "empty", "", 0));
    int fd = openat(it.dir.fd, "empty", O_RDONLY | O_CLOEXEC);
    cr_assert(eq(int, salvage(fd, &view), BUGPACK_ERR_CORRUPT));
    close(fd);
    cr_assert(eq(int, salvage(it.dir.fd, &view), BUGPACK_ERR_CORRUPT), "a directory");
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

enum { sector = 512, file_bytes = page + 16 * page };

/*
 * Damages the bytes of a ring as disks and hostile hands do; how many of them are left. Of large
 * records only the beginning of each sector is hashed, so with these it is whole sectors.
 */
static size_t damage(unsigned char *bytes, bool has_large_records, uint64_t *state) {
    size_t first = 1 + (size_t)(next_random(state) % (file_bytes / sector - 1));
    size_t count = 1 + (size_t)(next_random(state) % (file_bytes / sector - first));
    unsigned char *from = bytes + first * sector;
    switch (next_random(state) % (has_large_records ? 3 : 4)) {
    case 0:
        return first * sector;
    case 1:
        memset(from, 0, count * sector);
        break;
    case 2:
        for (size_t i = 0; i < count * sector; i++) {
            from[i] = (unsigned char)next_random(state);
        }
        break;
    default:
        for (unsigned flip = 0; flip < 20; flip++) {
            bytes[64 + next_random(state) % (file_bytes - 64)] ^= (unsigned char)(1u << flip % 8);
        }
    }
    return file_bytes;
}

Test(ring_damage, any_damage_costs_records_and_never_gives_a_torn_one) {
    static unsigned char whole[file_bytes], bytes[file_bytes];
    uint64_t state = 88172645463325252u;
    uint64_t damaged_count = 0;
    for (int round = 0; round < 400; round++) {
        CLEANUP(remove_file_ring) file_ring it = make_file_ring(16 * page);
        size_t base = (size_t)(next_random(&state) % (round % 2 == 0 ? 3000 : 120));
        append_numbers(it.ring, 1, next_random(&state) % 300 + 1, base);
        cr_assert(eq(i64, pread(it.fd, whole, file_bytes, 0), file_bytes));
        bp_ring_free(it.ring);
        it.ring = NULL;
        for (int repeat = 0; repeat < 5; repeat++) {
            memcpy(bytes, whole, file_bytes);
            size_t left = damage(bytes, base > 120, &state);
            cr_assert(zero(int, ftruncate(it.fd, 0)));
            cr_assert(eq(i64, pwrite(it.fd, bytes, left, 0), (int64_t)left));
            damaged_count += recovery_well(it.fd).damaged_bytes > 0;
        }
    }
    cr_assert(gt(u64, damaged_count, 500), "the damage has to hit");
}

Test(ring_damage, a_payload_that_looks_like_frames_is_not_taken_for_some) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(64 * page);
    append_numbers(it.ring, 1, 20, 60);
    static unsigned char copied[4000];
    off_t at = first_frame(64 * page);
    cr_assert(eq(i64, pread(it.fd, copied, sizeof copied, at), sizeof copied));
    struct iovec part = {.iov_base = copied, .iov_len = sizeof copied};
    at += (off_t)bp_ring_used_bytes(it.ring);
    cr_assert(ne(u64, bp_ring_append(it.ring, 0, &part, 1), 0));
    /* Its own beginning is lost, so that the scan has to look inside. */
    write_word(it.fd, at, 0);
    bp_ring_view view = recovery_well(it.fd);
    cr_assert(eq(u64, view.record_count, 20));
    cr_assert(eq(u64, view.damaged_bytes, bp_frame_bytes(sizeof copied)));
}
