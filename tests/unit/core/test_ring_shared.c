#include "ring/ring.h"

#include <fcntl.h>
#include <pthread.h>

#include "base/clock.h"
#include "ring/chunk.h"
#include "ring/frame.h"
#include "ring/ring_file.h"
#include "support/ring_records.h"
#include "unit/file_ring.h"
#include "unit/unit.h"

/* 15 chunks of 16 KiB, and two lanes. */
enum { small_bytes = 256 * 1024 };

static file_ring make_shared_ring(size_t capacity_bytes) {
    file_ring it = make_file_ring(capacity_bytes);
    cr_assert(zero(int, bp_ring_share(it.ring, NULL)));
    return it;
}

static bp_ring_view copy_until(bp_ring *ring, uint64_t until_ns, bp_buffer *out) {
    bp_ring_view view;
    bp_buffer_init(out, 1u << 30);
    cr_assert(zero(int, bp_ring_copy(ring, until_ns, keep_in_buffer, out, &view, NULL)));
    return view;
}

static bp_ring_view recover(int fd, bp_buffer *out) {
    bp_ring_view view = {0};
    bp_buffer_init(out, 1u << 30);
    cr_assert(zero(int, bp_ring_recover(fd, keep_in_buffer, out, &view, NULL)));
    return view;
}

static void append_many(bp_ring *ring, uint64_t from, uint64_t to, size_t size) {
    for (uint64_t i = from; i <= to; i++) {
        cr_assert(ne(u64, append_number(ring, (uint32_t)i, i, size), 0));
    }
}

/* Every record is whole, and has the bytes of its tag; sequences have no gap, and stamps ascend.
 * Returns the number of records. */
static uint64_t check_records(const bp_buffer *out, const bp_ring_view *view) {
    size_t offset = 0;
    const void *payload = NULL;
    const bp_ring_record *record;
    uint64_t count = 0, last_ns = 0;
    while ((record = next_record(out, &offset, &payload)) != NULL) {
        cr_assert(eq(u64, record->sequence, view->first_sequence + count++));
        cr_assert(ge(u64, record->monotonic_ns, last_ns));
        cr_assert(is_number(payload, record->payload_bytes, record->tag));
        last_ns = record->monotonic_ns;
    }
    cr_assert(eq(u64, count, view->record_count));
    return count;
}

/* A copy, and the file as a recovery reads it, which are the same. */
static bp_ring_view check_ring(file_ring *it) {
    CLEANUP(bp_buffer_release) bp_buffer copied;
    CLEANUP(bp_buffer_release) bp_buffer recovered;
    bp_ring_view view = copy_until(it->ring, UINT64_MAX, &copied);
    bp_ring_view salvaged = recover(it->fd, &recovered);
    (void)check_records(&copied, &view);
    cr_assert(not(salvaged.is_damaged));
    cr_assert(eq(u64, salvaged.evicted_count, view.evicted_count));
    cr_assert(eq(sz, recovered.size, copied.size));
    cr_assert(zero(int, memcmp(recovered.data, copied.data, copied.size)));
    return view;
}

Test(ring_shared, one_writer_has_all_of_it_in_order_and_numbered) {
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(small_bytes);
    for (uint64_t i = 1; i <= 4000; i++) {
        append_many(it.ring, i, i, (size_t)(i * 7 % 300));
        if (i % 100 == 0) {
            bp_ring_view view = check_ring(&it);
            cr_assert(eq(u64, view.last_sequence, i));
            cr_assert(eq(u64, view.record_count + view.evicted_count, i));
        }
    }
    /* All but the table, the chunk that made room, and what is free in the newest and at ends. */
    cr_assert(gt(u64, bp_ring_used_bytes(it.ring), small_bytes - 3 * 16384 - 15 * 332));
}

