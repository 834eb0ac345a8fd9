#include "hosts/spice/keys.h"

#include <string.h>

enum { shift_code = 0x2a, release = 0x80 };

/* Rows of the keyboard: the scan code of the first key, and what the keys give. */
static const struct {
    uint32_t first;
    const char *plain, *shifted;
} rows[] = {
    {0x02, "1234567890-=\x7f\tqwertyuiop[]\n", "!@#$%^&*()_+\x01\x01QWERTYUIOP{}"},
    {0x1e, "asdfghjkl;'`", "ASDFGHJKL:\"~"},
    {0x2b, "\\zxcvbnm,./", "|ZXCVBNM<>?"},
    {0x39, " ", ""},
};

static size_t find_codes(char byte, uint32_t *codes) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *plain = strchr(rows[i].plain, byte);
        const char *shifted = plain ? NULL : strchr(rows[i].shifted, byte);
        if (plain != NULL) {
            codes[0] = rows[i].first + (uint32_t)(plain - rows[i].plain);
            codes[1] = codes[0] | release;
            return 2;
        }
        if (shifted != NULL) {
            codes[0] = shift_code;
            codes[1] = rows[i].first + (uint32_t)(shifted - rows[i].shifted);
            codes[2] = codes[1] | release;
            codes[3] = shift_code | release;
            return 4;
        }
    }
    return 0;
}

bool spice_keys_take(spice_keys *keys, char byte, uint32_t ret_codes[SPICE_KEY_CODES_MAX],
                     size_t *ret_count) {
    *ret_count = 0;
    if (byte == '\033') {
        keys->is_in_sequence = true;
        keys->length = 0;
        return false;
    }
    if (!keys->is_in_sequence) {
        *ret_count = byte == '\0' || byte == '\x01' ? 0 : find_codes(byte, ret_codes);
        return false;
    }
    if (keys->length < sizeof keys->sequence) {
        keys->sequence[keys->length++] = byte;
    }
    /* It ends with a byte from '@' on, but for the '[' or 'O' that it begins with (ECMA-48). */
    bool is_introducer = keys->length == 1 && (byte == '[' || byte == 'O');
    keys->is_in_sequence = is_introducer || byte < '@';
    return !keys->is_in_sequence && keys->length == 4 && memcmp(keys->sequence, "[24~", 4) == 0;
}
