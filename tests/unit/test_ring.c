#include "ring/ring.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static uint64_t append_text(bp_ring *ring, const char *text) {
    /* in two parts, as a real record comes */
    size_t half = strlen(text) / 2;
    struct iovec parts[] = {
        {.iov_base = (void *)(uintptr_t)text, .iov_len = half},
        {.iov_base = (void *)(uintptr_t)(text + half), .iov_len = strlen(text) - half}};
    return bp_ring_append(ring, (bp_instant){.monotonic_ns = 7, .wall_ns = 9}, parts, 2);
}

static bp_ring *new_ring(size_t capacity_bytes) {
    bp_ring *ring = NULL;
    cr_assert(zero(int, (int)bp_ring_new(capacity_bytes, &ring, NULL)));
    return ring;
}

Test(ring, gives_back_what_was_appended_in_order) {
    bp_ring *ring = new_ring(4096);
    cr_assert(eq(u64, append_text(ring, "first"), 1));
    cr_assert(eq(u64, append_text(ring, ""), 2));
    cr_assert(eq(u64, append_text(ring, "third record"), 3));
    bp_buffer copy;
    bp_ring_view view;
    bp_buffer_init(&copy, 1 << 20);
    cr_assert(zero(int, (int)bp_ring_copy(ring, bp_ring_mark(ring), &copy, &view, NULL)));
    cr_assert(eq(u64, view.record_count, 3));
    cr_assert(zero(u64, view.evicted_count));
    const char *expected[] = {"first", "", "third record"};
    size_t offset = 0;
    const void *payload = NULL;
    for (uint64_t i = 0; i < 3; i++) {
        const bp_ring_record *record = bp_ring_next(&copy, &offset, &payload);
        cr_assert(ne(ptr, (void *)(uintptr_t)record, NULL));
        cr_assert(eq(u64, record->sequence, i + 1));
        cr_assert(eq(u64, record->at.wall_ns, 9));
        cr_assert(eq(u64, record->payload_bytes, strlen(expected[i])));
        cr_assert(zero(int, memcmp(payload, expected[i], strlen(expected[i]))));
    }
    cr_assert(eq(ptr, (void *)(uintptr_t)bp_ring_next(&copy, &offset, &payload), NULL));
    bp_buffer_release(&copy);
    bp_ring_free(ring);
}

Test(ring, keeps_the_newest_and_counts_what_went) {
    bp_ring *ring = new_ring(4096);
    char text[32];
    for (int i = 1; i <= 1000; i++) {
        (void)snprintf(text, sizeof text, "record number %d", i);
        cr_assert(eq(u64, append_text(ring, text), (uint64_t)i));
    }
    bp_buffer copy;
    bp_ring_view view;
    bp_buffer_init(&copy, 1 << 20);
    cr_assert(zero(int, (int)bp_ring_copy(ring, UINT64_MAX, &copy, &view, NULL)));
    cr_assert(eq(u64, view.last_sequence, 1000));
    cr_assert(gt(u64, view.record_count, 50));
    cr_assert(eq(u64, view.record_count + view.evicted_count, 1000));
    cr_assert(eq(u64, view.first_sequence, view.evicted_count + 1));
    size_t offset = 0;
    const void *payload = NULL;
    const bp_ring_record *record;
    uint64_t next = view.first_sequence;
    while ((record = bp_ring_next(&copy, &offset, &payload)) != NULL) {
        (void)snprintf(text, sizeof text, "record number %llu", (unsigned long long)next);
        cr_assert(eq(u64, record->sequence, next++));
        cr_assert(zero(int, memcmp(payload, text, strlen(text))));
    }
    cr_assert(eq(u64, next, 1001));
    bp_buffer_release(&copy);
    bp_ring_free(ring);
}

Test(ring, a_mark_leaves_out_what_came_after_it) {
    bp_ring *ring = new_ring(4096);
    append_text(ring, "before");
    uint64_t mark = bp_ring_mark(ring);
    append_text(ring, "after");
    bp_buffer copy;
    bp_ring_view view;
    bp_buffer_init(&copy, 1 << 20);
    cr_assert(zero(int, (int)bp_ring_copy(ring, mark, &copy, &view, NULL)));
    cr_assert(eq(u64, view.record_count, 1));
    cr_assert(eq(u64, view.last_sequence, mark));
    bp_buffer_release(&copy);
    bp_ring_free(ring);
}

Test(ring, refuses_a_record_over_a_quarter_and_says_so_in_the_view) {
    bp_ring *ring = new_ring(4096);
    char large[1025];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    append_text(ring, "small");
    cr_assert(zero(u64, append_text(ring, large)));
    bp_buffer copy;
    bp_ring_view view;
    bp_buffer_init(&copy, 1 << 20);
    cr_assert(zero(int, (int)bp_ring_copy(ring, UINT64_MAX, &copy, &view, NULL)));
    cr_assert(eq(u64, view.record_count, 1));
    cr_assert(eq(u64, view.refused_count, 1));
    bp_buffer_release(&copy);
    bp_ring_free(ring);
}

Test(ring, next_stops_at_bytes_that_are_no_whole_record) {
    bp_ring *ring = new_ring(4096);
    append_text(ring, "a record");
    bp_buffer copy;
    bp_ring_view view;
    bp_buffer_init(&copy, 1 << 20);
    cr_assert(zero(int, (int)bp_ring_copy(ring, UINT64_MAX, &copy, &view, NULL)));
    copy.size -= 8; /* torn */
    size_t offset = 0;
    const void *payload = NULL;
    cr_assert(eq(ptr, (void *)(uintptr_t)bp_ring_next(&copy, &offset, &payload), NULL));
    cr_assert(zero(sz, offset));
    bp_buffer_release(&copy);
    bp_ring_free(ring);
}

Test(ring, refuses_a_capacity_out_of_bounds) {
    bp_ring *ring = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(eq(int, (int)bp_ring_new(100, &ring, &error), (int)BUGPACK_ERR_INVALID));
    cr_assert(
        eq(int, (int)bp_ring_new(((size_t)1 << 30) + 1, &ring, &error), (int)BUGPACK_ERR_INVALID));
    cr_assert(eq(ptr, ring, NULL));
    cr_assert(ne(str, error.message, ""));
}
