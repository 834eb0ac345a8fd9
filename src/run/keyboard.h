/*
 * What is typed, on its way to the command's terminal, without the key that asks for a report.
 */
#ifndef BP_RUN_KEYBOARD_H
#define BP_RUN_KEYBOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/hotkey.h"

enum { BP_RUN_KEYBOARD_BYTES = 4096 };

/* In the caller's storage, nothing to release. */
typedef struct bp_run_keyboard {
    bp_hotkey *hotkey; /* borrowed */
    int from_fd;       /* -1: there is none, or it has ended */
    int to_fd;         /* does not block */
    bool is_ours;      /* our process group may read it now */
    uint64_t held_ns;  /* when half a key was held back */
    size_t begin, end;
    char buffer[BP_RUN_KEYBOARD_BYTES + BP_HOTKEY_FORM_BYTES];
} bp_run_keyboard;

void bp_run_keyboard_init(bp_run_keyboard *keyboard, bp_hotkey *hotkey, int from_fd, int to_fd);

bool bp_run_keyboard_wants_to_read(const bp_run_keyboard *keyboard);
bool bp_run_keyboard_wants_to_write(const bp_run_keyboard *keyboard);

/* How long poll may wait before half a key is given up; -1: for ever. */
int bp_run_keyboard_wait_ms(const bp_run_keyboard *keyboard);

/* Reads when there is something, writes what can be written. How often the key was pressed. */
size_t bp_run_keyboard_move(bp_run_keyboard *keyboard, bool can_read);

#endif
