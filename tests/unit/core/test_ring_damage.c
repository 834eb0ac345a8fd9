#include "ring/ring.h"

#include <fcntl.h>

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

static uint64_t frame_bytes(int fd, off_t at) {
    bp_frame frame;
    cr_assert(eq(i64, pread(fd, &frame, sizeof frame, at), sizeof frame));
    return bp_frame_bytes(frame.record.payload_bytes);
}

Test(ring_damage, one_damaged_record_costs_itself_alone) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(8 * page);
    append_numbers(it.ring, 1, 20, 120);
    off_t at = page; /* the first frame */
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
    off_t sequence = offsetof(bp_frame_page, sequence);
    write_word(it.fd, sequence, UINT64_MAX);
    cr_assert(recovery_well(it.fd).is_damaged, "an impossible number is not believed");
    cr_assert(zero(u64, recovery_well(it.fd).damaged_count));
    write_word(it.fd, sequence, 100);
    cr_assert(zero(int, ftruncate(it.fd, 2 * page)));
    bp_ring_view view = recovery_well(it.fd);
    cr_assert(gt(u64, view.damaged_count, 0));
    cr_assert(eq(u64, view.record_count + view.damaged_count, 100));
    cr_assert(zero(u64, view.evicted_count));
    cr_assert(zero(int, ftruncate(it.fd, page)));
    cr_assert(eq(u64, recovery_well(it.fd).damaged_count, 100), "all of them");
}

Test(ring_damage, of_a_ring_that_has_evicted_records_at_least_those_between_are_counted) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(4 * page);
    append_numbers(it.ring, 1, 500, 60);
    bp_ring_view whole = recovery_well(it.fd);
    cr_assert(not(whole.is_damaged));
    cr_assert(eq(u64, whole.record_count + whole.evicted_count, 500));
    for (off_t at = 2 * page; at < 3 * page; at += 8) {
        write_word(it.fd, at, 0);
    }
    bp_ring_view view = recovery_well(it.fd);
    cr_assert(view.is_damaged);
    cr_assert(eq(u64, view.record_count + view.damaged_count + view.evicted_count, 500));
    cr_assert(lt(u64, view.record_count, whole.record_count));
}

Test(ring_damage, every_sector_of_a_large_record_is_under_its_checksum) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(64 * page);
    cr_assert(eq(u64, append_number(it.ring, 1, 1, 10000), 1));
    for (off_t sector = page; sector < page + 32 + 10000; sector += 512) {
        off_t at = sector == page ? page + 32 : sector;
        flip(it.fd, at + 1, 1);
        cr_assert(zero(u64, recovery_well(it.fd).record_count), "at %lld", (long long)at);
        flip(it.fd, at + 1, 1);
    }
    cr_assert(eq(u64, recovery_well(it.fd).record_count, 1));
}

Test(ring_damage, records_since_the_ring_began_anew_are_found_without_head_and_tail) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(4 * page);
    append_numbers(it.ring, 1, 300, 60);
    bp_frame_page header;
    cr_assert(eq(sz, (size_t)pread(it.fd, &header, sizeof header, 0), sizeof header));
    uint64_t capacity = header.capacity;
    off_t head = page + (off_t)(header.head % capacity);
    uint64_t since_wrap = 0;
    for (off_t at = page; at < head; at += (off_t)frame_bytes(it.fd, at)) {
        since_wrap++;
    }
    off_t tail = offsetof(bp_frame_page, tail);
    static const uint64_t lies[] = {0, 8, 4000, 1u << 20, UINT64_MAX, UINT64_MAX - 7, 12345};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        for (size_t j = 0; j < sizeof lies / sizeof lies[0]; j++) {
            write_word(it.fd, tail, lies[i]);
            write_word(it.fd, tail + 8, lies[j]);
            bp_ring_view view = recovery_well(it.fd);
            bool is_possible =
                lies[j] >= lies[i] && lies[j] - lies[i] <= capacity && (lies[i] | lies[j]) % 8 == 0;
            cr_assert(is_possible || (view.is_damaged && view.record_count == since_wrap),
                      "tail %llu, head %llu", (unsigned long long)lies[i],
                      (unsigned long long)lies[j]);
        }
    }
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

static bugpack_status count_bytes(void *context, const void *bytes, size_t byte_count) {
    *(uint64_t *)context += byte_count + ((const unsigned char *)bytes)[byte_count - 1] * 0u;
    return BUGPACK_OK;
}

/* A file that knows the seed, and claims a large record at every place where one could begin. */
Test(ring_damage, forged_beginnings_cost_a_bounded_time_and_give_nothing) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(32u << 20);
    size_t capacity = 32u << 20;
    unsigned char *bytes = calloc(1, capacity);
    uint64_t seed = read_word(it.fd, offsetof(bp_frame_page, seed));
    for (size_t at = 0; at + sizeof(bp_frame) <= capacity; at += sizeof(bp_frame)) {
        bp_ring_record record = {.sequence = at + 1, .payload_bytes = 7u << 20};
        bp_frame_hash hash;
        bp_frame_hash_begin(&hash, seed, at, &record);
        uint64_t mark = bp_frame_hash_end(&hash);
        memcpy(bytes + at, &mark, sizeof mark);
        memcpy(bytes + at + sizeof mark, &record, sizeof record);
    }
    cr_assert(eq(i64, pwrite(it.fd, bytes, capacity, page), (int64_t)capacity));
    write_word(it.fd, offsetof(bp_frame_page, head), capacity);
    uint64_t given = 0;
    bp_ring_view view;
    cr_assert(zero(int, bp_ring_recover(it.fd, count_bytes, &given, &view, NULL)));
    cr_assert(zero(u64, given));
    cr_assert(eq(u64, view.damaged_bytes, capacity));
    free(bytes);
}

Test(ring_damage, a_payload_that_looks_like_frames_is_not_taken_for_some) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(16 * page);
    append_numbers(it.ring, 1, 20, 60);
    static unsigned char copied[8000];
    cr_assert(eq(i64, pread(it.fd, copied, sizeof copied, page), sizeof copied));
    struct iovec part = {.iov_base = copied, .iov_len = sizeof copied};
    cr_assert(eq(u64, bp_ring_append(it.ring, 0, &part, 1), 21));
    /* Its own beginning is lost, so that the scan has to look inside. */
    uint64_t head = read_word(it.fd, offsetof(bp_frame_page, head));
    write_word(it.fd, (off_t)(page + head - bp_frame_bytes(sizeof copied)), 0);
    bp_ring_view view = recovery_well(it.fd);
    cr_assert(eq(u64, view.record_count, 20));
    cr_assert(eq(u64, view.damaged_bytes, bp_frame_bytes(sizeof copied)));
}
