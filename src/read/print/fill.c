#include "print/fill.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {path:format|default}, as it stands in a pattern. */
typedef struct fill_field {
    char path[64];
    bool is_left;
    int width, decimals;
    char unit;
    const char *suffix, *otherwise; /* NULL: there is no default */
    size_t suffix_bytes, otherwise_bytes;
} fill_field;

const char *bp_fill_bytes(double bytes, char out[BP_FILL_BYTES]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    for (; bytes >= 1023.5 && unit + 1 < sizeof units / sizeof units[0]; unit++) {
        bytes /= 1024;
    }
    (void)snprintf(out, BP_FILL_BYTES, "%.*f %s", unit > 0 && bytes < 99.95 ? 1 : 0, bytes,
                   units[unit]);
    return out;
}

/* Reads the field behind its '{', and returns what is behind its '}'. */
static const char *read_field(const char *at, fill_field *ret_field) {
    const char *end = at + strcspn(at, "}");
    size_t length = strcspn(at, ":|}");
    *ret_field = (fill_field){.unit = 's'};
    memcpy(ret_field->path, at, length < sizeof ret_field->path ? length : 0);
    at += length;
    if (*at == ':') {
        char *next;
        ret_field->is_left = *++at == '-';
        ret_field->width = (int)strtol(at + ret_field->is_left, &next, 10);
        ret_field->decimals = *next == '.' ? (int)strtol(next + 1, &next, 10) : 0;
        ret_field->unit = *next;
        ret_field->suffix = next + 1;
        ret_field->suffix_bytes = strcspn(next + 1, "|}");
        at = ret_field->suffix + ret_field->suffix_bytes;
    }
    if (*at == '|') {
        ret_field->otherwise = at + 1;
        ret_field->otherwise_bytes = (size_t)(end - at) - 1;
    }
    return end + 1;
}

/* The text of a field in `buffer`, or in the tree; NULL where it is not known. */
static const char *print_field(const fill_field *field, const bp_json_tree *facts,
                               char buffer[400]) {
    const bp_json_tree *fact = bp_json_tree_at(facts, field->path);
    double value = 0;
    bool is_number = bp_json_tree_value_number(fact, &value);
    buffer[0] = '\0';
    switch (field->unit) {
    case 's':
        return bp_json_tree_value_text(fact);
    case '!':
        return fact != NULL && !bp_json_tree_value_is_false(fact) ? buffer : NULL;
    case '~':
        return fact == NULL ? buffer : NULL;
    case '*':
        return bp_json_tree_first(fact) != NULL ? buffer : NULL;
    case '+':
        return value > 0 ? buffer : NULL;
    case 'p':
        return value == 1 ? "" : "s";
    case 'k':
        (void)bp_fill_bytes(value * 1024, buffer);
        break;
    case 'b':
        (void)bp_fill_bytes(value, buffer);
        break;
    case 'm':
        value /= 1024;
        break;
    case 't':
        value /= 1000;
        break;
    case 'n':
        value /= 1e9;
        break;
    case 'h':
        value *= 100;
        break;
    case 'c':
        value = value < 100 ? value : 100;
        break;
    case 'K':
        value = (double)((uint64_t)value >> 10);
        break;
    default: /* 'f', 'u' */
        break;
    }
    if (buffer[0] == '\0') {
        (void)snprintf(buffer, 400, "%.*f", field->decimals, value);
    }
    return is_number ? buffer : NULL;
}

/* True if all fields up to `end` are known, or have a default. */
static bool is_known(const char *at, const char *end, const bp_json_tree *facts) {
    char buffer[400];
    fill_field field;
    while (at < end) {
        const char *group = strncmp(at, "{[", 2) == 0 ? strstr(at, "]}") : NULL;
        if (group != NULL) {
            at = group + 2;
        } else if (*at == '{') {
            at = read_field(at + 1, &field);
            if (field.otherwise == NULL && print_field(&field, facts, buffer) == NULL) {
                return false;
            }
        } else {
            at++;
        }
    }
    return true;
}

static void pad(int columns, bp_fill_taker *take, void *context) {
    for (; columns > 0; columns--) {
        take(context, " ", 1, false);
    }
}

static void give(const fill_field *field, const bp_json_tree *facts, bp_fill_taker *take,
                 void *context) {
    char buffer[400];
    const char *text = print_field(field, facts, buffer);
    size_t length = text != NULL ? strlen(text) : field->otherwise_bytes;
    size_t suffix_bytes = text != NULL ? field->suffix_bytes : 0;
    int blanks = field->width - (int)(length + suffix_bytes < 4096 ? length + suffix_bytes : 4096);
    pad(field->is_left ? 0 : blanks, take, context);
    take(context, text != NULL ? text : field->otherwise, length, text != NULL);
    if (suffix_bytes > 0) {
        take(context, field->suffix, suffix_bytes, false);
    }
    pad(field->is_left ? blanks : 0, take, context);
}

static void give_all(const char *at, const char *end, const bp_json_tree *facts,
                     bp_fill_taker *take, void *context) {
    fill_field field;
    while (at < end) {
        size_t plain = strcspn(at, "{");
        plain = plain < (size_t)(end - at) ? plain : (size_t)(end - at);
        if (plain > 0) {
            take(context, at, plain, false);
            at += plain;
        } else if (at[1] == '[') {
            const char *group_end = strstr(at, "]}");
            if (is_known(at + 2, group_end, facts)) {
                give_all(at + 2, group_end, facts, take, context);
            }
            at = group_end + 2;
        } else {
            at = read_field(at + 1, &field);
            give(&field, facts, take, context);
        }
    }
}

bool bp_fill(const char *pattern, const bp_json_tree *facts, bp_fill_taker *take, void *context) {
    const char *end = pattern + strlen(pattern);
    if (!is_known(pattern, end, facts)) {
        return false;
    }
    give_all(pattern, end, facts, take, context);
    return true;
}
