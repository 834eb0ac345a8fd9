/*
 * Keys of the terminal: F12, and scan codes for the server.
 */
#ifndef HOSTS_SPICE_KEYS_H
#define HOSTS_SPICE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far an escape sequence has come, over several reads. Starts as zeros. */
typedef struct spice_keys {
    bool is_in_sequence;
    char sequence[8];
    size_t length;
} spice_keys;

enum { SPICE_KEY_CODES_MAX = 4 };

/*
 * Takes one byte. True: it ends F12. Otherwise `ret_codes` has `*ret_count` scan codes (set 1,
 * with 0x80 for a release) of a US keyboard. Other escape sequences are dropped, and so is the
 * Escape key, which begins them.
 */
bool spice_keys_take(spice_keys *keys, char byte, uint32_t ret_codes[SPICE_KEY_CODES_MAX],
                     size_t *ret_count);

#endif