/* A quarter of the smallest ring is in five chunks of it or more. */
Test(ring_shared, a_record_of_a_quarter_fits_whatever_the_size_and_a_larger_one_is_counted) {
    static const size_t capacities[] = {4096, 5 * 4096, 64 * 1024, small_bytes, 16 << 20};
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        CLEANUP(remove_file_ring) file_ring it = make_shared_ring(capacities[i]);
        size_t most = bp_ring_payload_max(it.ring);
        cr_assert(eq(sz, most, capacities[i] / 4 - 32));
        for (size_t size = most; size > most - 80; size -= 8) {
            append_many(it.ring, 1, 7, size);
            append_many(it.ring, 8, 8, size % 300);
            bp_ring_view view = check_ring(&it);
            cr_assert(ge(u64, view.record_count, 3));
        }
        cr_assert(zero(u64, append_number(it.ring, 1, 1, most + 1)));
        bp_ring_view view = check_ring(&it);
        cr_assert(eq(u64, view.refused_count, 1));
        cr_assert(eq(u64, view.record_count + view.evicted_count, 80));
    }
}

Test(ring_shared, appends_after_close_are_refused) {
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(small_bytes);
    append_many(it.ring, 1, 40, 8);
    bp_ring_close(it.ring);
    bp_ring_close(it.ring);
    cr_assert(zero(u64, append_number(it.ring, 1, 1, 8)));
    cr_assert(zero(u64, append_number(it.ring, 1, 1, small_bytes)), "too large as well");
}

Test(ring_shared, what_has_room_is_not_overwritten) {
    static const size_t sizes[] = {0, 1, 40, 100, 168, 700, 5000, 16000};
    for (size_t capacity = 4096; capacity <= small_bytes; capacity *= 2) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            CLEANUP(remove_file_ring) file_ring it = make_file_ring(capacity);
            uint64_t frame_bytes = bp_frame_bytes(sizes[i]),
                     count = bp_ring_room(it.ring) / frame_bytes;
            cr_assert(gt(u64, bp_ring_room(it.ring), capacity / 2));
            if (sizes[i] <= bp_ring_payload_max(it.ring)) {
                append_many(it.ring, 1, count, sizes[i]);
                cr_assert(not(bp_ring_has_evicted(it.ring)), "%zu of %zu", sizes[i], capacity);
                cr_assert(eq(u64, check_ring(&it).record_count, count));
            }
        }
    }
}

Test(ring_shared, a_view_ends_at_its_instant) {
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(small_bytes);
    append_many(it.ring, 1, 900, 20);
    uint64_t until_ns = bp_clock_monotonic_ns();
    while (bp_clock_monotonic_ns() == until_ns) {}
    append_many(it.ring, 901, 1000, 20);
    CLEANUP(bp_buffer_release) bp_buffer out;
    bp_ring_view view = copy_until(it.ring, until_ns, &out);
    cr_assert(eq(u64, check_records(&out, &view), 900));
    cr_assert(zero(u64, view.evicted_count), "what is later was not overwritten");
}

static void *append_in_thread(void *context) {
    append_many(context, 1, 1, 100);
    return NULL;
}

static void run_thread(void *(*run)(void *), void *context) {
    pthread_t thread;
    cr_assert(zero(int, pthread_create(&thread, NULL, run, context)));
    cr_assert(zero(int, pthread_join(thread, NULL)));
}

Test(ring_shared, a_thousand_threads_that_log_once_share_the_chunks_of_the_quiet) {
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(4u << 20);
    for (int i = 0; i < 1000; i++) {
        run_thread(append_in_thread, it.ring);
    }
    bp_ring_view view = check_ring(&it);
    cr_assert(eq(u64, view.record_count, 1000));
    cr_assert(le(u64, read_word(it.fd, offsetof(bp_frame_page, begun_count)), 16));
}

static void *append_far_more_than_it_holds(void *context) {
    append_many(context, 100000, 120000, 200);
    return NULL;
}

