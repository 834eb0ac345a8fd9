#include "run/keyboard.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

void bp_run_keyboard_init(bp_run_keyboard *keyboard, bp_hotkey *hotkey, int from_fd, int to_fd) {
    *keyboard =
        (bp_run_keyboard){.hotkey = hotkey, .from_fd = to_fd < 0 ? -1 : from_fd, .to_fd = to_fd};
}

bool bp_run_keyboard_wants_to_read(const bp_run_keyboard *keyboard) {
    return keyboard->from_fd >= 0 && keyboard->is_ours && keyboard->end == keyboard->begin;
}

bool bp_run_keyboard_wants_to_write(const bp_run_keyboard *keyboard) {
    return keyboard->end > keyboard->begin;
}

static uint64_t held_for_ms(const bp_run_keyboard *keyboard) {
    return (bp_clock_monotonic_ns() - keyboard->held_ns) / BP_NS_PER_MS;
}

int bp_run_keyboard_wait_ms(const bp_run_keyboard *keyboard) {
    if (keyboard->hotkey->held_bytes == 0) {
        return -1;
    }
    uint64_t passed_ms = held_for_ms(keyboard);
    return passed_ms < BP_HOTKEY_WAIT_MS ? BP_HOTKEY_WAIT_MS - (int)passed_ms : 0;
}

/* What is typed and how often the key is in it. The buffer is empty by now. */
static size_t read_keys(bp_run_keyboard *keyboard) {
    char typed[BP_RUN_KEYBOARD_BYTES];
    ssize_t count = read(keyboard->from_fd, typed, sizeof typed);
    if (count <= 0) {
        if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
            keyboard->from_fd = -1;
        }
        return 0;
    }
    size_t press_count =
        bp_hotkey_filter(keyboard->hotkey, typed, (size_t)count, keyboard->buffer, &keyboard->end);
    keyboard->begin = 0;
    keyboard->held_ns = bp_clock_monotonic_ns();
    return press_count;
}

static void write_keys(bp_run_keyboard *keyboard) {
    ssize_t count =
        write(keyboard->to_fd, keyboard->buffer + keyboard->begin, keyboard->end - keyboard->begin);
    if (count > 0) {
        keyboard->begin += (size_t)count;
    } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
        keyboard->from_fd = -1;
        keyboard->begin = keyboard->end;
    }
}

size_t bp_run_keyboard_move(bp_run_keyboard *keyboard, bool can_read) {
    size_t press_count = 0;
    if (can_read && bp_run_keyboard_wants_to_read(keyboard)) {
        press_count = read_keys(keyboard);
    } else if (keyboard->hotkey->held_bytes > 0 && !bp_run_keyboard_wants_to_write(keyboard) &&
               held_for_ms(keyboard) >= BP_HOTKEY_WAIT_MS) {
        keyboard->end = bp_hotkey_give_up(keyboard->hotkey, keyboard->buffer);
        keyboard->begin = 0;
    }
    if (bp_run_keyboard_wants_to_write(keyboard)) {
        write_keys(keyboard);
    }
    return press_count;
}
