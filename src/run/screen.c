#include "run/screen.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <vterm.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "run/flow.h"

/* What may wait; and how much of it may stay when there is no room. */
enum { waiting_max_bytes = 256 * 1024, stay_max_bytes = waiting_max_bytes / 4 };

/* Drawing may use an eighth of one CPU, and so much at once. */
enum { time_share = 8 };
/* More than the largest screen has. */
static const size_t print_max_bytes = (size_t)16 << 20;

static const uint64_t credit_max_ns = 250 * BP_NS_PER_MS;

/* So many cells are touched between two looks at the clock, if each byte touches all of them: an
 * escape sequence of three bytes can clear or scroll the screen. */
enum { touched_max_cells = 1 << 20, piece_min_bytes = 16, piece_max_bytes = 4096 };

struct bp_run_screen {
    bp_lock lock;
    VTerm *terminal;
    VTermScreen *cells;
    int rows, columns;
    bool is_bare;
    bool is_scrolling_a_part; /* as of the end of what waits */
    bool is_partial;          /* something is missing that was not yet cleared or scrolled away */
    uint64_t credit_ns, credited_ns;
    size_t waiting_bytes; /* begins outside an escape sequence */
    char waiting[waiting_max_bytes];
};

/* In a single column libvterm 0.1 writes a wide character beyond its row. */
static int bounded(int value, int if_none, int most) {
    if (value <= 0) {
        return if_none;
    }
    int least = value < 2 ? 2 : value;
    return least < most ? least : most;
}

/* Answers to queries are the real terminal's to give. */
static void ignore_answer(const char *bytes, size_t byte_count, void *context) {
    (void)bytes;
    (void)byte_count;
    (void)context;
}

/* In front of what libvterm gets. */
typedef union allocation {
    size_t mapped_bytes; /* 0: it is malloc's */
    max_align_t aligned;
} allocation;

/*
 * libvterm 0.1 uses its memory without asking whether it got any. So where malloc has none, the
 * system maps some.
 */
static void *allocate(size_t byte_count, void *context) {
    size_t whole = byte_count + sizeof(allocation);
    allocation *made = calloc(1, whole);
    (void)context;
    if (made == NULL) {
        void *pages = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        made = pages != MAP_FAILED ? pages : NULL;
        if (made != NULL) {
            made->mapped_bytes = whole;
        }
    }
    return made != NULL ? made + 1 : NULL;
}

static void release(void *bytes, void *context) {
    allocation *made = bytes != NULL ? (allocation *)bytes - 1 : NULL;
    (void)context;
    if (made != NULL && made->mapped_bytes > 0) {
        (void)munmap(made, made->mapped_bytes);
    } else {
        free(made);
    }
}

/* An empty one of the screen's size. */
static bool open_terminal(bp_run_screen *screen) {
    static VTermAllocatorFunctions functions = {allocate, release};
    screen->cells = NULL;
    screen->terminal = vterm_new_with_allocator(screen->rows, screen->columns, &functions, NULL);
    if (screen->terminal != NULL) {
        vterm_set_utf8(screen->terminal, 1);
        vterm_output_set_callback(screen->terminal, ignore_answer, NULL);
        screen->cells = vterm_obtain_screen(screen->terminal);
    }
    if (screen->cells != NULL) {
        vterm_screen_enable_altscreen(screen->cells, 1);
        vterm_screen_reset(screen->cells, 1);
    }
    return screen->cells != NULL;
}

bugpack_status bp_run_screen_new(int rows, int columns, bool is_bare, bp_run_screen **ret_screen,
                                 bugpack_error *error) {
    bp_run_screen *screen = calloc(1, sizeof *screen);
    if (screen == NULL || !bp_lock_init(&screen->lock, BP_LOCK_COMMAND_OUTPUT)) {
        free(screen);
        return bp_fail_memory(error, "keep the screen");
    }
    screen->rows = bounded(rows, 24, BP_RUN_SCREEN_ROWS_MAX);
    screen->columns = bounded(columns, 80, BP_RUN_SCREEN_COLUMNS_MAX);
    screen->is_bare = is_bare;
    screen->credit_ns = credit_max_ns;
    screen->credited_ns = bp_clock_monotonic_ns();
    if (!open_terminal(screen)) {
        bp_run_screen_free(screen);
        return bp_fail_memory(error, "keep the screen");
    }
    *ret_screen = screen;
    return BUGPACK_OK;
}

