#include "run/keyboard.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#include <bugpack/export.h>

#include "base/clock.h"

/* How long the beginning of a sequence is held. A person does not notice the delay of a lone escape
 * key, and no terminal takes so long between two bytes of one key. */
enum { hold_max_ms = 25 };

/* The numbers of "ESC [ number ~", in which xterm, screen, tmux, VTE, PuTTY, rxvt and, from F6 on,
 * the Linux console agree (terminfo(5), kf1 to kf12). */
static const int tilde_numbers[12] = {11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24};

BUGPACK_PRINTF(2, 3)
static void add_form(bp_hotkey *key, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(key->forms[key->form_count++], BP_HOTKEY_FORM_BYTES, format, arguments);
    va_end(arguments);
}

static void add_function_key(bp_hotkey *key, int number) {
    int tilde = tilde_numbers[number - 1];
    add_form(key, "\033[%d~", tilde);
    add_form(key, "\033[%d;1~", tilde);      /* "no modifier" spelt out, as in the kitty protocol */
    add_form(key, "\033[%dz", 223 + number); /* Sun */
    if (number <= 4) {
        add_form(key, "\033O%c", 'P' + number - 1);
    }
    if (number <= 5) {
        add_form(key, "\033[[%c", 'A' + number - 1); /* the Linux console */
    }
}

bool bp_hotkey_parse(const char *name, bp_hotkey *ret_key) {
    bp_hotkey key = {.form_count = 0};
    bool is_known = strcasecmp(name, "none") == 0;
    for (int number = 1; number <= 12 && !is_known; number++) {
        char spelling[8];
        (void)snprintf(spelling, sizeof spelling, "f%d", number);
        is_known = strcasecmp(name, spelling) == 0;
        if (is_known) {
            add_function_key(&key, number);
        }
    }
    bool is_control = strncasecmp(name, "ctrl", 4) == 0 && (name[4] == '-' || name[4] == '+') &&
                      name[5] != '\0' && name[6] == '\0';
    if (is_control) {
        char letter = name[5] >= 'A' && name[5] <= 'Z' ? (char)(name[5] - 'A' + 'a') : name[5];
        is_known = letter >= 'a' && letter <= 'z' && strchr("ijm", letter) == NULL;
        if (is_known) {
            add_form(&key, "%c", letter - 'a' + 1);
            add_form(&key, "\033[27;5;%d~", letter); /* xterm's modifyOtherKeys */
            add_form(&key, "\033[%d;5u", letter);    /* its other format, and kitty's */
        }
    }
    if (is_known) {
        *ret_key = key;
    }
    return is_known;
}

/* The held bytes are the whole key, its beginning, or neither. */
typedef enum held_state { IS_NEITHER, IS_BEGINNING, IS_KEY } held_state;

static held_state look_at_held(const bp_hotkey *key) {
    held_state state = IS_NEITHER;
    for (size_t i = 0; i < key->form_count; i++) {
        if (strncmp(key->forms[i], key->held, key->held_bytes) == 0 &&
            memchr(key->held, '\0', key->held_bytes) == NULL) {
            if (key->forms[i][key->held_bytes] == '\0') {
                return IS_KEY;
            }
            state = IS_BEGINNING;
        }
    }
    return state;
}

size_t bp_hotkey_filter(bp_hotkey *key, const char *bytes, size_t byte_count, char *out,
                        size_t *ret_out_bytes) {
    size_t out_bytes = 0;
    size_t press_count = 0;
    for (size_t i = 0; i < byte_count; i++) {
        key->held[key->held_bytes++] = bytes[i];
        held_state state = look_at_held(key);
        while (state == IS_NEITHER && key->held_bytes > 0) {
            out[out_bytes++] = key->held[0];
            memmove(key->held, key->held + 1, --key->held_bytes);
            state = look_at_held(key);
        }
        if (state == IS_KEY) {
            press_count++;
            key->held_bytes = 0;
        }
    }
    *ret_out_bytes = out_bytes;
    return press_count;
}

size_t bp_hotkey_give_up(bp_hotkey *key, char *out) {
    size_t byte_count = key->held_bytes;
    memcpy(out, key->held, byte_count);
    key->held_bytes = 0;
    return byte_count;
}

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
    return passed_ms < hold_max_ms ? hold_max_ms - (int)passed_ms : 0;
}

/* Fills the empty buffer. Returns how often the key was pressed. */
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

/* Looks for keys that are signals, before the terminal gets them: a program that is ended by one
 * changes the settings. A master's settings are those of its slave (pty(7)). */
static void note_signals(bp_run_keyboard *keyboard) {
    static const struct { int key, number; } kinds[] = {{VINTR, SIGINT}, {VQUIT, SIGQUIT}};
    struct termios now;
    if (tcgetattr(keyboard->to_fd, &now) != 0 || (now.c_lflag & (tcflag_t)ISIG) == 0) {
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        cc_t key = now.c_cc[kinds[i].key];
        if (key != _POSIX_VDISABLE && memchr(keyboard->buffer + keyboard->begin, key,
                                             keyboard->end - keyboard->begin) != NULL) {
            keyboard->typed_signal = kinds[i].number;
        }
    }
}

static void write_keys(bp_run_keyboard *keyboard) {
    note_signals(keyboard);
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
               held_for_ms(keyboard) >= hold_max_ms) {
        keyboard->end = bp_hotkey_give_up(keyboard->hotkey, keyboard->buffer);
        keyboard->begin = 0;
    }
    if (bp_run_keyboard_wants_to_write(keyboard)) {
        write_keys(keyboard);
    }
    return press_count;
}
