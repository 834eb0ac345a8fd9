#include "model/heap_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "json/member.h"
#include "json/scanner.h"
#include "model/fields.h"

/* In the order of all forms. */
enum { number_count = 5 };
static const struct {
    const char *key;
    size_t offset;
} numbers[number_count] = {{"allocated_bytes", offsetof(bugpack_heap_state, allocated_bytes)},
                           {"active_bytes", offsetof(bugpack_heap_state, active_bytes)},
                           {"resident_bytes", offsetof(bugpack_heap_state, resident_bytes)},
                           {"mapped_bytes", offsetof(bugpack_heap_state, mapped_bytes)},
                           {"narenas", offsetof(bugpack_heap_state, narenas)}};

static uint64_t get_number(const bugpack_heap_state *state, size_t number) {
    uint64_t value;
    memcpy(&value, (const char *)state + numbers[number].offset, sizeof value);
    return value;
}

bugpack_status bp_heap_state_print(const bugpack_heap_state *state, bp_buffer *out,
                                   bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    for (size_t i = 0; i < number_count; i++) {
        uint64_t value = get_number(state, i);
        if (value != BUGPACK_HEAP_UNKNOWN) {
            bp_json_add_uint(&json, numbers[i].key, value);
        }
    }
    if (state->allocator[0] != '\0') {
        bp_model_add_name(&json, "allocator", state->allocator, sizeof state->allocator);
    }
    return bp_json_finish(&json, error);
}

/* Cuts a name to fit; '?' replaces what is not printable ASCII, because states are shown as lines.
 */
static bugpack_status copy_allocator(const bp_json_token *token, bugpack_heap_state *state,
                                     bugpack_error *error) {
    bp_buffer name;
    bp_buffer_init(&name, token->byte_count + 1);
    (void)bp_json_token_text(token, &name);
    size_t kept = name.size < sizeof state->allocator ? name.size : sizeof state->allocator - 1;
    for (size_t i = 0; i < kept; i++) {
        state->allocator[i] = name.data[i] >= ' ' && name.data[i] <= '~' ? name.data[i] : '?';
    }
    state->allocator[kept] = '\0';
    bugpack_status status =
        name.status == BUGPACK_OK ? BUGPACK_OK : bp_fail_memory(error, "read the state of a heap");
    bp_buffer_release(&name);
    return status;
}

bugpack_status bp_heap_state_parse(const void *text, size_t byte_count,
                                   bugpack_heap_state *ret_state, bugpack_error *error) {
    bp_json_field fields[] = {{.key = "\"allocated_bytes\""}, {.key = "\"active_bytes\""},
                              {.key = "\"resident_bytes\""},  {.key = "\"mapped_bytes\""},
                              {.key = "\"narenas\""},         {.key = "\"allocator\""}};
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    char sentence[128];
    bugpack_status status = bp_json_find(text, byte_count, fields, number_count + 1, error);
    for (size_t i = 0; i <= number_count && status == BUGPACK_OK; i++) {
        const bp_json_token *token = &fields[i].value;
        uint64_t value;
        if (token->byte_count == 0 || bp_json_token_is(token, "null")) {
            continue; /* unknown */
        }
        if (i == number_count) {
            status = token->text[0] == '"' ? copy_allocator(token, &state, error)
                                           : bp_json_fail_at(text, token->text, error,
                                                             "\"allocator\" is not a string");
        } else if (bp_json_token_uint(token, &value) && value != BUGPACK_HEAP_UNKNOWN) {
            memcpy((char *)&state + numbers[i].offset, &value, sizeof value);
        } else {
            (void)snprintf(sentence, sizeof sentence, "%s is not a whole number from 0 to %" PRIu64,
                           fields[i].key, (uint64_t)(BUGPACK_HEAP_UNKNOWN - 1));
            status = bp_json_fail_at(text, token->text, error, sentence);
        }
    }
    if (status == BUGPACK_OK) {
        *ret_state = state;
    }
    return status;
}

static void append_value(bp_buffer *out, uint64_t value) {
    if (value == BUGPACK_HEAP_UNKNOWN) {
        (void)bp_buffer_append_text(out, "(unknown)");
    } else {
        (void)bp_buffer_printf(out, "%" PRIu64, value);
    }
}

bugpack_status bp_heap_state_text(const bugpack_heap_state *state, bp_buffer *out) {
    for (size_t i = 0; i < number_count; i++) {
        (void)bp_buffer_printf(out, "%s: ", numbers[i].key);
        append_value(out, get_number(state, i));
        (void)bp_buffer_append_char(out, '\n');
    }
    return out->status;
}

bugpack_status bp_heap_state_diff(const bugpack_heap_state *before, const bugpack_heap_state *after,
                                  bp_buffer *out) {
    for (size_t i = 0; i < number_count; i++) {
        uint64_t old_value = get_number(before, i);
        uint64_t new_value = get_number(after, i);
        if (old_value != new_value) {
            (void)bp_buffer_printf(out, "%s: ", numbers[i].key);
            append_value(out, old_value);
            (void)bp_buffer_append_text(out, " \xe2\x86\x92 ");
            append_value(out, new_value);
            (void)bp_buffer_append_char(out, '\n');
        }
    }
    const int max_bytes = BUGPACK_ALLOCATOR_NAME_BYTES - 1; /* there may be no NUL */
    if (strncmp(before->allocator, after->allocator, (size_t)max_bytes) != 0) {
        (void)bp_buffer_printf(out, "allocator: %.*s \xe2\x86\x92 %.*s\n", max_bytes,
                               before->allocator[0] != '\0' ? before->allocator : "(unknown)",
                               max_bytes,
                               after->allocator[0] != '\0' ? after->allocator : "(unknown)");
    }
    return out->status;
}
