#include "process/python_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"

/* Bounds of what is followed and copied. */
enum {
    interpreter_max = 64,
    step_max = 2 * BP_PYTHON_FRAME_MAX, /* with frames of the C stack, which are no function's */
    attempt_max = 5,
    name_max = 200,
    path_max = 1000,
    lines_max = 64 << 10,
    object_max = 256 /* bytes of a frame or a code object */
};

/* In all builds with a GIL (Include/object.h, bytesobject.h, cpython/unicodeobject.h). */
enum {
    type_at = 8,
    size_at = 16,
    text_state_at = 32,
    text_head_bytes = 40,
    bytes_at = 32,
    unit_bytes = 2
};

/* Values of `owner` from this on: a frame that marks where C called the interpreter
 * (FRAME_OWNED_BY_CSTACK of 3.12, FRAME_OWNED_BY_INTERPRETER of 3.14 in pycore_frame.h and
 * pycore_interpframe_structs.h). */
enum { owner_is_c = 3 };

enum { version_3_11 = 0x030b, version_3_12, version_3_13, version_3_14 };

/*
 * Offsets as in pycore_runtime.h, pycore_interp.h, pycore_frame.h, cpython/pystate.h and
 * cpython/code.h of 3.11.2, 3.11.7 and 3.12.1 on 64-bit systems; they stay the same within a
 * version. From 3.13 on these are places in _Py_DebugOffsets, counted in words, where an offset is
 * found: pycore_runtime.h of 3.13.0, pycore_debug_offsets.h of 3.14.
 */
typedef struct version_row {
    uint32_t version;
    bool is_described; /* and has no _PyCFrame */
    uint32_t c_frame, wide;
    uint32_t at[BP_PYTHON_OFFSET_COUNT];
    uint32_t checks[4]; /* where ob_type, length, state and ob_sval are described */
} version_row;

static const version_row rows[] = {
    {version_3_11,
     false,
     8,
     24,
     {40, 0, 16, 8, 160, 56, 32, 48, 56, 69, 112, 128, 136, 72, 184, 48},
     {0}},
    {version_3_12,
     false,
     0,
     16,
     {40, 0, 72, 8, 144, 56, 0, 8, 56, 70, 112, 128, 136, 68, 192, 40},
     {0}},
    {version_3_13,
     true,
     0,
     16,
     {5, 8, 9, 21, 25, 23, 30, 29, 31, 33, 35, 37, 38, 39, 43, 70},
     {45, 69, 68, 66}},
    {version_3_14,
     true,
     0,
     16,
     {5, 8, 9, 24, 28, 26, 33, 32, 34, 36, 40, 42, 43, 44, 48, 80},
     {51, 79, 78, 76}}};

enum { described_words = 81, described_version = 1, described_free_threaded = 2 };

static bool read_word(const bp_python_layout *layout, uint64_t address, uint64_t *ret_value) {
    return layout->read(layout->context, address, ret_value, sizeof *ret_value);
}

