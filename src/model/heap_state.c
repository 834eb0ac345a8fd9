#include "model/heap_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/fields.h"

/* One number of the state, in the order of all forms. */
typedef struct heap_number {
    const char *key;
    uint64_t value;
} heap_number;

enum { number_count = 5 };

static void list_numbers(const bugpack_heap_state *state, heap_number ret_numbers[number_count]) {
    const heap_number numbers[number_count] = {{"allocated_bytes", state->allocated_bytes},
                                               {"active_bytes", state->active_bytes},
                                               {"resident_bytes", state->resident_bytes},
                                               {"mapped_bytes", state->mapped_bytes},
                                               {"narenas", state->narenas}};
    memcpy(ret_numbers, numbers, sizeof numbers);
}

bugpack_status bp_heap_state_print(const bugpack_heap_state *state, bp_buffer *out,
                                   bugpack_error *error) {
    heap_number numbers[number_count];
    list_numbers(state, numbers);
    bp_json json;
    bp_json_begin(&json, out);
    for (size_t i = 0; i < number_count; i++) {
        if (numbers[i].value != BUGPACK_HEAP_UNKNOWN) {
            bp_json_add_uint(&json, numbers[i].key, numbers[i].value);
        }
    }
    if (state->allocator[0] != '\0') {
        bp_model_add_name(&json, "allocator", state->allocator, sizeof state->allocator);
    }
    return bp_json_finish(&json, error);
}

/* A number as text, in `storage` unless it is unknown. */
static const char *value_text(uint64_t value, char storage[24]) {
    if (value == BUGPACK_HEAP_UNKNOWN) {
        return "(unknown)";
    }
    (void)snprintf(storage, 24, "%" PRIu64, value);
    return storage;
}

bugpack_status bp_heap_state_text(const bugpack_heap_state *state, bp_buffer *out) {
    heap_number numbers[number_count];
    list_numbers(state, numbers);
    for (size_t i = 0; i < number_count; i++) {
        char storage[24];
        (void)bp_buffer_printf(out, "%s: %s\n", numbers[i].key,
                               value_text(numbers[i].value, storage));
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
    heap_number old_numbers[number_count], new_numbers[number_count];
    list_numbers(before, old_numbers);
    list_numbers(after, new_numbers);
    diff_allocator(before, after, out);
    for (size_t i = 0; i < number_count; i++) {
        if (old_numbers[i].value != new_numbers[i].value) {
            char old_storage[24], new_storage[24];
            (void)bp_buffer_printf(out, "%s: %s \xe2\x86\x92 %s\n", old_numbers[i].key,
                                   value_text(old_numbers[i].value, old_storage),
                                   value_text(new_numbers[i].value, new_storage));
        }
    }
    return out->status;
}