void bp_run_screen_free(bp_run_screen *screen) {
    if (screen != NULL) {
        if (screen->terminal != NULL) {
            vterm_free(screen->terminal);
        }
        bp_lock_destroy(&screen->lock);
        free(screen);
    }
}

static void give_credit(bp_run_screen *screen) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    screen->credit_ns += (now_ns - screen->credited_ns) / time_share;
    screen->credited_ns = now_ns;
    if (screen->credit_ns > credit_max_ns) {
        screen->credit_ns = credit_max_ns;
    }
}

/* libvterm 0.1 writes beyond its buffers when UTF-8 is malformed, or split between two writes. */
static void write_valid(bp_run_screen *screen, const char *bytes, size_t byte_count) {
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    char valid[piece_max_bytes];
    size_t used = 0;
    for (size_t at = 0, length; at<byte_count; at += length> 0 ? length : 1) {
        length = bp_utf8_sequence_length((const unsigned char *)bytes + at, byte_count - at);
        if (used + 4 > sizeof valid) {
            vterm_input_write(screen->terminal, valid, used);
            used = 0;
        }
        memcpy(valid + used, length > 0 ? bytes + at : replacement, length > 0 ? length : 3);
        used += length > 0 ? length : 3;
    }
    vterm_input_write(screen->terminal, valid, used);
}

/* Draws the first bytes that wait, and takes them away. False when the time is used up before. */
static bool draw(bp_run_screen *screen, size_t byte_count) {
    size_t piece = touched_max_cells / ((size_t)screen->rows * (size_t)screen->columns);
    piece = piece < piece_min_bytes ? piece_min_bytes : piece;
    piece = piece > piece_max_bytes ? piece_max_bytes : piece;
    size_t at = 0;
    give_credit(screen);
    if (screen->is_bare) {
        vterm_input_write(screen->terminal, "\033[20h", 5); /* a line feed returns, too */
    }
    uint64_t cpu_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    while (at < byte_count && screen->credit_ns > 0) {
        size_t count = bp_utf8_cut(screen->waiting + at, byte_count - at, piece);
        write_valid(screen, screen->waiting + at, count);
        at += count;
        uint64_t now_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        uint64_t used_ns = now_ns - cpu_ns;
        screen->credit_ns -= used_ns < screen->credit_ns ? used_ns : screen->credit_ns;
        cpu_ns = now_ns;
    }
    if (at < byte_count) {
        return false;
    }
    memmove(screen->waiting, screen->waiting + at, screen->waiting_bytes - at);
    screen->waiting_bytes -= at;
    return true;
}

/* Forgets the screen, and all that waits but its newest part: from where the screen was cleared, or
 * the newest quarter, or what flows alone. */
static void lose(bp_run_screen *screen, bool keeps_only_flowing) {
    bp_run_flow flow = bp_run_flow_scan(screen->waiting, screen->waiting_bytes, screen->rows,
                                        &screen->is_scrolling_a_part);
    size_t at = screen->waiting_bytes > stay_max_bytes ? screen->waiting_bytes - stay_max_bytes : 0;
    const char *escape = memchr(screen->waiting + at, '\033', screen->waiting_bytes - at);
    at = escape != NULL ? (size_t)(escape - screen->waiting) : at;
    at = flow.cleared_at != SIZE_MAX && flow.cleared_at > at ? flow.cleared_at : at;
    at = keeps_only_flowing && flow.moving_bytes > at ? flow.moving_bytes : at;
    memmove(screen->waiting, screen->waiting + at, screen->waiting_bytes - at);
    screen->waiting_bytes -= at;
    vterm_input_write(screen->terminal, "\030", 1); /* CAN ends an escape sequence */
    vterm_screen_reset(screen->cells, 1);
    screen->is_partial = true; /* and if only a part scrolled, nobody knows which */
}

/* Leaves out what scrolls away, if all of it is text that flows. */
static void leave_out(bp_run_screen *screen, size_t byte_count) {
    size_t tail = screen->is_scrolling_a_part
                      ? 0
                      : bp_run_flow_tail(screen->waiting, byte_count, screen->rows);
    if (tail == 0 || byte_count - tail > stay_max_bytes) {
        return;
    }
    tail--; /* its line feed becomes a return, which begins the line in any case */
    screen->waiting[tail] = '\r';
    memmove(screen->waiting, screen->waiting + tail, screen->waiting_bytes - tail);
    screen->waiting_bytes -= tail;
    screen->is_partial = false;
}