/* In a second, which a machine that stands still may exceed. */
Test(ring_shared, a_noisy_thread_does_not_overwrite_what_another_logged_within_a_second) {
    uint64_t took_ns = UINT64_MAX;
    for (int attempt = 0; attempt < 20 && took_ns >= BP_CHUNK_FLOOR_NS; attempt++) {
        CLEANUP(remove_file_ring) file_ring it = make_shared_ring(4u << 20);
        append_many(it.ring, 1, 120, 100);
        uint64_t began_ns = bp_clock_monotonic_ns();
        run_thread(append_far_more_than_it_holds, it.ring);
        took_ns = bp_clock_monotonic_ns() - began_ns;
        CLEANUP(bp_buffer_release) bp_buffer out;
        bp_ring_view view = copy_until(it.ring, UINT64_MAX, &out);
        cr_assert(eq(u64, view.record_count + view.evicted_count, 120 + 20001));
        cr_assert(gt(u64, view.evicted_count, 0));
        size_t offset = 0;
        const void *payload = NULL;
        for (uint32_t i = 1; took_ns < BP_CHUNK_FLOOR_NS && i <= 120; i++) {
            cr_assert(eq(u32, next_record(&out, &offset, &payload)->tag, i));
        }
    }
    cr_assert(lt(u64, took_ns, BP_CHUNK_FLOOR_NS), "the machine stood still");
}

typedef struct appending_sink {
    bp_ring *ring;
    uint64_t next, end;
    bp_buffer out;
} appending_sink;

static bugpack_status keep_and_append(void *context, const void *bytes, size_t byte_count) {
    appending_sink *it = context;
    for (; it->next < it->end; it->next++) {
        append_many(it->ring, it->next, it->next, 1000);
    }
    return bp_buffer_append(&it->out, bytes, byte_count);
}

Test(ring_shared, what_is_overwritten_during_a_copy_counts_as_evicted) {
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(1u << 20);
    append_many(it.ring, 1, 2000, 1000);
    appending_sink sink = {.ring = it.ring, .next = 2001, .end = 2401};
    bp_ring_view view;
    bp_buffer_init(&sink.out, 1u << 30);
    cr_assert(zero(int, bp_ring_copy(it.ring, UINT64_MAX, keep_and_append, &sink, &view, NULL)));
    cr_assert(eq(u64, view.record_count + view.evicted_count, 2000));
    cr_assert(gt(u64, view.record_count, 100));
    size_t offset = 0;
    const void *payload = NULL;
    const bp_ring_record *record;
    while ((record = next_record(&sink.out, &offset, &payload)) != NULL) {
        cr_assert(eq(u64, record->sequence, record->tag), "numbers go on across a gap");
        cr_assert(is_number(payload, record->payload_bytes, record->tag));
    }
    bp_buffer_release(&sink.out);
}

static bugpack_status refuse(void *context, const void *bytes, size_t byte_count) {
    *(int *)context += 1;
    return BUGPACK_ERR_CLOSED;
}

Test(ring_shared, a_sink_that_fails_ends_the_copy_and_a_follower_gets_the_same_again) {
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(1u << 20);
    append_many(it.ring, 1, 300, 1000);
    int calls = 0;
    bp_ring_view view = {.record_count = 99};
    cr_assert(eq(int, bp_ring_copy(it.ring, UINT64_MAX, refuse, &calls, &view, &failure),
                 BUGPACK_ERR_CLOSED));
    cr_assert(eq(int, calls, 1));
    cr_assert(eq(u64, view.record_count, 99));
    CLEANUP(bp_ring_follower_release) bp_ring_follower follower = {0};
    CLEANUP(bp_buffer_release) bp_buffer out;
    bp_buffer_init(&out, 1u << 30);
    uint64_t lost_count = 0;
    bool is_rest = false;
    cr_assert(ne(
        int,
        bp_ring_follow(it.ring, &follower, SIZE_MAX, refuse, &calls, &lost_count, &is_rest, NULL),
        BUGPACK_OK));
    cr_assert(zero(int, bp_ring_follow(it.ring, &follower, SIZE_MAX, keep_in_buffer, &out,
                                       &lost_count, &is_rest, NULL)));
    cr_assert(eq(u64, follower.sequence, 300));
    cr_assert(zero(u64, lost_count));
}

