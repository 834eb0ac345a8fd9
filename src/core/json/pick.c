#include "json/pick.h"

#include <string.h>

#include "base/utf8.h"

/* The length of a path that no pick can have. */
static const size_t outside = SIZE_MAX;

/* Where a scanner is. All zero is the begin of a text. */
typedef struct walk_state {
    char path[256];
    size_t length;                      /* of the path of the value that comes next */
    size_t base[BP_JSON_DEPTH_MAX + 1]; /* of what is open, by depth */
} walk_state;

/* Appends to the path that has `length` bytes. */
static void extend(walk_state *walk, size_t length, const char *text, size_t byte_count) {
    bool fits = length != outside && length + byte_count + 2 <= sizeof walk->path;
    walk->length = outside;
    if (fits) {
        memcpy(walk->path + length, text, byte_count);
        walk->length = length + byte_count;
        walk->path[walk->length] = '\0';
    }
}

static void enter_key(walk_state *walk, size_t depth, const bp_json_token *token) {
    const char *key = token->text + 1;
    size_t key_bytes = token->byte_count - 2, length = walk->base[depth];
    walk->length = outside;
    if (length == outside || key_bytes == 0) {
        return;
    }
    for (size_t i = 0; i < key_bytes; i++) {
        if (key[i] == '.' || key[i] == '[' || key[i] == '\\') {
            return;
        }
    }
    if (length > 0) {
        extend(walk, length, ".", 1);
        length = walk->length;
    }
    extend(walk, length, key, key_bytes);
}

/* Moves on by a token. The pick of the value that begins with it, or NULL. */
static bp_json_pick *walk_to(walk_state *walk, const bp_json_scanner *scanner,
                             const bp_json_token *token, bp_json_pick *picks, size_t pick_count) {
    bool is_begin = token->kind == BP_JSON_BEGIN, leads_on = false;
    size_t container = scanner->depth - is_begin;
    bp_json_pick *found = NULL;
    if (token->kind == BP_JSON_KEY) {
        enter_key(walk, scanner->depth, token);
    }
    if (!is_begin && token->kind != BP_JSON_SCALAR) {
        return NULL;
    }
    if (container > 0 && !scanner->is_object[container - 1]) {
        extend(walk, walk->base[container], "[]", 2);
    }
    for (size_t i = 0; walk->length != outside && i < pick_count; i++) {
        bp_json_pick *pick = &picks[i];
        if (pick->path_bytes >= walk->length && memcmp(pick->path, walk->path, walk->length) == 0) {
            leads_on = true;
            found = pick->path_bytes == walk->length ? pick : found;
        }
    }
    if (is_begin) {
        walk->base[scanner->depth] = leads_on ? walk->length : outside;
    }
    return found;
}

bugpack_status bp_json_pick_all(const void *text, size_t byte_count, bp_json_pick *picks,
                                size_t pick_count, bugpack_error *error) {
    walk_state at = {.length = 0};
    bp_json_scanner scanner;
    bp_json_token token;
    bugpack_status status;
    for (size_t i = 0; i < pick_count; i++) {
        picks[i].token = (bp_json_token){.text = ""};
        picks[i].path_bytes = strlen(picks[i].path);
    }
    bp_json_scanner_init(&scanner, text, byte_count);
    scanner.key_max = BP_JSON_KEY_MAX;
    while ((status = bp_json_scanner_next(&scanner, &token, error)) == BUGPACK_OK &&
           token.kind != BP_JSON_FINISH) {
        bp_json_pick *pick = walk_to(&at, &scanner, &token, picks, pick_count);
        if (pick != NULL) {
            pick->token = token;
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
