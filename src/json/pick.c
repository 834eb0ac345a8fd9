#include "json/pick.h"

#include <string.h>

#include "base/utf8.h"

enum { path_max_bytes = 256 };

/* The length of a path that no pick can have. */
static const size_t outside = SIZE_MAX;

/* The position of the scanner. */
typedef struct walk {
    char path[path_max_bytes];
    size_t length;                      /* of the path of the value that comes next, or `outside` */
    size_t base[BP_JSON_DEPTH_MAX + 1]; /* the same of the objects that are open, by depth */
} walk;

static void enter_key(walk *state, size_t depth, const bp_json_token *token) {
    const char *key = token->text + 1;
    size_t key_bytes = token->byte_count - 2;
    size_t length = state->base[depth];
    state->length = outside;
    if (length == outside || key_bytes == 0 || length + key_bytes + 2 > path_max_bytes ||
        memchr(key, '.', key_bytes) != NULL || memchr(key, '\\', key_bytes) != NULL) {
        return;
    }
    if (length > 0) {
        state->path[length++] = '.';
    }
    memcpy(state->path + length, key, key_bytes);
    state->length = length + key_bytes;
    state->path[state->length] = '\0';
}

static void enter_value(walk *state, const bp_json_scanner *scanner, const bp_json_token *token,
                        bp_json_pick *picks, size_t pick_count) {
    size_t container = scanner->depth - (token->kind == BP_JSON_BEGIN);
    if (container > 0 && !scanner->open[container - 1].is_object) {
        state->length = outside;
    }
    if (token->kind == BP_JSON_BEGIN) {
        state->base[scanner->depth] = token->text[0] == '{' ? state->length : outside;
    }
    for (size_t i = 0; state->length != outside && i < pick_count; i++) {
        if (strcmp(picks[i].path, state->path) == 0) {
            picks[i].token = *token;
        }
    }
}

bugpack_status bp_json_pick_all(const void *text, size_t byte_count, bp_json_pick *picks,
                                size_t pick_count, bugpack_error *error) {
    walk state = {.length = 0};
    bp_json_scanner scanner;
    bp_json_token token;
    bugpack_status status;
    for (size_t i = 0; i < pick_count; i++) {
        picks[i].token = (bp_json_token){.byte_count = 0};
    }
    bp_json_scanner_init(&scanner, text, byte_count);
    scanner.key_max = BP_JSON_KEY_MAX;
    while ((status = bp_json_scanner_next(&scanner, &token, error)) == BUGPACK_OK &&
           token.kind != BP_JSON_FINISH) {
        if (token.kind == BP_JSON_KEY) {
            enter_key(&state, scanner.depth, &token);
        } else if (token.kind != BP_JSON_END) {
            enter_value(&state, &scanner, &token, picks, pick_count);
        }
    }
    bp_json_scanner_release(&scanner);
    return status;
}

bool bp_json_token_is(const bp_json_token *token, const char *text) {
    size_t byte_count = strlen(text);
    /* An empty token may have no text at all. */
    return token->byte_count == byte_count &&
           (byte_count == 0 || memcmp(token->text, text, byte_count) == 0);
}

/* Appends a decimal digit; false when it is none, or the value would not fit. */
static bool push_digit(uint64_t *value, char character) {
    unsigned digit = (unsigned)(unsigned char)character - '0';
    if (digit > 9 || *value > (UINT64_MAX - digit) / 10) {
        return false;
    }
    *value = *value * 10 + digit;
    return true;
}

bool bp_json_token_uint(const bp_json_token *token, uint64_t *ret_value) {
    return token->byte_count > 0 && memchr(token->text, '.', token->byte_count) == NULL &&
           bp_json_token_fixed(token, 0, ret_value);
}

bool bp_json_token_fixed(const bp_json_token *token, unsigned decimals, uint64_t *ret_value) {
    uint64_t value = 0;
    size_t at = 0;
    while (at < token->byte_count && token->text[at] != '.') {
        if (!push_digit(&value, token->text[at++])) {
            return false;
        }
    }
    if (at == 0) {
        return false;
    }
    at += at < token->byte_count; /* the point */
    for (unsigned i = 0; i < decimals; i++) {
        if (!push_digit(&value, at < token->byte_count ? token->text[at++] : '0')) {
            return false;
        }
    }
    bool rounds_up = at < token->byte_count && token->text[at] >= '5' && token->text[at] <= '9';
    for (; at < token->byte_count; at++) {
        if (token->text[at] < '0' || token->text[at] > '9') {
            return false; /* an exponent */
        }
    }
    if (rounds_up && value == UINT64_MAX) {
        return false;
    }
    *ret_value = value + rounds_up;
    return true;
}

bool bp_json_token_text(const bp_json_token *token, bp_buffer *out) {
    if (token->byte_count < 2 || token->text[0] != '"') {
        return false;
    }
    const unsigned char *at = (const unsigned char *)token->text + 1;
    int32_t character;
    while ((character = bp_json_next_character(&at)) > 0) {
        char bytes[BP_UTF8_MAX_BYTES];
        (void)bp_buffer_append(out, bytes, bp_utf8_put((uint32_t)character, bytes));
    }
    return true;
}
