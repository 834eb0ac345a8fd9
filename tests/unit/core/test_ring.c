#include "ring/ring.h"

#include "base/clock.h"
#include "base/temp_file.h"
#include "ring/ring_reader.h"
#include "support/ring_records.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

static bp_ring *new_ring(size_t capacity_bytes) {
    bp_ring *ring = NULL;
    cr_assert(zero(int, bp_ring_new(capacity_bytes, &ring, NULL)));
    return ring;
}

static void free_ring(bp_ring **ring) {
    bp_ring_free(*ring);
}

static bp_ring_view copy_until(bp_ring *ring, uint64_t until_ns, bp_buffer *out) {
    bp_ring_view view;
    bp_buffer_init(out, 1u << 30);
    cr_assert(zero(int, bp_ring_copy(ring, until_ns, keep_in_buffer, out, &view, NULL)));
    return view;
}

/* Copies all, and checks that the records are consecutive and each has the bytes of its sequence.
 */
static bp_ring_view copy_numbers(bp_ring *ring) {
    bp_buffer out;
    bp_ring_view view = copy_until(ring, UINT64_MAX, &out);
    size_t offset = 0;
    const void *payload = NULL;
    const bp_ring_record *record;
    uint64_t next = view.first_sequence;
    while ((record = next_record(&out, &offset, &payload)) != NULL) {
        cr_assert(eq(u64, record->sequence, next++));
        cr_assert(eq(u64, record->tag, record->sequence % 7));
        cr_assert(is_number(payload, record->payload_bytes, record->sequence));
    }
    cr_assert(eq(u64, next, view.last_sequence + 1));
    cr_assert(eq(u64, view.record_count, view.last_sequence - view.first_sequence + 1));
    bp_buffer_release(&out);
    return view;
}

Test(ring, gives_back_what_was_appended_in_order_with_tag_and_time) {
    CLEANUP(free_ring) bp_ring *ring = new_ring(4096);
    uint64_t before_ns = bp_clock_monotonic_ns();
    static const size_t sizes[] = {5, 0, 12, 64, 1};
    for (uint64_t i = 0; i < 5; i++) {
        cr_assert(ne(u64, append_number(ring, (uint32_t)(i + 1), i + 1, sizes[i]), 0));
    }
    bp_ring_view view = copy_numbers(ring);
    cr_assert(eq(u64, view.record_count, 5));
    cr_assert(eq(u64, view.first_sequence, 1));
    cr_assert(zero(u64, view.evicted_count));
    cr_assert(zero(u64, view.refused_count));
    cr_assert(ge(u64, view.first_ns, before_ns));
    cr_assert(ge(u64, view.last_ns, view.first_ns));
    cr_assert(le(u64, view.last_ns, bp_clock_monotonic_ns()));
}

Test(ring, an_empty_ring_gives_an_empty_view) {
    CLEANUP(free_ring) bp_ring *ring = new_ring(4096);
    CLEANUP(bp_buffer_release) bp_buffer out;
    bp_ring_view view = copy_until(ring, UINT64_MAX, &out);
    cr_assert(zero(u64, view.record_count));
    cr_assert(zero(u64, view.first_sequence));
    cr_assert(zero(u64, view.last_sequence));
    cr_assert(zero(sz, out.size));
}

Test(ring, keeps_the_newest_at_every_size_and_turn_and_counts_what_went) {
    /* sizes that fit the end exactly, leave a word, and everything between */
    for (size_t capacity = 4096; capacity <= 3 * 4096; capacity += 4096) {
        for (size_t base = 0; base <= 400; base += 23) {
            bp_ring *ring = new_ring(capacity);
            for (uint64_t i = 1; i <= 700; i++) {
                size_t size = base + (size_t)(i * i % (base + 1));
                cr_assert(ne(u64, append_number(ring, (uint32_t)(i % 7), i, size), 0));
                if (i % 50 == 0) {
                    bp_ring_view view = copy_numbers(ring);
                    cr_assert(eq(u64, view.last_sequence, i));
                    cr_assert(eq(u64, view.record_count + view.evicted_count, i));
                }
            }
            bp_ring_view view = copy_numbers(ring);
            /* A chunk makes room, a record goes with it, and heads and pieces take an eighth. */
            cr_assert(gt(u64, view.record_count * (2 * base + 40) + 8 * base + 4 * 256,
                         capacity / 4 * 3));
            bp_ring_free(ring);
        }
    }
}