static uint64_t word_at(const unsigned char *bytes, size_t offset) {
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

/* Takes the offsets that the interpreter describes. False where it is not what the row says. */
static bool take_description(const version_row *row, bp_python_layout *layout) {
    static const uint64_t checks[] = {type_at, size_at, text_state_at, bytes_at};
    enum { state_max = 1 << 24 }; /* far above the size of an interpreter's state */
    uint64_t words[described_words];
    if (!layout->read(layout->context, layout->runtime, words, sizeof words) ||
        memcmp(words, "xdebugpy", sizeof words[0]) != 0 ||
        words[described_version] != layout->version || words[described_free_threaded] != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (words[row->checks[i]] != checks[i]) {
            return false;
        }
    }
    for (size_t i = 0; i < BP_PYTHON_OFFSET_COUNT; i++) {
        uint64_t offset = words[row->at[i]];
        if (offset > (i < BP_PYTHON_CODE ? state_max : object_max - sizeof offset)) {
            return false;
        }
        layout->at[i] = (uint32_t)offset;
    }
    return true;
}

static uint64_t find_address(bp_elf_object *file, uint64_t base, const char *name) {
    Elf64_Sym symbol;
    return bp_elf_find_symbol(file, name, &symbol) ? base + symbol.st_value : 0;
}

bool bp_python_layout_find(bp_elf_object *file, uint64_t base, bp_python_layout *layout) {
    layout->runtime = find_address(file, base, "_PyRuntime");
    if (layout->runtime != 0) {
        layout->version_at = find_address(file, base, "Py_Version");
        layout->code_type = find_address(file, base, "PyCode_Type");
        layout->text_type = find_address(file, base, "PyUnicode_Type");
        layout->bytes_type = find_address(file, base, "PyBytes_Type");
    }
    return layout->runtime != 0;
}

bp_python_support bp_python_layout_read(bp_python_layout *layout) {
    enum { release_shift = 16, level_shift = 4, level_mask = 15, level_candidate = 12 };
    layout->version = 0;
    if (layout->version_at != 0 && !read_word(layout, layout->version_at, &layout->version)) {
        return BP_PYTHON_UNREAD;
    }
    if (layout->code_type == 0 || layout->text_type == 0 || layout->bytes_type == 0 ||
        (layout->version >> level_shift & level_mask) < level_candidate) {
        return BP_PYTHON_UNKNOWN;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const version_row *row = &rows[i];
        if (layout->version >> release_shift == row->version) {
            layout->has_c_frame = !row->is_described;
            layout->c_frame = row->c_frame;
            layout->wide = row->wide;
            memcpy(layout->at, row->at, sizeof layout->at);
            return !row->is_described || take_description(row, layout) ? BP_PYTHON_KNOWN
                                                                       : BP_PYTHON_UNKNOWN;
        }
    }
    return BP_PYTHON_UNKNOWN;
}

void bp_python_print_version(uint64_t version, char out[BP_PYTHON_VERSION_BYTES]) {
    (void)snprintf(out, BP_PYTHON_VERSION_BYTES, "%u.%u.%u", (unsigned)(version >> 24 & 0xff),
                   (unsigned)(version >> 16 & 0xff), (unsigned)(version >> 8 & 0xff));
}

size_t bp_python_list_threads(const bp_python_layout *layout, bp_python_thread *threads,
                              size_t thread_max) {
    const uint32_t *at = layout->at;
    uint64_t interpreter = 0, state;
    size_t count = 0, steps = 0;
    (void)read_word(layout, layout->runtime + at[BP_PYTHON_INTERPRETERS], &interpreter);
    for (unsigned i = 0; interpreter != 0 && i < interpreter_max; i++) {
        bool is_read = read_word(layout, interpreter + at[BP_PYTHON_THREADS], &state);
        while (is_read && state != 0 && steps++ < thread_max) {
            bp_python_thread *thread = &threads[count];
            *thread = (bp_python_thread){.state = state};
            count += read_word(layout, state + at[BP_PYTHON_TID], &thread->tid);
            is_read = read_word(layout, state + at[BP_PYTHON_NEXT_THREAD], &state);
        }
        if (!read_word(layout, interpreter + at[BP_PYTHON_NEXT_INTERPRETER], &interpreter)) {
            break;
        }
    }
    return count;
}

/* A frame as it is in memory. */
typedef struct raw_frame {
    uint64_t address, code, previous, instruction;
} raw_frame;

/* One reading of a thread's frames, innermost first. */
typedef struct chain {
    raw_frame frames[BP_PYTHON_FRAME_MAX];
    size_t count;
    bool has_more;
} chain;

/* The bytes of an object from its start to the last of these words. */
static size_t count_bytes(const bp_python_layout *layout, bp_python_offset first,
                          bp_python_offset last) {
    size_t bytes = 0;
    for (size_t i = first; i <= last; i++) {
        size_t end = layout->at[i] + sizeof(uint64_t);
        bytes = end > bytes ? end : bytes;
    }
    return bytes;
}

/* False where memory that a pointer names is not there. */
static bool read_chain(const bp_python_layout *layout, uint64_t state, chain *out) {
    static const uint64_t tag_mask = 7; /* low bits that are no address: _PyStackRef of 3.14 */
    const uint32_t *at = layout->at;
    const size_t frame_bytes = count_bytes(layout, BP_PYTHON_CODE, BP_PYTHON_OWNER);
    uint64_t address = 0;
    out->count = 0;
    bool is_read = read_word(layout, state + at[BP_PYTHON_FRAME], &address);
    if (is_read && layout->has_c_frame && address != 0) {
        is_read = read_word(layout, address + layout->c_frame, &address);
    }
    for (unsigned i = 0; is_read && address != 0 && i < step_max; i++) {
        raw_frame frame = {.address = address};
        unsigned char bytes[object_max];
        is_read = layout->read(layout->context, address, bytes, frame_bytes);
        if (!is_read) {
            break;
        }
        frame.code = word_at(bytes, at[BP_PYTHON_CODE]) & ~tag_mask;
        frame.previous = word_at(bytes, at[BP_PYTHON_PREVIOUS]);
        frame.instruction = word_at(bytes, at[BP_PYTHON_INSTRUCTION]);
        if (bytes[at[BP_PYTHON_OWNER]] < owner_is_c) {
            if (out->count == BP_PYTHON_FRAME_MAX) {
                break;
            }
            out->frames[out->count++] = frame;
        }
        address = frame.previous;
    }
    out->has_more = address != 0;
    return is_read;
}

/*
 * How many of the innermost frames of `one` are not known to have been there all the time from one
 * reading to the other. A caller does not move on while what it called runs.
 */
static size_t count_changed(const chain *one, const chain *other) {
    size_t left = one->count, there = other->count;
    if (left == 0) {
        return 0;
    }
    while (there > 0 && other->frames[there - 1].address != one->frames[left - 1].address) {
        there--;
    }
    while (left > 0 && there > 0) {
        const raw_frame *frame = &one->frames[left - 1], *again = &other->frames[there - 1];
        if (frame->address != again->address || frame->code != again->code ||
            frame->previous != again->previous) {
            break;
        }
        left--;
        there--;
        if (frame->instruction != again->instruction) {
            break;
        }
    }
    return left;
}

/* True for an object of this type, whose first bytes are copied. */
static bool read_object(const bp_python_layout *layout, uint64_t address, uint64_t type,
                        unsigned char *out, size_t bytes) {
    return layout->read(layout->context, address, out, bytes) && word_at(out, type_at) == type;
}

static uint32_t character_at(const unsigned char *characters, size_t index, size_t width) {
    uint32_t code = 0;
    for (size_t i = 0; i < width; i++) {
        code |= (uint32_t)characters[index * width + i] << 8 * i;
    }
    bool is_character = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) && code != 0;
    return is_character ? code : 0xfffd;
}

