#include "model/thread_heap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "model/fields.h"

/* Scripts compare these, so none is ever renamed. */
static const char *const failure_names[BP_HEAP_FAILURE_COUNT] = {
    [BP_HEAP_FAILURE_NONE] = "none",
    [BP_HEAP_FAILURE_SELF] = "self",
    [BP_HEAP_FAILURE_PID_MISSING] = "pid-missing",
    [BP_HEAP_FAILURE_READLINK] = "readlink-failure",
    [BP_HEAP_FAILURE_MAPS_READ] = "maps-read-failure",
    [BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND] = "jemalloc-not-found",
    [BP_HEAP_FAILURE_ARCH_MISMATCH] = "arch-mismatch",
    [BP_HEAP_FAILURE_DWARF_PARSE] = "dwarf-parse-failure",
    [BP_HEAP_FAILURE_CALIBRATION_REFUSED] = "calibration-refused",
    [BP_HEAP_FAILURE_CALIBRATION] = "calibration-failure",
    [BP_HEAP_FAILURE_UNSUPPORTED] = "unsupported",
    [BP_HEAP_FAILURE_SYSTEM] = "system-error",
    [BP_HEAP_FAILURE_THREAD_POINTER] = "thread-pointer",
    [BP_HEAP_FAILURE_PTRACE_SEIZE] = "ptrace-seize",
    [BP_HEAP_FAILURE_PTRACE_INTERRUPT] = "ptrace-interrupt",
    [BP_HEAP_FAILURE_WAITPID] = "waitpid",
    [BP_HEAP_FAILURE_GET_REGSET] = "get-regset",
    [BP_HEAP_FAILURE_VM_READV] = "process-vm-readv",
    [BP_HEAP_FAILURE_TLS_ARITHMETIC] = "tls-arithmetic",
};

const char *bp_heap_failure_name(bp_heap_failure failure) {
    return (unsigned)failure < BP_HEAP_FAILURE_COUNT ? failure_names[failure] : "unknown";
}

bool bp_heap_failure_is_absence(bp_heap_failure failure, int system_errno) {
    return failure == BP_HEAP_FAILURE_SELF || failure == BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND ||
           (failure == BP_HEAP_FAILURE_READLINK && system_errno == ENOENT);
}

bool bp_heap_failure_is_trouble(bp_heap_failure failure, int system_errno) {
    /* No path is followed to maps and exe. */
    bool is_of_proc = failure == BP_HEAP_FAILURE_MAPS_READ || failure == BP_HEAP_FAILURE_READLINK;
    /* A thread that does not stop in time is the process's own matter. */
    return failure == BP_HEAP_FAILURE_SYSTEM ||
           (is_of_proc && (system_errno == ELOOP || system_errno == ENOTDIR)) ||
           (failure != BP_HEAP_FAILURE_WAITPID && bp_errno_is_trouble(system_errno));
}

void bp_thread_heap_reading_release(bp_thread_heap_reading *reading) {
    for (size_t i = 0; i < reading->snapshot_count; i++) {
        free(reading->snapshots[i].threads);
    }
    free(reading->snapshots);
    free(reading->object);
    *reading = (bp_thread_heap_reading){0};
}

size_t bp_thread_heap_unread_count(const bp_thread_heap_reading *reading) {
    if (reading->snapshot_count == 0) {
        return 0;
    }
    const bp_thread_heap_snapshot *last = &reading->snapshots[reading->snapshot_count - 1];
    return last->thread_count - last->measured_count;
}

static void add_thread(bp_json *json, const bp_thread_heap *thread) {
    bp_json_object_begin(json, NULL);
    bp_json_add_uint(json, "tid", thread->tid);
    bp_model_add_name(json, "name", thread->name, sizeof thread->name);
    bp_json_add_bool(json, "measured", thread->is_measured);
    if (thread->is_measured) {
        bp_json_add_uint(json, "allocated_bytes", thread->allocated_bytes);
        bp_json_add_uint(json, "deallocated_bytes", thread->deallocated_bytes);
    } else {
        bp_json_add_text(json, "failure", bp_heap_failure_name(thread->failure));
    }
    bp_json_object_end(json);
}

static void add_snapshot(bp_json *json, const bp_thread_heap_snapshot *snapshot) {
    bp_json_object_begin(json, NULL);
    bp_model_add_time(json, "taken_at", snapshot->taken_wall_ns);
    bp_json_add_uint(json, "monotonic_ns", snapshot->taken_ns);
    bp_json_add_uint(json, "stopped_threads", snapshot->stopped_count);
    bp_json_add_uint(json, "vanished_threads", snapshot->vanished_count);
    bp_json_array_begin(json, "threads");
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        add_thread(json, &snapshot->threads[i]);
    }
    bp_json_array_end(json);
    bp_json_object_end(json);
}

static void add_reading(const void *item, bp_json *json) {
    const bp_thread_heap_reading *reading = item;
    bp_json_add_uint(json, "pid", reading->pid);
    bp_model_add_name(json, "name", reading->process_name, sizeof reading->process_name);
    bp_json_add_bool(json, "measured", reading->failure == BP_HEAP_FAILURE_NONE);
    if (reading->failure != BP_HEAP_FAILURE_NONE) {
        bp_json_add_text(json, "failure", bp_heap_failure_name(reading->failure));
        bp_json_add_text(json, "reason", reading->reason);
    }
    if (reading->object != NULL) {
        bp_json_object_begin(json, "jemalloc");
        bp_json_add_text(json, "path", reading->object);
        bp_model_add_known_text(json, "build_id", reading->build_id);
        bp_json_add_text(json, "place", reading->is_shared ? "library" : "executable");
        if (reading->failure == BP_HEAP_FAILURE_NONE) {
            bp_json_add_text(json, "offsets_from",
                             reading->is_calibrated ? "calibration" : "debug-information");
        }
        bp_json_object_end(json);
    }
    bp_json_add_bool(json, "interrupted", reading->is_interrupted);
    bp_json_array_begin(json, "snapshots");
    for (size_t i = 0; i < reading->snapshot_count; i++) {
        add_snapshot(json, &reading->snapshots[i]);
    }
    bp_json_array_end(json);
}

bugpack_status bp_thread_heap_print(const bp_thread_heap_reading *readings, size_t count,
                                    bp_buffer *out, bugpack_error *error) {
    return bp_model_print_tree(readings, sizeof *readings, count, add_reading, NULL, NULL, out,
                               error);
}

/* Shows plain ASCII alone, because a terminal obeys some other bytes. */
static void append_plain(bp_buffer *out, const char *text, size_t capacity) {
    for (size_t i = 0; i < capacity && text[i] != '\0'; i++) {
        (void)bp_buffer_append_char(out, text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?');
    }
}

static void append_thread_line(bp_buffer *out, const bp_thread_heap *thread) {
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

static void append_snapshot_lines(bp_buffer *out, const bp_thread_heap_snapshot *snapshot) {
    char time[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(snapshot->taken_wall_ns, time);
    (void)bp_buffer_printf(out, "\n%s\n%10s  %20s  %20s  %s\n", time, "tid", "allocated_bytes",
                           "deallocated_bytes", "name");
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        append_thread_line(out, &snapshot->threads[i]);
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
        append_snapshot_lines(out, &reading->snapshots[i]);
    }
    return out->status == BUGPACK_OK ? BUGPACK_OK
                                     : bp_fail(error, out->status, "cannot print heap counters: %s",
                                               bugpack_status_name(out->status));
}