Test(ring, a_view_leaves_out_what_was_stamped_after_its_instant) {
    CLEANUP(free_ring) bp_ring *ring = new_ring(4096);
    append_number(ring, 1, 1, 20);
    append_number(ring, 2, 2, 20);
    uint64_t until_ns = bp_clock_monotonic_ns();
    while (bp_clock_monotonic_ns() == until_ns) {}
    append_number(ring, 3, 3, 20);
    CLEANUP(bp_buffer_release) bp_buffer out;
    bp_ring_view view = copy_until(ring, until_ns, &out);
    cr_assert(eq(u64, view.record_count, 2));
    cr_assert(eq(u64, view.last_sequence, 2));
    cr_assert(zero(u64, view.evicted_count), "what is later was not evicted");
}

Test(ring, refuses_a_record_over_a_quarter_and_counts_it) {
    CLEANUP(free_ring) bp_ring *ring = new_ring(4096);
    cr_assert(ne(u64, append_number(ring, 1, 1, 1024 - 32), 0), "just fits");
    cr_assert(zero(u64, append_number(ring, 1, 1, 1024 - 31)));
    char byte = 'x';
    struct iovec absurd[] = {{.iov_base = &byte, .iov_len = 1},
                             {.iov_base = &byte, .iov_len = SIZE_MAX}};
    cr_assert(zero(u64, bp_ring_append(ring, 0, absurd, 2)), "sizes that overflow");
    bp_ring_view view = copy_numbers(ring);
    cr_assert(eq(u64, view.record_count, 1));
    cr_assert(eq(u64, view.refused_count, 2));
}

Test(ring, refuses_appends_after_close) {
    CLEANUP(free_ring) bp_ring *ring = new_ring(4096);
    cr_assert(ne(u64, append_number(ring, 1, 1, 8), 0));
    bp_ring_close(ring);
    bp_ring_close(ring);
    cr_assert(zero(u64, append_number(ring, 1, 2, 8)));
    cr_assert(zero(u64, append_number(ring, 1, 2, 1024)), "too large as well");
}

Test(ring, copies_a_record_that_is_larger_than_a_piece) {
    CLEANUP(free_ring) bp_ring *ring = new_ring(16u << 20);
    for (uint64_t i = 1; i <= 21; i++) {
        size_t size = i % 3 == 0 ? (4u << 20) - 32 : 100000 + (size_t)i;
        cr_assert(ne(u64, append_number(ring, (uint32_t)(i % 7), i, size), 0));
    }
    bp_ring_view view = copy_numbers(ring);
    cr_assert(ge(u64, view.record_count, 8));
}

static bugpack_status refuse(void *context, const void *bytes, size_t byte_count) {
    *(int *)context += 1;
    return BUGPACK_ERR_CLOSED;
}

Test(ring, a_sink_that_fails_ends_the_copy_with_its_status) {
    CLEANUP(free_ring) bp_ring *ring = new_ring(1 << 20);
    for (uint64_t i = 1; i < 300; i++) {
        append_number(ring, 1, i, 1000);
    }
    int calls = 0;
    bp_ring_view view = {.record_count = 99};
    cr_assert(eq(int, bp_ring_copy(ring, UINT64_MAX, refuse, &calls, &view, &failure),
                 BUGPACK_ERR_CLOSED));
    cr_assert(eq(int, calls, 1));
    cr_assert(eq(u64, view.record_count, 99));
    cr_assert(ne(str, failure.message, ""));
}

typedef struct appending_sink {
    bp_ring *ring;
    uint64_t received;
} appending_sink;

static bugpack_status append_meanwhile(void *context, const void *bytes, size_t byte_count) {
    appending_sink *it = context;
    it->received += byte_count;
    for (int i = 0; i < 1000; i++) {
        append_number(it->ring, 9, 0, 1000);
    }
    return BUGPACK_OK;
}

