#include "json/pick.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "json/string.h"

enum { key_max_bytes = 64, part_max_bytes = key_max_bytes + 1 };

/* What no key that is looked for can be. */
static const char strange_key[] = "\1";

typedef struct walk {
    bp_json_scanner scanner;
    /* Of the value that comes next. Every part fits, so it is never full. */
    char path[BP_JSON_DEPTH_MAX * part_max_bytes + 1];
    size_t base[BP_JSON_DEPTH_MAX + 1]; /* the length of the path of what is open, by depth */
} walk;

static bool is_plain(const char *key, size_t byte_count) {
    return byte_count < key_max_bytes && memchr(key, '.', byte_count) == NULL &&
           memchr(key, '[', byte_count) == NULL && memchr(key, '\\', byte_count) == NULL;
}

static void enter_part(walk *state, size_t base, const char *part, size_t byte_count) {
    char *at = state->path + base;
    if (base > 0 && part[0] != '[') {
        *at++ = '.';
    }
    memcpy(at, part, byte_count);
    at[byte_count] = '\0';
}

static void enter_key(walk *state, const bp_json_token *token) {
    const char *key = token->text + 1;
    size_t byte_count = token->byte_count - 2;
    bool keeps = is_plain(key, byte_count) && byte_count > 0;
    enter_part(state, state->base[state->scanner.depth], keeps ? key : strange_key,
               keeps ? byte_count : sizeof strange_key - 1);
}

/* The path of the container that a value stands in, completed for an element of an array. */
static void enter_element(walk *state, size_t depth) {
    if (depth > 0 && !state->scanner.open[depth - 1].is_object) {
        enter_part(state, state->base[depth], "[]", 2);
    }
}

/* Brings the path up to a token, whose container is `depth` deep. */
static void follow(walk *state, const bp_json_token *token) {
    size_t depth = state->scanner.depth; /* behind the token */
    if (token->kind == BP_JSON_BEGIN) {
        enter_element(state, depth - 1);
        state->base[depth] = strlen(state->path);
    } else if (token->kind == BP_JSON_END) {
        state->path[state->base[depth + 1]] = '\0';
    } else if (token->kind == BP_JSON_SCALAR) {
        enter_element(state, depth);
    }
}

bugpack_status bp_json_walk(const void *text, size_t byte_count, bp_json_visitor *visit,
                            void *context, bugpack_error *error) {
    bp_json_token token = {.kind = BP_JSON_KEY};
    walk *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return bp_fail_memory(error, "read a JSON text");
    }
    bugpack_status status = bp_json_scanner_init(&state->scanner, text, byte_count, error);
    bool is_open = status == BUGPACK_OK;
    while (status == BUGPACK_OK) {
        status = bp_json_scanner_next(&state->scanner, &token, error);
        if (status != BUGPACK_OK || token.kind == BP_JSON_FINISH) {
            break;
        }
        if (token.kind == BP_JSON_KEY) {
            enter_key(state, &token);
            continue;
        }
        follow(state, &token);
        status = visit(context, state->path, &token, error);
    }
    if (is_open) {
        bp_json_scanner_release(&state->scanner);
    }
    free(state);
    return status;
}

typedef struct pick_list {
    bp_json_pick *picks;
    size_t count;
} pick_list;

static bugpack_status take_pick(void *context, const char *path, const bp_json_token *token,
                                bugpack_error *error) {
    pick_list *list = context;
    (void)error;
    for (size_t i = 0; token->kind != BP_JSON_END && i < list->count; i++) {
        if (strcmp(list->picks[i].path, path) == 0) {
            list->picks[i].token = *token;
        }
    }
    return BUGPACK_OK;
}

bugpack_status bp_json_pick_all(const void *text, size_t byte_count, bp_json_pick *picks,
                                size_t pick_count, bugpack_error *error) {
    pick_list list = {picks, pick_count};
    for (size_t i = 0; i < pick_count; i++) {
        picks[i].token = (bp_json_token){.byte_count = 0};
    }
    return bp_json_walk(text, byte_count, take_pick, &list, error);
}

bool bp_json_token_is(const bp_json_token *token, const char *text) {
    return token->byte_count == strlen(text) && memcmp(token->text, text, token->byte_count) == 0;
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
    uint64_t value = 0;
    for (size_t i = 0; i < token->byte_count; i++) {
        if (!push_digit(&value, token->text[i])) {
            return false;
        }
    }
    if (token->byte_count == 0) {
        return false;
    }
    *ret_value = value;
    return true;
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
    at += at < token->byte_count; /* the point, behind which a checked number has digits */
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
    (void)bp_json_decode(&at, out);
    return true;
}