/* Draws what does more than flow, and leaves out what scrolls away. Returns how much of what is
 * left flows; an incomplete escape sequence is behind it. False when the time is used up. */
static bool settle(bp_run_screen *screen, size_t *ret_flowing_bytes) {
    bp_run_flow flow = bp_run_flow_scan(screen->waiting, screen->waiting_bytes, screen->rows,
                                        &screen->is_scrolling_a_part);
    if (flow.moving_bytes > 0) {
        if (!draw(screen, flow.moving_bytes)) {
            return false;
        }
        screen->is_partial =
            screen->is_partial && (flow.cleared_at == SIZE_MAX || screen->is_scrolling_a_part);
    }
    size_t incomplete_bytes = screen->waiting_bytes - (flow.whole_bytes - flow.moving_bytes);
    leave_out(screen, screen->waiting_bytes - incomplete_bytes);
    *ret_flowing_bytes = screen->waiting_bytes - incomplete_bytes;
    return true;
}

/* Makes room for as much as may stay, at least. */
static void make_room(bp_run_screen *screen) {
    size_t flowing_bytes;
    if (!settle(screen, &flowing_bytes)) {
        lose(screen, false);
        return;
    }
    size_t incomplete_bytes = screen->waiting_bytes - flowing_bytes;
    if (flowing_bytes > stay_max_bytes && !draw(screen, flowing_bytes)) {
        lose(screen, false);
    } else if (incomplete_bytes > stay_max_bytes) {
        /* A string without an end, such as a picture: how it begins is enough. */
        bool may_end = screen->waiting[screen->waiting_bytes - 1] == '\033';
        screen->waiting_bytes -= incomplete_bytes - 2;
        if (may_end) {
            screen->waiting[screen->waiting_bytes++] = '\033';
        }
    }
}

void bp_run_screen_feed(bp_run_screen *screen, const char *bytes, size_t byte_count) {
    bp_lock_acquire(&screen->lock);
    while (byte_count > 0 && screen->cells != NULL) {
        size_t room_bytes = waiting_max_bytes - screen->waiting_bytes;
        size_t count = byte_count < room_bytes ? byte_count : room_bytes;
        memcpy(screen->waiting + screen->waiting_bytes, bytes, count);
        screen->waiting_bytes += count;
        bytes += count;
        byte_count -= count;
        if (screen->waiting_bytes == waiting_max_bytes) {
            make_room(screen);
        }
    }
    bp_lock_release(&screen->lock);
}

/* Draws all that waits, but for an incomplete escape sequence at its end. */
static void draw_all(bp_run_screen *screen) {
    size_t flowing_bytes;
    for (int tries = 0; tries < 3; tries++) {
        screen->credit_ns = credit_max_ns;
        if (settle(screen, &flowing_bytes) && draw(screen, flowing_bytes)) {
            return;
        }
        lose(screen, tries > 0);
    }
}

/* A program can put control characters into cells. Returns what is left of the text. */
static size_t blot_controls(char *text, size_t byte_count) {
    size_t used = 0;
    for (size_t i = 0; i < byte_count; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool is_high = byte == 0xc2 && i + 1 < byte_count && (unsigned char)text[i + 1] < 0xa0;
        text[used++] = is_high || byte < 0x20 || byte == 0x7f ? '?' : text[i];
        i += is_high;
    }
    return used;
}

/* Whether ASCII was written to a cell. `ret_is_text`: and more than a blank. */
static bool is_written(const bp_run_screen *screen, int row, int column, bool *ret_is_text) {
    VTermScreenCell cell = {.chars = {0}};
    const VTermPos place = {row, column};
    (void)vterm_screen_get_cell(screen->cells, place, &cell);
    *ret_is_text = cell.chars[0] > ' ' && cell.chars[0] <= '~';
    return *ret_is_text || cell.chars[0] == ' ';
}

/* Whether the next row goes on with the line of this one, so that no secret is divided. libvterm
 * 0.1 does not say so. A frame around text is not ASCII, and divides lines. */
