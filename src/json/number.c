#include "json/number.h"

#include <stdio.h>
#include <string.h>

/* Moves `*at` behind the digits there; false when there are none. */
static bool skip_digits(const unsigned char *text, size_t byte_count, size_t *at) {
    size_t first = *at;
    while (*at < byte_count && text[*at] >= '0' && text[*at] <= '9') {
        (*at)++;
    }
    return *at > first;
}

static bool skip_one_of(const unsigned char *text, size_t byte_count, size_t *at, char one,
                        char other) {
    bool is_there =
        *at < byte_count && (text[*at] == (unsigned char)one || text[*at] == (unsigned char)other);
    *at += is_there;
    return is_there;
}

const char *bp_json_check_number(const unsigned char *text, size_t byte_count, size_t *ret_at) {
    size_t at = 0;
    (void)skip_one_of(text, byte_count, &at, '-', '-');
    size_t whole = at;
    bool complete = skip_digits(text, byte_count, &at);
    if (complete && text[whole] == '0' && at > whole + 1) {
        *ret_at = whole;
        return "a number must not begin with 0";
    }
    if (complete && skip_one_of(text, byte_count, &at, '.', '.')) {
        complete = skip_digits(text, byte_count, &at);
    }
    if (complete && skip_one_of(text, byte_count, &at, 'e', 'E')) {
        (void)skip_one_of(text, byte_count, &at, '+', '-');
        complete = skip_digits(text, byte_count, &at);
    }
    *ret_at = at;
    return complete ? NULL : "expected a digit of the number here";
}

bool bp_json_write_number(double value, unsigned decimals, char out[BP_JSON_NUMBER_BYTES]) {
    int printed = snprintf(out, BP_JSON_NUMBER_BYTES, "%.*f", (int)decimals, value);
    if (printed < 0 || printed >= BP_JSON_NUMBER_BYTES) {
        return false;
    }
    if (decimals > 0) {
        /* Between the whole digits and the last `decimals` stands the locale's point, which may be
         * several bytes long. */
        size_t whole = strspn(out, "-0123456789");
        out[whole] = '.';
        memmove(out + whole + 1, out + (size_t)printed - decimals, decimals + 1);
        size_t length = whole + 1 + decimals;
        while (out[length - 1] == '0') {
            length--;
        }
        length -= length == whole + 1; /* nothing is left behind the point */
        out[length] = '\0';
    }
    if (strcmp(out, "-0") == 0) {
        memmove(out, "0", 2);
    }
    return true;
}
