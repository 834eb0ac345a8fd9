#include "run/hotkey.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The numbers of "ESC [ number ~", in which xterm, screen, tmux, VTE, PuTTY, rxvt and, from F6 on,
 * the Linux console agree (terminfo(5), kf1 to kf12). */
static const int tilde_numbers[12] = {11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24};

static char *new_form(bp_hotkey *key) {
    return key->forms[key->form_count++];
}

static void add_function_key(bp_hotkey *key, int number) {
    int tilde = tilde_numbers[number - 1];
    (void)snprintf(new_form(key), BP_HOTKEY_FORM_BYTES, "\033[%d~", tilde);
    /* The same with "no modifier" spelt out, as terminals in the kitty protocol may do. */
    (void)snprintf(new_form(key), BP_HOTKEY_FORM_BYTES, "\033[%d;1~", tilde);
    (void)snprintf(new_form(key), BP_HOTKEY_FORM_BYTES, "\033[%dz", 223 + number); /* Sun's */
    if (number <= 4) {
        (void)snprintf(new_form(key), BP_HOTKEY_FORM_BYTES, "\033O%c", 'P' + number - 1);
    }
    if (number <= 5) {
        /* The Linux console. */
        (void)snprintf(new_form(key), BP_HOTKEY_FORM_BYTES, "\033[[%c", 'A' + number - 1);
    }
}

static void add_control_key(bp_hotkey *key, char letter) {
    (void)snprintf(new_form(key), BP_HOTKEY_FORM_BYTES, "%c", letter - 'a' + 1);
    /* xterm's modifyOtherKeys in both of its formats, the second also that of kitty. */
    (void)snprintf(new_form(key), BP_HOTKEY_FORM_BYTES, "\033[27;5;%d~", letter);
    (void)snprintf(new_form(key), BP_HOTKEY_FORM_BYTES, "\033[%d;5u", letter);
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
            add_control_key(&key, letter);
        }
    }
    if (is_known) {
        *ret_key = key;
    }
    return is_known;
}

/* What the bytes held back are: the whole key, a beginning of it, or neither. */
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

/* Lets go of the first byte held back. */
static void let_one_go(bp_hotkey *key, char *out, size_t *out_bytes) {
    out[(*out_bytes)++] = key->held[0];
    key->held_bytes--;
    memmove(key->held, key->held + 1, key->held_bytes);
}

size_t bp_hotkey_filter(bp_hotkey *key, const char *bytes, size_t byte_count, char *out,
                        size_t *ret_out_bytes) {
    size_t out_bytes = 0;
    size_t press_count = 0;
    for (size_t i = 0; i < byte_count; i++) {
        key->held[key->held_bytes++] = bytes[i];
        held_state state = look_at_held(key);
        while (state == IS_NEITHER && key->held_bytes > 0) {
            let_one_go(key, out, &out_bytes);
            state = key->held_bytes > 0 ? look_at_held(key) : IS_BEGINNING;
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
