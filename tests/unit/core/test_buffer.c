#include "base/buffer.h"
#include "unit/unit.h"

static bp_buffer buffer;

static void tear_down(void) {
    bp_buffer_release(&buffer);
}

TestSuite(buffer, .fini = tear_down);

Test(buffer, takes_exactly_its_maximum_and_keeps_a_nul_behind_it) {
    bp_buffer_init(&buffer, 8);
    cr_assert(eq(int, bp_buffer_append(&buffer, "1234", 4), BUGPACK_OK));
    cr_assert(eq(int, bp_buffer_append_text(&buffer, "5678"), BUGPACK_OK));
    cr_assert(eq(sz, buffer.size, 8));
    cr_assert(eq(str, bp_buffer_text(&buffer), "12345678"));
}

Test(buffer, refuses_whole_what_passes_the_maximum) {
    bp_buffer_init(&buffer, 8);
    (void)bp_buffer_append_text(&buffer, "12345");
    cr_assert(eq(int, bp_buffer_append_text(&buffer, "6789"), BUGPACK_ERR_LIMIT));
    cr_assert(eq(str, bp_buffer_text(&buffer), "12345"));
}

Test(buffer, refuses_a_size_that_would_overflow) {
    bp_buffer_init(&buffer, 8);
    (void)bp_buffer_append_char(&buffer, 'a');
    cr_assert(eq(ptr, bp_buffer_reserve(&buffer, SIZE_MAX), NULL));
    cr_assert(eq(int, buffer.status, BUGPACK_ERR_LIMIT));
}

Test(buffer, stays_failed_for_appends_that_would_fit) {
    bp_buffer_init(&buffer, 4);
    (void)bp_buffer_append_text(&buffer, "12345");
    cr_assert(eq(int, bp_buffer_append_char(&buffer, 'x'), BUGPACK_ERR_LIMIT));
    cr_assert(eq(int, bp_buffer_printf(&buffer, "%d", 1), BUGPACK_ERR_LIMIT));
    cr_assert(eq(ptr, bp_buffer_reserve(&buffer, 1), NULL));
    cr_assert(eq(sz, buffer.size, 0));
}

Test(buffer, is_as_new_after_clear_and_keeps_its_memory) {
    bp_buffer_init(&buffer, 4);
    (void)bp_buffer_append_text(&buffer, "123");
    (void)bp_buffer_append_text(&buffer, "456");
    const char *memory = buffer.data;
    bp_buffer_clear(&buffer);
    cr_assert(eq(int, buffer.status, BUGPACK_OK));
    cr_assert(eq(str, bp_buffer_text(&buffer), ""));
    cr_assert(eq(int, bp_buffer_append_text(&buffer, "abcd"), BUGPACK_OK));
    cr_assert(eq(ptr, buffer.data, memory));
}

Test(buffer, can_be_used_again_after_release) {
    bp_buffer_init(&buffer, 4);
    (void)bp_buffer_append_text(&buffer, "too long");
    bp_buffer_release(&buffer);
    cr_assert(eq(ptr, buffer.data, NULL));
    cr_assert(eq(int, bp_buffer_append_text(&buffer, "fits"), BUGPACK_OK));
}

Test(buffer, grows_through_many_appends_without_losing_a_byte) {
    bp_buffer_init(&buffer, 100000);
    for (size_t i = 0; i < 100000; i++) {
        cr_assert(eq(int, bp_buffer_append_char(&buffer, (char)('a' + i % 26)), BUGPACK_OK));
    }
    cr_assert(eq(sz, buffer.size, 100000));
    cr_assert(buffer.capacity <= 100001, "the capacity passes the maximum and its NUL");
    for (size_t i = 0; i < 100000; i++) {
        cr_assert(eq(chr, buffer.data[i], (char)('a' + i % 26)));
    }
}

Test(buffer, formats_behind_what_is_there) {
    bp_buffer_init(&buffer, 1000);
    (void)bp_buffer_append_text(&buffer, "n=");
    cr_assert(eq(int, bp_buffer_printf(&buffer, "%d, %-300s|", 42, "wide"), BUGPACK_OK));
    cr_assert(eq(sz, buffer.size, 2 + 4 + 300 + 1));
    cr_assert(eq(int, strncmp(buffer.data, "n=42, wide ", 11), 0));
    cr_assert(eq(chr, buffer.data[buffer.size - 1], '|'));
}

Test(buffer, counts_only_what_was_committed) {
    bp_buffer_init(&buffer, 100);
    char *end = bp_buffer_reserve(&buffer, 50);
    cr_assert(ne(ptr, end, NULL));
    memcpy(end, "three", 5);
    bp_buffer_commit(&buffer, 3);
    cr_assert(eq(str, bp_buffer_text(&buffer), "thr"));
    cr_assert(eq(sz, buffer.size, 3));
}