Test(ring, what_is_overwritten_during_a_copy_counts_as_evicted) {
    CLEANUP(free_ring) bp_ring *ring = new_ring(1 << 20);
    for (uint64_t i = 1; i <= 800; i++) {
        append_number(ring, 1, i, 1000);
    }
    appending_sink it = {.ring = ring};
    bp_ring_view view;
    cr_assert(zero(int, bp_ring_copy(ring, UINT64_MAX, append_meanwhile, &it, &view, NULL)));
    cr_assert(gt(u64, view.record_count, 0));
    cr_assert(lt(u64, view.record_count, 100), "one piece");
    cr_assert(eq(u64, view.record_count + view.evicted_count, 800));
    cr_assert(gt(u64, it.received, 0));
}

Test(ring, refuses_a_capacity_out_of_bounds) {
    bp_ring *ring = NULL;
    cr_assert(eq(int, bp_ring_new(100, &ring, &failure), BUGPACK_ERR_INVALID));
    cr_assert(eq(int, bp_ring_new(((size_t)1 << 30) + 1, &ring, &failure), BUGPACK_ERR_INVALID));
    cr_assert(eq(ptr, ring, NULL));
    cr_assert(ne(str, failure.message, ""));
}

Test(ring, a_reader_walks_what_a_copy_put_into_a_spool) {
    CLEANUP(temp_dir_remove) temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    CLEANUP(free_ring) bp_ring *ring = new_ring(4u << 20);
    for (uint64_t i = 1; i <= 500; i++) {
        append_number(ring, 1, i, i % 50 == 0 ? 200000 : (size_t)i * 3);
    }
    CLEANUP(bp_temp_file_release) bp_temp_file temp_file;
    bp_ring_view view;
    cr_assert(zero(int, bp_temp_file_open(&temp_file, dir.fd, 64u << 20, NULL)));
    cr_assert(
        zero(int, bp_ring_copy(ring, UINT64_MAX, bp_temp_file_sink, &temp_file, &view, NULL)));
    cr_assert(zero(int, bp_temp_file_flush(&temp_file, NULL)));
    CLEANUP(bp_ring_reader_release) bp_ring_reader reader;
    bp_ring_reader_init(&reader, &temp_file);
    const void *payload = NULL;
    const bp_ring_record *record;
    uint64_t next = view.first_sequence;
    while ((record = bp_ring_reader_next(&reader, &payload)) != NULL) {
        cr_assert(eq(u64, record->sequence, next++));
        cr_assert(zero(u64, (uintptr_t)payload % 8));
        cr_assert(is_number(payload, record->payload_bytes, record->sequence));
    }
    cr_assert(eq(u64, next, 501));
}

Test(ring, a_reader_stops_at_bytes_that_are_no_whole_record) {
    CLEANUP(temp_dir_remove) temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    const bp_ring_record whole = {.sequence = 1, .payload_bytes = 0};
    const bp_ring_record torn = {.sequence = 2, .payload_bytes = UINT32_MAX};
    CLEANUP(bp_temp_file_release) bp_temp_file temp_file;
    cr_assert(zero(int, bp_temp_file_open(&temp_file, dir.fd, 4096, NULL)));
    cr_assert(zero(int, bp_temp_file_write(&temp_file, &whole, sizeof whole)));
    cr_assert(zero(int, bp_temp_file_write(&temp_file, &torn, sizeof torn)));
    cr_assert(zero(int, bp_temp_file_flush(&temp_file, NULL)));
    CLEANUP(bp_ring_reader_release) bp_ring_reader reader;
    bp_ring_reader_init(&reader, &temp_file);
    const void *payload = NULL;
    cr_assert(ne(ptr, bp_ring_reader_next(&reader, &payload), NULL));
    cr_assert(eq(ptr, bp_ring_reader_next(&reader, &payload), NULL));
    cr_assert(eq(ptr, bp_ring_reader_next(&reader, &payload), NULL));
}