/* As UTF-8; of more than `most` characters the first, or the last. NULL: not a text, or no memory.
 */
static char *read_text(const bp_python_layout *layout, uint64_t address, size_t most,
                       bool keeps_end) {
    static const char ellipsis[] = "\u2026";
    unsigned char head[text_head_bytes];
    if (!read_object(layout, address, layout->text_type, head, sizeof head)) {
        return NULL;
    }
    uint64_t length = word_at(head, size_at), start = 0;
    unsigned state = head[text_state_at]; /* interned 2 bits, kind 3, compact 1, ASCII 1 */
    size_t width = state >> 2 & 7;
    bool is_compact = (state >> 5 & 1) != 0, is_ascii = (state >> 6 & 1) != 0;
    if (!is_compact || length == 0 || length > INT32_MAX ||
        (width != 1 && width != 2 && width != 4)) {
        return NULL;
    }
    bool is_cut = length > most;
    size_t count = is_cut ? most : (size_t)length, used = 0;
    if (is_cut && keeps_end) {
        start = length - most;
    }
    uint64_t characters_at = address + layout->at[BP_PYTHON_ASCII] + (is_ascii ? 0 : layout->wide);
    unsigned char *characters = malloc(count * width);
    char *text = malloc(count * BP_UTF8_MAX_BYTES + sizeof ellipsis);
    if (characters == NULL || text == NULL ||
        !layout->read(layout->context, characters_at + start * width, characters, count * width)) {
        free(characters);
        free(text);
        return NULL;
    }
    if (is_cut && keeps_end) {
        memcpy(text, ellipsis, sizeof ellipsis - 1);
        used = sizeof ellipsis - 1;
    }
    for (size_t i = 0; i < count; i++) {
        used += bp_utf8_put(character_at(characters, i, width), text + used);
    }
    memcpy(text + used, is_cut && !keeps_end ? ellipsis : "",
           is_cut && !keeps_end ? sizeof ellipsis : 1);
    free(characters);
    return text;
}

/* Six bits a byte, the lowest first; of a signed one the lowest bit is the sign
 * (Objects/locations.md). */