/* Counts what a follower gets. */
static bugpack_status count_records(void *context, const void *bytes, size_t byte_count) {
    const char *at = bytes;
    for (size_t offset = 0; offset < byte_count;) {
        const bp_ring_record *record = (const void *)(at + offset);
        cr_assert(eq(u64, record->sequence, record->tag), "each once, and as it was numbered");
        offset += sizeof *record + (record->payload_bytes + 7u) / 8 * 8;
        ++*(uint64_t *)context;
    }
    return BUGPACK_OK;
}

Test(ring_shared, a_follower_gets_each_record_once_and_knows_how_many_it_missed) {
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(256u << 10);
    CLEANUP(bp_ring_follower_release) bp_ring_follower follower = {0};
    uint64_t lost_count = 0, appended = 0, given = 0, lost = 0, calls = 0;
    bool is_rest = false;
    for (uint64_t turn = 0; turn < 500; turn++) {
        append_many(it.ring, appended + 1, appended + turn % 7, turn % 300);
        appended += turn % 7;
        cr_assert(zero(int, bp_ring_follow(it.ring, &follower, SIZE_MAX, count_records, &given,
                                           &lost_count, &is_rest, NULL)));
        cr_assert(eq(u64, given, appended));
        cr_assert(eq(u64, follower.sequence, appended));
        cr_assert(zero(u64, lost_count + is_rest));
    }
    append_many(it.ring, appended + 1, appended + 5000, 100); /* more than it holds */
    appended += 5000;
    do { /* in pieces */
        cr_assert(zero(int, bp_ring_follow(it.ring, &follower, 1000, count_records, &given,
                                           &lost_count, &is_rest, NULL)));
        lost += lost_count;
        calls++;
    } while (is_rest);
    cr_assert(gt(u64, calls, 10));
    cr_assert(gt(u64, lost, 0));
    cr_assert(eq(u64, given + lost, appended));
}

/* --- files --------------------------------------------------------------------------------- */

Test(ring_shared, a_copy_of_the_file_of_a_running_writer_has_its_records) {
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(small_bytes);
    append_many(it.ring, 1, 3000, 200);
    CLEANUP(close_fd)
    int copy = openat(it.dir.fd, "copy", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cr_assert(zero(int, bp_ring_file_copy(it.fd, copy, NULL, NULL)));
    cr_assert(eq(u64, bp_ring_file_used_bytes(copy), bp_ring_used_bytes(it.ring)));
    CLEANUP(bp_buffer_release) bp_buffer expected;
    CLEANUP(bp_buffer_release) bp_buffer found;
    bp_ring_view view = copy_until(it.ring, UINT64_MAX, &expected);
    bp_ring_view copied = recover(copy, &found);
    cr_assert(not(copied.is_damaged));
    cr_assert(eq(u64, copied.evicted_count, view.evicted_count));
    cr_assert(eq(sz, found.size, expected.size));
    cr_assert(zero(int, memcmp(found.data, expected.data, found.size)));
}

Test(ring_shared, a_file_that_is_cut_costs_what_was_in_the_rest_and_counts_it) {
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(small_bytes);
    append_many(it.ring, 1, 500, 100);
    CLEANUP(bp_buffer_release) bp_buffer out;
    cr_assert(zero(int, ftruncate(it.fd, 5 * page)));
    bp_ring_view view = recover(it.fd, &out);
    cr_assert(gt(u64, check_records(&out, &view), 0));
    cr_assert(view.is_damaged);
    cr_assert(eq(u64, view.record_count + view.damaged_count, 500));
    CLEANUP(bp_buffer_release) bp_buffer none;
    cr_assert(zero(int, ftruncate(it.fd, page)));
    view = recover(it.fd, &none);
    cr_assert(view.is_damaged, "chunks were begun, and have no head");
    cr_assert(zero(u64, view.record_count));
}

Test(ring_shared, a_head_that_contradicts_itself_is_not_believed) {
    static const uint64_t lies[] = {0, 1, 0xffff, 0xffff0000, UINT64_MAX, (uint64_t)1 << 32 | 1};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        CLEANUP(remove_file_ring) file_ring it = make_shared_ring(small_bytes);
        append_many(it.ring, 1, 20, 100);
        CLEANUP(bp_buffer_release) bp_buffer out;
        uint64_t chunk = 0;
        while (read_word(it.fd, (off_t)(page + chunk * sizeof(bp_chunk_head))) == 0) {
            chunk++;
        }
        write_word(it.fd, (off_t)(page + chunk * sizeof(bp_chunk_head)), lies[i]);
        bp_ring_view view = recover(it.fd, &out);
        cr_assert(view.is_damaged);
        cr_assert(eq(u64, check_records(&out, &view), 20), "they are found without it");
    }
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(small_bytes);
    append_many(it.ring, 1, 20, 100);
    write_word(it.fd, page + 16, UINT64_MAX); /* records of earlier turns */
    CLEANUP(bp_buffer_release) bp_buffer out;
    bp_ring_view view = recover(it.fd, &out);
    cr_assert(view.is_damaged && view.evicted_count < 1000);
}

