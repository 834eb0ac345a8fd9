/*
 * thread-heap.json for a person at a terminal.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "model/thread_heap.h"

/* A name may hold anything, and a terminal obeys some bytes: only plain ASCII is shown. */
static void append_plain(bp_buffer *out, const char *text, size_t capacity) {
    for (size_t i = 0; i < capacity && text[i] != '\0'; i++) {
        (void)bp_buffer_append_char(out, text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?');
    }
}

static void append_thread(bp_buffer *out, const bp_thread_heap *thread) {
    (void)bp_buffer_printf(out, "%10" PRIu64 "  ", thread->tid);
    if (thread->is_measured) {
        (void)bp_buffer_printf(out, "%20" PRIu64 "  %20" PRIu64 "  ", thread->allocated_bytes,
                               thread->deallocated_bytes);
    } else {
        (void)bp_buffer_printf(out, "%20s  %20s  ", "(unknown)",
                               bp_heap_failure_name(thread->failure));
    }
    append_plain(out, thread->name, sizeof thread->name);
    (void)bp_buffer_append_char(out, '\n');
}

static void append_snapshot(bp_buffer *out, const bp_thread_heap_snapshot *snapshot) {
    char time[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(snapshot->taken_wall_ns, time);
    (void)bp_buffer_printf(out, "\n%s\n%10s  %20s  %20s  %s\n", time, "tid", "allocated_bytes",
                           "deallocated_bytes", "name");
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        append_thread(out, &snapshot->threads[i]);
    }
}

bugpack_status bp_thread_heap_print_text(const bp_thread_heap_reading *reading, bp_buffer *out,
                                         bugpack_error *error) {
    (void)bp_buffer_printf(out, "process: %" PRIu64 " ", reading->pid);
    append_plain(out, reading->process_name, sizeof reading->process_name);
    (void)bp_buffer_append_text(out, "\njemalloc: ");
    if (reading->object != NULL) {
        append_plain(out, reading->object, strlen(reading->object));
        (void)bp_buffer_append_char(out, '\n');
    } else {
        (void)bp_buffer_append_text(out, "(unknown)\n");
    }
    if (reading->failure != BP_HEAP_FAILURE_NONE) {
        (void)bp_buffer_printf(out, "not measured: %s: ", bp_heap_failure_name(reading->failure));
        append_plain(out, reading->reason, sizeof reading->reason);
        (void)bp_buffer_append_char(out, '\n');
    }
    for (size_t i = 0; i < reading->snapshot_count; i++) {
        append_snapshot(out, &reading->snapshots[i]);
    }
    return out->status == BUGPACK_OK ? BUGPACK_OK
                                     : bp_fail(error, out->status, "cannot print heap counters: %s",
                                               bugpack_status_name(out->status));
}