static bool is_wrapped(const bp_run_screen *screen, int row) {
    const int last = screen->columns - 1;
    bool ends, ended_before, begins, begins_next;
    if (last < 1 || row + 1 == screen->rows || !is_written(screen, row, last, &ends) ||
        !is_written(screen, row + 1, 0, &begins)) {
        return false;
    }
    bool is_whole = is_written(screen, row, last - 1, &ended_before);
    (void)is_written(screen, row + 1, 1, &begins_next);
    return is_whole && (ends || ended_before) && (begins || begins_next);
}

static bugpack_status print_row(const bp_run_screen *screen, int row, bool goes_on,
                                bp_buffer *out) {
    const VTermRect rect = {row, row + 1, 0, screen->columns};
    size_t most_bytes = vterm_screen_get_text(screen->cells, NULL, 0, rect);
    char *text = bp_buffer_reserve(out, most_bytes + 1);
    if (text == NULL) {
        return out->status;
    }
    size_t count = vterm_screen_get_text(screen->cells, text, most_bytes, rect);
    while (count > 0 && !goes_on && (text[count - 1] == ' ' || text[count - 1] == '\n')) {
        count--;
    }
    count = blot_controls(text, count);
    text[count] = '\n';
    bp_buffer_commit(out, count + !goes_on);
    return out->status;
}

/* Appends all rows but empty ones at the end, each as a line or, with `are_joined`, as far as it is
 * one. */
static bugpack_status print_rows(const bp_run_screen *screen, bool are_joined, bp_buffer *out) {
    size_t used = out->size;
    bugpack_status status = out->status;
    for (int row = 0; row < screen->rows && status == BUGPACK_OK; row++) {
        size_t begin = out->size;
        status = print_row(screen, row, are_joined && is_wrapped(screen, row), out);
        used = out->size > begin + 1 ? out->size : used;
    }
    if (status == BUGPACK_OK && used < out->size) {
        out->size = used;
        out->data[used] = '\0';
    }
    return status;
}

/*
 * Not vterm_set_size: libvterm 0.1 then may put the cursor outside of its rows. The text of the
 * screen goes to a new terminal, and its modes do not: a program that has set any draws itself anew
 * when its window changes.
 */
static void replace_terminal(bp_run_screen *screen, int rows, int columns) {
    bp_buffer text;
    VTermPos cursor;
    bp_buffer_init(&text, print_max_bytes);
    (void)print_rows(screen, false, &text); /* as much as there is memory for */
    vterm_state_get_cursorpos(vterm_obtain_state(screen->terminal), &cursor);
    vterm_free(screen->terminal);
    screen->rows = rows;
    screen->columns = columns;
    screen->is_scrolling_a_part = false;
    if (open_terminal(screen)) {
        char place[32];
        int place_bytes =
            snprintf(place, sizeof place, "\033[20l\033[%d;%dH", cursor.row + 1, cursor.col + 1);
        vterm_input_write(screen->terminal, "\033[20h", 5);
        write_valid(screen, text.data, text.size > 0 ? text.size - 1 : 0);
        vterm_input_write(screen->terminal, place, (size_t)place_bytes);
    }
    bp_buffer_release(&text);
}

void bp_run_screen_resize(bp_run_screen *screen, int rows, int columns) {
    bp_lock_acquire(&screen->lock);
    int new_rows = bounded(rows, 24, BP_RUN_SCREEN_ROWS_MAX);
    int new_columns = bounded(columns, 80, BP_RUN_SCREEN_COLUMNS_MAX);
    if (screen->cells != NULL && (new_rows != screen->rows || new_columns != screen->columns)) {
        draw_all(screen);
        replace_terminal(screen, new_rows, new_columns);
    }
    bp_lock_release(&screen->lock);
}

bugpack_status bp_run_screen_print(bp_run_screen *screen, bp_buffer *out, bool *ret_is_partial,
                                   bugpack_error *error) {
    bugpack_status status = BUGPACK_ERR_NO_MEMORY;
    bp_lock_acquire(&screen->lock);
    if (screen->cells != NULL) {
        draw_all(screen);
        status = print_rows(screen, true, out);
    }
    bool is_partial = screen->is_partial;
    bp_lock_release(&screen->lock);
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "cannot print the screen: %s", bugpack_status_name(status));
    }
    *ret_is_partial = is_partial;
    return BUGPACK_OK;
}