static int64_t take_signed(const unsigned char **at, const unsigned char *end) {
    uint64_t value = 0;
    unsigned shift = 0;
    unsigned char byte = 0x40;
    while ((byte & 0x40) != 0 && *at < end && shift < 36) {
        byte = *(*at)++;
        value |= (uint64_t)(byte & 0x3f) << shift;
        shift += 6;
    }
    return (value & 1) != 0 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* The line of an instruction, by a table of locations (Objects/locations.md); 0: it has none. */
static int find_line(const unsigned char *at, const unsigned char *end, int64_t line,
                     uint64_t unit) {
    enum { one_line = 10, no_columns = 13, long_form = 14, no_location = 15 };
    uint64_t next_unit = 0;
    while (at < end && (*at & 0x80) != 0) {
        unsigned form = *at >> 3 & 15;
        next_unit += (*at++ & 7u) + 1;
        if (form == long_form || form == no_columns) {
            line += take_signed(&at, end);
        } else if (form >= one_line && form < no_columns) {
            line += form - one_line;
        }
        if (unit < next_unit) {
            return form != no_location && line > 0 && line <= INT32_MAX ? (int)line : 0;
        }
        while (at < end && (*at & 0x80) == 0) {
            at++;
        }
    }
    return 0;
}

static int read_line(const bp_python_layout *layout, const raw_frame *frame,
                     const unsigned char *code) {
    unsigned char head[bytes_at];
    int32_t first_line;
    uint64_t start = frame->code + layout->at[BP_PYTHON_INSTRUCTIONS];
    uint64_t unit = (frame->instruction - start) / unit_bytes;
    uint64_t table_at = word_at(code, layout->at[BP_PYTHON_LINES]);
    memcpy(&first_line, code + layout->at[BP_PYTHON_FIRST_LINE], sizeof first_line);
    if (frame->instruction < start || unit >= word_at(code, size_at) ||
        !read_object(layout, table_at, layout->bytes_type, head, sizeof head)) {
        return 0;
    }
    uint64_t size = word_at(head, size_at);
    size_t bytes = size < lines_max ? (size_t)size : lines_max;
    unsigned char *table = malloc(bytes + 1);
    int line = 0;
    if (table != NULL && layout->read(layout->context, table_at + bytes_at, table, bytes)) {
        line = find_line(table, table + bytes, first_line, unit);
    }
    free(table);
    return line;
}

/* False where its code is not what it has to be. */
static bool describe(const bp_python_layout *layout, const raw_frame *frame,
                     bp_python_frame *ret_frame) {
    unsigned char code[object_max];
    size_t bytes = count_bytes(layout, BP_PYTHON_FILE, BP_PYTHON_FIRST_LINE);
    if (!read_object(layout, frame->code, layout->code_type, code, bytes)) {
        return false;
    }
    bp_python_frame out = {
        .function = read_text(layout, word_at(code, layout->at[BP_PYTHON_NAME]), name_max, false),
        .source = read_text(layout, word_at(code, layout->at[BP_PYTHON_FILE]), path_max, true),
        .line = read_line(layout, frame, code)};
    if (out.function == NULL) {
        free(out.source);
        return false;
    }
    *ret_frame = out;
    return true;
}

/* Releases and drops the innermost ones. */
static void drop(bp_python_stack *stack, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(stack->frames[i].function);
        free(stack->frames[i].source);
    }
    stack->count -= count;
    memmove(stack->frames, stack->frames + count, stack->count * sizeof stack->frames[0]);
}

/* Two readings, and the names between them. */
typedef struct stack_attempt {
    chain before, after;
    bp_python_stack stack;
} stack_attempt;

/* True when nothing is missing that another attempt could find. */
static bool try_stack(const bp_python_layout *layout, uint64_t state, stack_attempt *attempt) {
    bp_python_stack *out = &attempt->stack;
    const chain *before = &attempt->before;
    out->count = 0;
    out->reason = "its frames could not be read";
    if (!read_chain(layout, state, &attempt->before)) {
        return false;
    }
    while (out->count < before->count &&
           describe(layout, &before->frames[out->count], &out->frames[out->count])) {
        out->count++;
    }
    if (!read_chain(layout, state, &attempt->after)) {
        drop(out, out->count);
        return false;
    }
    size_t changed = count_changed(before, &attempt->after), described = out->count;
    drop(out, changed < described ? changed : described);
    if (changed > 0) {
        out->reason = "it ran meanwhile, and its innermost frames are not known";
    } else if (described < before->count) {
        out->reason = "its other frames could not be read";
    } else {
        out->reason = before->has_more ? "there are more frames than the limit" : "";
    }
    return changed == 0 && described == before->count;
}

bool bp_python_read_stack(const bp_python_layout *layout, uint64_t state,
                          bp_python_stack *ret_stack) {
    stack_attempt *attempt = malloc(sizeof *attempt);
    bool is_whole = false;
    if (attempt == NULL) {
        return false;
    }
    *ret_stack = (bp_python_stack){.reason = ""};
    for (unsigned i = 0; i < attempt_max && !is_whole; i++) {
        is_whole = try_stack(layout, state, attempt);
        if (i == 0 || is_whole || attempt->stack.count > ret_stack->count) {
            drop(ret_stack, ret_stack->count);
            *ret_stack = attempt->stack;
        } else {
            drop(&attempt->stack, attempt->stack.count);
        }
    }
    free(attempt);
    return true;
}

void bp_python_move_frames(bp_python_stack *stack, bp_stacks *out, size_t *capacity) {
    size_t moved = 0;
    while (moved < stack->count && out->python_frame_count < BP_PYTHON_FRAMES_MAX &&
           bp_array_reserve(&out->python_frames, out->python_frame_count, capacity)) {
        out->python_frames[out->python_frame_count++] = stack->frames[moved++];
    }
    if (moved < stack->count) {
        bool is_full = out->python_frame_count >= BP_PYTHON_FRAMES_MAX;
        stack->reason = is_full ? "there are more frames than the limit"
                                : "there was no memory for its other frames";
    }
    for (; moved < stack->count; moved++) {
        free(stack->frames[moved].function);
        free(stack->frames[moved].source);
    }
    stack->count = 0;
}
