#include "model/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/utf8.h"
#include "model/fields.h"

enum { name_max_bytes = 1024, first_slot_count = 256 };

void bp_folded_release(bp_folded *folded) {
    for (size_t i = 0; i < folded->count; i++) {
        free(folded->lines[i].text);
    }
    free(folded->lines);
    free(folded->slots);
    *folded = (bp_folded){.lines = NULL};
}

/* The slot of a text: its own, or the free one that it would get. */
static uint32_t *find_slot(const bp_folded *folded, const char *text, size_t byte_count) {
    size_t at = (size_t)XXH3_64bits(text, byte_count) & (folded->slot_count - 1);
    for (;; at = (at + 1) & (folded->slot_count - 1)) {
        uint32_t number = folded->slots[at];
        if (number == 0 || (folded->lines[number - 1].bytes == byte_count &&
                            memcmp(folded->lines[number - 1].text, text, byte_count) == 0)) {
            return &folded->slots[at];
        }
    }
}

/* At most half of the slots are in use. */
static bool reserve_slot(bp_folded *folded) {
    if (folded->count < folded->slot_count / 2) {
        return true;
    }
    size_t count = folded->slot_count == 0 ? first_slot_count : 2 * folded->slot_count;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    free(folded->slots);
    folded->slots = slots;
    folded->slot_count = count;
    for (size_t i = 0; i < folded->count; i++) {
        const bp_folded_line *line = &folded->lines[i];
        *find_slot(folded, line->text, line->bytes) = (uint32_t)i + 1;
    }
    return true;
}

bugpack_status bp_folded_add(bp_folded *folded, const char *text, size_t byte_count,
                             uint64_t count) {
    if (!reserve_slot(folded)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    uint32_t *slot = find_slot(folded, text, byte_count);
    if (*slot != 0) {
        folded->lines[*slot - 1].count += count;
        return BUGPACK_OK;
    }
    if (folded->count == BP_PROFILE_LINE_MAX ||
        byte_count > BP_PROFILE_BYTES_MAX - folded->text_bytes) {
        return BUGPACK_ERR_LIMIT;
    }
    char *copy = malloc(byte_count + 1);
    if (copy == NULL || !bp_array_reserve(&folded->lines, folded->count, &folded->capacity)) {
        free(copy);
        return BUGPACK_ERR_NO_MEMORY;
    }
    memcpy(copy, text, byte_count);
    copy[byte_count] = '\0';
    folded->lines[folded->count++] = (bp_folded_line){copy, byte_count, count};
    folded->text_bytes += byte_count;
    *slot = (uint32_t)folded->count;
    return BUGPACK_OK;
}

static int compare_lines(const void *one, const void *other) {
    const bp_folded_line *a = one, *b = other;
    if (a->count != b->count) {
        return a->count < b->count ? 1 : -1;
    }
    return strcmp(a->text, b->text);
}

bugpack_status bp_folded_print(bp_folded *folded, bp_buffer *out, bugpack_error *error) {
    if (folded->count > 0) {
        qsort(folded->lines, folded->count, sizeof *folded->lines, compare_lines);
    }
    free(folded->slots); /* they are of the old order */
    folded->slots = NULL;
    folded->slot_count = 0;
    for (size_t i = 0; i < folded->count; i++) {
        (void)bp_buffer_append(out, folded->lines[i].text, folded->lines[i].bytes);
        (void)bp_buffer_printf(out, " %" PRIu64 "\n", folded->lines[i].count);
    }
    return out->status == BUGPACK_OK ? BUGPACK_OK
                                     : bp_fail(error, out->status, "cannot print a profile: %s",
                                               bugpack_status_name(out->status));
}

static void append_name(bp_buffer *line, const char *name, size_t byte_count) {
    size_t end = bp_utf8_cut(name, byte_count, name_max_bytes);
    for (size_t i = 0; i < end; i++) {
        unsigned char byte = (unsigned char)name[i];
        char plain = byte < 0x20 || byte == 0x7f ? '?' : name[i];
        (void)bp_buffer_append_char(line, plain == ';' ? ':' : plain);
    }
}

void bp_folded_append_thread(bp_buffer *line, const char *name, size_t capacity) {
    size_t length = strnlen(name, capacity);
    append_name(line, length > 0 ? name : "?", length > 0 ? length : 1);
}

void bp_folded_append_frame(bp_buffer *line, const bp_frame_text *frame) {
    bp_buffer name;
    bp_buffer_init(&name, (size_t)64 << 10);
    (void)bp_buffer_append_char(line, ';');
    if (!bp_frame_append_name(&name, frame)) {
        const char *slash = frame->module != NULL ? strrchr(frame->module, '/') : NULL;
        const char *base = slash != NULL ? slash + 1 : frame->module;
        (void)(base == NULL
                   ? bp_buffer_append_text(&name, BP_PROFILE_MADE)
                   : bp_buffer_printf(&name, "[%.200s+0x%" PRIx64 "]", base, frame->file_address));
    }
    append_name(line, bp_buffer_text(&name), name.size);
    bp_buffer_release(&name);
}

void bp_profile_add(const bp_profile_facts *facts, bp_json *json) {
    bp_json_object_begin(json, "profile");
    bp_json_add_uint(json, "rate_hz", facts->rate_hz);
    bp_json_add_uint(json, "samples", facts->sample_count);
    bp_json_add_uint(json, "lost", facts->lost_count);
    bp_json_add_uint(json, "window_ms", facts->window_ns / BP_NS_PER_MS);
    bp_json_add_uint(json, "threads", facts->thread_count);
    bp_model_add_flag(json, "without_kernel", facts->excludes_kernel);
    bp_json_object_end(json);
}

void bp_profile_describe(const bp_profile_facts *facts, char *out, size_t out_bytes) {
    char lost[48] = "";
    if (facts->lost_count > 0) {
        (void)snprintf(lost, sizeof lost, "; %" PRIu64 " lost", facts->lost_count);
    }
    (void)snprintf(out, out_bytes,
                   "%" PRIu64 " samples of %" PRIu64 " thread%s, %" PRIu64 " a second for %" PRIu64
                   " ms%s%s",
                   facts->sample_count, facts->thread_count, facts->thread_count == 1 ? "" : "s",
                   facts->rate_hz, (uint64_t)(facts->window_ns / BP_NS_PER_MS), lost,
                   facts->excludes_kernel ? "; not while in the kernel, as this user may not" : "");
}