Test(ring_shared, more_chunks_without_a_first_record_than_are_merged_at_once_end_the_recovery) {
    enum { large_bytes = 4 << 20, record_count = 6000, record_bytes = 600 };
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(large_bytes);
    bp_chunk_layout layout = bp_chunk_divide(large_bytes);
    cr_assert(gt(u64, layout.chunk_count, 128));
    append_many(it.ring, 1, record_count, record_bytes);
    for (uint64_t i = 0; i < layout.chunk_count; i++) {
        write_word(it.fd, (off_t)(page + bp_chunk_offset(&layout, i)), UINT64_MAX);
    }
    CLEANUP(bp_buffer_release) bp_buffer out;
    bp_ring_view view = recover(it.fd, &out);
    cr_assert(view.is_damaged && view.record_count > record_count / 2);
}

/* A file that knows the seed, and claims a large record at every place where one could begin. */
Test(ring_shared, forged_beginnings_cost_a_bounded_time_and_give_nothing) {
    CLEANUP(remove_file_ring) file_ring it = make_shared_ring(32u << 20);
    bp_chunk_layout layout = bp_chunk_divide(32u << 20);
    unsigned char *bytes = calloc(1, 32u << 20);
    uint64_t seed = read_word(it.fd, offsetof(bp_frame_page, seed));
    for (uint64_t chunk = 0; chunk < layout.chunk_count; chunk++) {
        uint64_t head = (uint64_t)1 << 32 | (uint64_t)100 << 16 | layout.chunk_bytes / 8;
        memcpy(bytes + chunk * sizeof(bp_chunk_head), &head, sizeof head);
        for (uint64_t at = 0; at + 60000 <= layout.chunk_bytes; at += sizeof(bp_frame)) {
            uint64_t offset = bp_chunk_offset(&layout, chunk) + at;
            bp_ring_record record = {.sequence = at + 1, .payload_bytes = 59000};
            uint64_t mark = bp_frame_mark(seed, offset, &record, bytes + layout.first_offset) ^ 2;
            memcpy(bytes + offset, &mark, sizeof mark);
            memcpy(bytes + offset + sizeof mark, &record, sizeof record);
        }
    }
    cr_assert(eq(i64, pwrite(it.fd, bytes, 32u << 20, page), 32u << 20));
    free(bytes);
    CLEANUP(bp_buffer_release) bp_buffer out;
    bp_ring_view view = recover(it.fd, &out);
    cr_assert(view.is_damaged);
    cr_assert(zero(u64, view.record_count));
}
