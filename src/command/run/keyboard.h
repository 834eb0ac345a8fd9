/*
 * What is typed, on its way to the command's terminal, without the key that asks for a report.
 *
 * A function key arrives as a sequence of bytes that depends on the terminal, so all sequences in
 * use for the key are recognised. A sequence may arrive in pieces: bytes that may still become one
 * are held for a short time.
 */
#ifndef BP_RUN_KEYBOARD_H
#define BP_RUN_KEYBOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BP_HOTKEY_FORM_MAX = 6, BP_HOTKEY_FORM_BYTES = 16 };

/* A key and what was read of it so far. In the caller's storage, nothing to release. */
typedef struct bp_hotkey {
    char forms[BP_HOTKEY_FORM_MAX][BP_HOTKEY_FORM_BYTES]; /* NUL-terminated; none contains a NUL */
    size_t form_count;                                    /* 0: there is no key */
    char held[BP_HOTKEY_FORM_BYTES];
    size_t held_bytes;
} bp_hotkey;

/*
 * Reads "F1" to "F12", "Ctrl-A" to "Ctrl-Z" (with '-' or '+', any case) or "none". False, and the
 * key untouched, for anything else, and for Ctrl-I, Ctrl-J and Ctrl-M, which are Tab and Enter.
 */
bool bp_hotkey_parse(const char *name, bp_hotkey *ret_key);

/*
 * Takes the key out of `byte_count` bytes. `out` has room for BP_HOTKEY_FORM_BYTES more than that;
 * `ret_out_bytes` counts what was written there. Returns how often the key was pressed. If
 * `held_bytes` is not 0 afterwards, the end may be the beginning of the key.
 */
size_t bp_hotkey_filter(bp_hotkey *key, const char *bytes, size_t byte_count, char *out,
                        size_t *ret_out_bytes);

/* Stops waiting: writes the held bytes to `out`, at most BP_HOTKEY_FORM_BYTES. */
size_t bp_hotkey_give_up(bp_hotkey *key, char *out);

enum { BP_RUN_KEYBOARD_BYTES = 4096 };

/* In the caller's storage, nothing to release. */
typedef struct bp_run_keyboard {
    bp_hotkey *hotkey; /* borrowed */
    int from_fd;       /* -1: there is none, or it has ended */
    int to_fd;         /* does not block */
    bool is_ours;      /* our process group may read it now */
    int typed_signal;  /* what the command's terminal makes of a key: SIGINT, SIGQUIT; the caller
                          sets it back to 0 */
    uint64_t held_ns;  /* when the first part of a key was held */
    size_t begin, end;
    char buffer[BP_RUN_KEYBOARD_BYTES + BP_HOTKEY_FORM_BYTES];
} bp_run_keyboard;

void bp_run_keyboard_init(bp_run_keyboard *keyboard, bp_hotkey *hotkey, int from_fd, int to_fd);

bool bp_run_keyboard_wants_to_read(const bp_run_keyboard *keyboard);
bool bp_run_keyboard_wants_to_write(const bp_run_keyboard *keyboard);

/* The time that poll may wait before held bytes are released; -1: for ever. */
int bp_run_keyboard_wait_ms(const bp_run_keyboard *keyboard);

/* Reads if `can_read`, writes what can be written. Returns how often the key was pressed. */
size_t bp_run_keyboard_move(bp_run_keyboard *keyboard, bool can_read);

#endif
