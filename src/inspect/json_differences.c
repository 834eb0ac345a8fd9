#include "inspect/json_differences.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "json/pick.h"

/* The prefix of redact/tag.h, and the hash behind the rule, which differs in each report. */
static const char redacted_prefix[] = "REDACTED-";
static const char word_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
enum { redacted_hash_bytes = 12 };

void bp_json_differences_init(bp_json_differences *list) {
    *list = (bp_json_differences){0};
    bp_buffer_init(&list->texts, (size_t)8 << 20);
}

void bp_json_differences_release(bp_json_differences *list) {
    free(list->rows);
    bp_buffer_release(&list->texts);
    *list = (bp_json_differences){0};
}

static bool is_string(const bp_json_token *value) {
    return value->kind == BP_JSON_SCALAR && value->text[0] == '"';
}

/* Whether two strings are equal but for the hashes of secrets, and have any. */
static bool is_redacted_alike(const bp_json_token *before, const bp_json_token *after) {
    const char *one = before->text, *one_end = one + before->byte_count;
    const char *other = after->text, *other_end = other + after->byte_count;
    const size_t prefix_bytes = sizeof redacted_prefix - 1;
    bool has_any = false;
    if (!is_string(before) || !is_string(after)) {
        return false;
    }
    while (one < one_end && other < other_end && *one == *other) {
        if ((size_t)(one_end - one) > prefix_bytes && (size_t)(other_end - other) > prefix_bytes &&
            memcmp(one, redacted_prefix, prefix_bytes) == 0 &&
            memcmp(other, redacted_prefix, prefix_bytes) == 0) {
            size_t word = strspn(one, word_bytes);
            size_t kept = word > redacted_hash_bytes ? word - redacted_hash_bytes : word;
            if (strspn(other, word_bytes) != word || strncmp(one, other, kept) != 0) {
                return false; /* nor would a later place in this word do */
            }
            has_any = true;
            one += word;
            other += word;
            continue;
        }
        one++;
        other++;
    }
    return has_any && one == one_end && other == other_end;
}

/* Keeps a value without white space. */
static size_t keep_value(bp_json_differences *list, const bp_json_token *value) {
    size_t start = list->texts.size;
    bool is_in_string = false;
    for (size_t i = 0; i < value->byte_count; i++) {
        char byte = value->text[i];
        is_in_string ^= byte == '"';
        if (is_in_string || strchr(" \t\r\n", byte) == NULL) {
            (void)bp_buffer_append_char(&list->texts, byte);
        }
        if (is_in_string && byte == '\\') {
            (void)bp_buffer_append_char(&list->texts, value->text[++i]);
        }
    }
    (void)bp_buffer_append_char(&list->texts, '\0');
    return start;
}

/* Digits after the point. */
static unsigned count_decimals(const bp_json_token *value) {
    const char *point = memchr(value->text, '.', value->byte_count);
    return point == NULL ? 0 : (unsigned)(value->text + value->byte_count - point - 1);
}

static void fill_change(bp_json_difference *row, const bp_json_token *before,
                        const bp_json_token *after) {
    unsigned old_decimals = count_decimals(before), new_decimals = count_decimals(after);
    row->decimals = old_decimals > new_decimals ? old_decimals : new_decimals;
    row->is_number = row->decimals <= 9 &&
                     bp_json_token_fixed(before, row->decimals, &row->change.before) &&
                     bp_json_token_fixed(after, row->decimals, &row->change.after);
    row->change.is_known_before = row->change.is_known_after = true;
    bp_change_complete(&row->change);
}

bool bp_json_differences_add(bp_json_differences *list, const char *entry, const bp_buffer *path,
                             const bp_json_token *before, const bp_json_token *after) {
    bp_json_difference row = {
        .entry = entry, .has_before = before != NULL, .has_after = after != NULL};
    if (list->count == BP_JSON_DIFFERENCE_MAX || list->texts.status == BUGPACK_ERR_LIMIT) {
        list->is_cut = true;
        return true;
    }
    row.path = list->texts.size;
    (void)bp_buffer_append(&list->texts, bp_buffer_text(path), path->size);
    (void)bp_buffer_append_char(&list->texts, '\0');
    row.before = before != NULL ? keep_value(list, before) : 0;
    row.after = after != NULL ? keep_value(list, after) : 0;
    if (before != NULL && after != NULL) {
        row.is_redacted = is_redacted_alike(before, after);
        fill_change(&row, before, after);
    }
    if (list->texts.status == BUGPACK_ERR_LIMIT) {
        list->is_cut = true;
        return true;
    }
    if (list->texts.status != BUGPACK_OK ||
        !bp_array_reserve(&list->rows, list->count, &list->capacity)) {
        return false;
    }
    list->redacted_count += row.is_redacted;
    list->rows[list->count++] = row;
    return true;
}
