#include "model/heap_state.h"

#include <inttypes.h>
#include <string.h>

#include "model/fields.h"

const char *const bp_heap_number_keys[] = {"allocated_bytes", "active_bytes", "resident_bytes",
                                           "mapped_bytes", "narenas"};

static const size_t offsets[BP_HEAP_NUMBER_COUNT] = {
    offsetof(bugpack_heap_state, allocated_bytes), offsetof(bugpack_heap_state, active_bytes),
    offsetof(bugpack_heap_state, resident_bytes), offsetof(bugpack_heap_state, mapped_bytes),
    offsetof(bugpack_heap_state, narenas)};

uint64_t bp_heap_number_get(const bugpack_heap_state *state, size_t number) {
    uint64_t value;
    memcpy(&value, (const char *)state + offsets[number], sizeof value);
    return value;
}

void bp_heap_number_set(bugpack_heap_state *state, size_t number, uint64_t value) {
    memcpy((char *)state + offsets[number], &value, sizeof value);
}

bugpack_status bp_heap_state_print(const bugpack_heap_state *state, bp_buffer *out,
                                   bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    for (size_t i = 0; i < BP_HEAP_NUMBER_COUNT; i++) {
        uint64_t value = bp_heap_number_get(state, i);
        if (value != BUGPACK_HEAP_UNKNOWN) {
            bp_json_add_uint(&json, bp_heap_number_keys[i], value);
        }
    }
    if (state->allocator[0] != '\0') {
        bp_model_add_name(&json, "allocator", state->allocator, sizeof state->allocator);
    }
    return bp_json_finish(&json, error);
}

static void append_value(bp_buffer *out, uint64_t value) {
    if (value == BUGPACK_HEAP_UNKNOWN) {
        (void)bp_buffer_append_text(out, "(unknown)");
    } else {
        (void)bp_buffer_printf(out, "%" PRIu64, value);
    }
}

bugpack_status bp_heap_state_text(const bugpack_heap_state *state, bp_buffer *out) {
    for (size_t i = 0; i < BP_HEAP_NUMBER_COUNT; i++) {
        (void)bp_buffer_printf(out, "%s: ", bp_heap_number_keys[i]);
        append_value(out, bp_heap_number_get(state, i));
        (void)bp_buffer_append_char(out, '\n');
    }
    return out->status;
}

static void diff_allocator(const bugpack_heap_state *before, const bugpack_heap_state *after,
                           bp_buffer *out) {
    const int max_bytes = BUGPACK_ALLOCATOR_NAME_BYTES - 1; /* there may be no NUL */
    if (strncmp(before->allocator, after->allocator, (size_t)max_bytes) != 0) {
        (void)bp_buffer_printf(out, "allocator: %.*s \xe2\x86\x92 %.*s\n", max_bytes,
                               before->allocator[0] != '\0' ? before->allocator : "(unknown)",
                               max_bytes,
                               after->allocator[0] != '\0' ? after->allocator : "(unknown)");
    }
}

bugpack_status bp_heap_state_diff(const bugpack_heap_state *before, const bugpack_heap_state *after,
                                  bp_buffer *out) {
    diff_allocator(before, after, out);
    for (size_t i = 0; i < BP_HEAP_NUMBER_COUNT; i++) {
        uint64_t old_value = bp_heap_number_get(before, i);
        uint64_t new_value = bp_heap_number_get(after, i);
        if (old_value != new_value) {
            (void)bp_buffer_printf(out, "%s: ", bp_heap_number_keys[i]);
            append_value(out, old_value);
            (void)bp_buffer_append_text(out, " \xe2\x86\x92 ");
            append_value(out, new_value);
            (void)bp_buffer_append_char(out, '\n');
        }
    }
    return out->status;
}
