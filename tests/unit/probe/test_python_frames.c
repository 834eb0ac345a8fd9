/*
 * Frames of Python, in the memory of an interpreter with the offsets of 3.11.
 */
#include "process/python_frames.h"
#include "unit/unit.h"

#include <stdlib.h>

enum { AT = 0x10000, RUNTIME = 0, INTERPRETER = 0x100, STATE = 0x200, C_FRAME = 0x400 };
enum { FRAMES = 0x800, FRAME_BYTES = 0x80, CODE = 0x2000, NAME = 0x2200, PATH = 0x2300 };
enum { TABLE = 0x2500, CODE_TYPE = 0x2600, TEXT_TYPE = 0x2700, BYTES_TYPE = 0x2800, END = 0x3000 };
enum { code_start = 184 };

static unsigned char memory[END]; /* from AT on */

/* Reads after which the thread runs on: its innermost frame becomes another; 0: it never does. */
static unsigned reads_left;

static void put(size_t place, uint64_t value) {
    memcpy(memory + place, &value, sizeof value);
}

static bool read_memory(void *context, uint64_t address, void *out, size_t bytes) {
    (void)context;
    if (address < AT || address - AT > END || bytes > END - (address - AT)) {
        return false;
    }
    memcpy(out, memory + (address - AT), bytes);
    if (reads_left > 0 && --reads_left == 0) {
        put(FRAMES + 56, AT + CODE + code_start + 2);
        put(C_FRAME + 8, AT + FRAMES + FRAME_BYTES);
    }
    return true;
}

static const bp_python_layout layout = {
    .read = read_memory,
    .version = 0x030b07f0,
    .runtime = AT + RUNTIME,
    .code_type = AT + CODE_TYPE,
    .text_type = AT + TEXT_TYPE,
    .bytes_type = AT + BYTES_TYPE,
    .at = {40, 0, 16, 8, 160, 56, 32, 48, 56, 69, 112, 128, 136, 72, 184, 48},
    .has_c_frame = true,
    .c_frame = 8,
    .wide = 24};

/* `state`: kind, and whether it is ASCII. */
static void put_text(size_t place, const void *characters, size_t count, size_t width, bool ascii) {
    put(place + 8, AT + TEXT_TYPE);
    put(place + 16, count);
    memory[place + 32] = (unsigned char)(width << 2 | 1u << 5 | (ascii ? 1u << 6 : 0));
    memcpy(memory + place + (ascii ? 48 : 72), characters, count * width);
}

/* A thread in `count` frames of one function, which is at its second instruction. */
static void build(size_t count) {
    /* Two instructions at line 10; one at 12; one at no line. */
    static const unsigned char table[] = {0x80 | 13 << 3 | 1, 0, 0x80 | 12 << 3, 0, 0,
                                          0x80 | 15 << 3};
    memset(memory, 0, sizeof memory);
    reads_left = 0;
    put(RUNTIME + 40, AT + INTERPRETER);
    put(INTERPRETER + 16, AT + STATE);
    put(STATE + 160, 4711);
    put(STATE + 56, AT + C_FRAME);
    put(C_FRAME + 8, AT + FRAMES);
    for (size_t i = 0; i < count; i++) {
        size_t frame = FRAMES + i * FRAME_BYTES;
        put(frame + 32, AT + CODE);
        put(frame + 48, i + 1 < count ? AT + frame + FRAME_BYTES : 0);
        put(frame + 56, AT + CODE + code_start + 2 * 2);
    }
    put(CODE + 8, AT + CODE_TYPE);
    put(CODE + 16, 4);
    put(CODE + 72, 10);
    put(CODE + 112, AT + PATH);
    put(CODE + 128, AT + NAME);
    put(CODE + 136, AT + TABLE);
    put_text(NAME, "Worker.take", 11, 1, true);
    put_text(PATH, "/srv/app.py", 11, 1, true);
    put(TABLE + 8, AT + BYTES_TYPE);
    put(TABLE + 16, sizeof table);
    memcpy(memory + TABLE + 32, table, sizeof table);
}

static bp_python_stack stack;

static void read_stack(void) {
    cr_assert(bp_python_read_stack(&layout, AT + STATE, &stack));
}

