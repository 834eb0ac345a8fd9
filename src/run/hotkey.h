/*
 * The key that asks for a report, found and taken out of what a terminal sends.
 *
 * A terminal tells of a function key with a sequence of bytes, and which one depends on the
 * terminal, so every sequence that is in use for the key is known at once. A sequence may arrive in
 * pieces: what may still become one is held back, for a short time that the caller keeps.
 */
#ifndef BP_RUN_HOTKEY_H
#define BP_RUN_HOTKEY_H

#include <stdbool.h>
#include <stddef.h>

enum { BP_HOTKEY_FORM_MAX = 6, BP_HOTKEY_FORM_BYTES = 16 };

/* How long half a sequence is held back. A person does not see it of a lone escape key, and no
 * terminal takes so long between two bytes of one key. */
enum { BP_HOTKEY_WAIT_MS = 25 };

/* A key and what was read of it so far. In the caller's storage, nothing to release. */
typedef struct bp_hotkey {
    char forms[BP_HOTKEY_FORM_MAX][BP_HOTKEY_FORM_BYTES]; /* NUL-terminated; none holds a NUL */
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
 * what is to go on is written there and counted in `ret_out_bytes`. Returns how often the key was
 * pressed. When `held_bytes` is not 0 afterwards, the end may be the beginning of the key.
 */
size_t bp_hotkey_filter(bp_hotkey *key, const char *bytes, size_t byte_count, char *out,
                        size_t *ret_out_bytes);

/* Gives up waiting: what was held back goes to `out`, at most BP_HOTKEY_FORM_BYTES. */
size_t bp_hotkey_give_up(bp_hotkey *key, char *out);

#endif
