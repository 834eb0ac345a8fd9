#include "unit/notifications_fixture.h"

#include "base/clock.h"
#include "unit/unit.h"

bp_notifications *notifications;
bp_ring *ring;

void open_fixture(void) {
    cr_assert(temp_dir_make(&dir));
    cr_assert(zero(int, bp_ring_new(bp_notifications_ring_bytes(), &ring, NULL)));
    cr_assert(zero(int, bp_notifications_new(ring, &notifications, NULL)));
}

void close_fixture(void) {
    bp_notifications_free(notifications);
    temp_dir_remove(&dir);
}

void add(uint64_t at_secs, bugpack_level level, const char *source, const char *text) {
    bp_notifications_add(notifications, at_secs * BP_NS_PER_SEC, level, source, text, strlen(text));
}

bp_temp_file copy(void) {
    bp_temp_file records;
    bp_ring_view view;
    cr_assert(zero(int, bp_temp_file_open(&records, dir.fd, UINT64_MAX, NULL)));
    cr_assert(zero(int, bp_ring_copy(ring, UINT64_MAX, bp_temp_file_sink, &records, &view, NULL)));
    cr_assert(zero(int, bp_temp_file_flush(&records, NULL)));
    return records;
}

bp_buffer print(const bp_temp_file *records, uint32_t expected_count) {
    bp_buffer out;
    bp_buffer_init(&out, (size_t)16 << 20);
    cr_assert(zero(int, bp_notifications_print(records, 0, &out, &failure)), "%s", failure.message);
    cr_assert(eq(sz, count_in(&out, "\"first\": "), expected_count));
    return out;
}

bp_buffer print_now(uint32_t expected_count) {
    bp_temp_file records = copy();
    bp_buffer out = print(&records, expected_count);
    bp_temp_file_release(&records);
    return out;
}

size_t count_in(const bp_buffer *text, const char *needle) {
    size_t count = 0;
    for (const char *at = bp_buffer_text(text); (at = strstr(at, needle)) != NULL; at++) {
        count++;
    }
    return count;
}