static void release(void) {
    for (size_t i = 0; i < stack.count; i++) {
        free(stack.frames[i].function);
        free(stack.frames[i].source);
    }
}

Test(python, names_functions_files_and_lines) {
    bp_python_thread threads[2];
    build(2);
    cr_assert(eq(sz, bp_python_list_threads(&layout, threads, 2), 1));
    cr_expect(threads[0].tid == 4711 && threads[0].state == AT + STATE);
    read_stack();
    cr_assert(eq(sz, stack.count, 2));
    cr_expect(eq(str, stack.frames[0].function, "Worker.take"));
    cr_expect(eq(str, stack.frames[0].source, "/srv/app.py"));
    cr_expect(eq(int, stack.frames[0].line, 12));
    cr_expect(eq(str, (char *)stack.reason, ""));
    release();
}

Test(python, has_no_line_where_the_table_has_none) {
    build(1);
    put(FRAMES + 56, AT + CODE + code_start + 2 * 3); /* without a location */
    read_stack();
    cr_expect(stack.count == 1 && stack.frames[0].line == 0);
    release();
    put(FRAMES + 56, AT + CODE + code_start + 2 * 4); /* behind the end */
    read_stack();
    cr_expect(stack.count == 1 && stack.frames[0].line == 0);
    release();
    put(FRAMES + 56, AT + CODE + code_start);
    put(TABLE + 16, UINT64_MAX); /* longer than memory */
    read_stack();
    cr_expect(stack.count == 1 && stack.frames[0].line == 0);
    release();
}

Test(python, writes_other_characters_as_utf8) {
    static const uint16_t wide[] = {0x20ac, 0xd800, 'x'};
    build(1);
    put_text(NAME,
             "\xfc"
             "ber",
             4, 1, false);
    put_text(PATH, wide, 3, 2, false);
    read_stack();
    cr_assert(eq(sz, stack.count, 1));
    cr_expect(eq(str, stack.frames[0].function, "\u00fcber"));
    cr_expect(eq(str, stack.frames[0].source, "\u20ac\ufffdx"));
    release();
}

Test(python, cuts_long_texts_with_a_mark) {
    char name[201];
    memset(name, 'n', sizeof name);
    build(1);
    memset(memory + NAME, 0, 0x100);
    put(CODE + 128, AT + 0x2900);
    put_text(0x2900, name, sizeof name, 1, true);
    read_stack();
    cr_assert(eq(sz, stack.count, 1));
    cr_expect(eq(sz, strlen(stack.frames[0].function), 200 + strlen("\u2026")));
    release();
}

Test(python, ends_a_circle_of_frames) {
    build(1);
    put(FRAMES + 48, AT + FRAMES);
    read_stack();
    cr_expect(eq(sz, stack.count, BP_PYTHON_FRAME_MAX));
    cr_expect(eq(str, (char *)stack.reason, "there are more frames than the limit"));
    release();
}

Test(python, leaves_out_what_is_no_code) {
    build(2);
    put(FRAMES + FRAME_BYTES + 32, AT + NAME);
    read_stack();
    cr_expect(eq(sz, stack.count, 1));
    cr_expect(eq(str, (char *)stack.reason, "its other frames could not be read"));
    release();
    put(FRAMES + 48, 1); /* no memory */
    read_stack();
    cr_expect(eq(sz, stack.count, 0));
    cr_expect(eq(str, (char *)stack.reason, "its frames could not be read"));
}

Test(python, leaves_out_frames_of_the_c_stack) {
    build(3);
    memory[FRAMES + FRAME_BYTES + 69] = 3;
    put(FRAMES + FRAME_BYTES + 32, 0);
    read_stack();
    cr_expect(eq(sz, stack.count, 2));
    cr_expect(eq(str, (char *)stack.reason, ""));
    release();
}

/* The innermost function returns while its thread is read, which takes 31 reads; the last three are
 * about frames that both readings began with. */
Test(python, never_joins_frames_of_two_instants) {
    enum { last_read = 27 };
    for (unsigned reads = 1; reads <= last_read; reads++) {
        build(3);
        reads_left = reads;
        read_stack();
        cr_assert(eq(sz, stack.count, 2), "after %u reads", reads);
        cr_expect(eq(str, (char *)stack.reason, ""));
        release();
    }
}
