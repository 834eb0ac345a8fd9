#include "inspect/json_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "json/pick.h"

static int64_t subtract(uint64_t after, uint64_t before) {
    if (after >= before) {
        return after - before > INT64_MAX ? INT64_MAX : (int64_t)(after - before);
    }
    return before - after > INT64_MAX ? INT64_MIN : -(int64_t)(before - after);
}

void bp_change_complete(bp_change *change) {
    change->has_delta = change->is_known_before && change->is_known_after;
    change->delta = change->has_delta ? subtract(change->after, change->before) : 0;
    change->has_percent = change->has_delta && change->before > 0;
    change->percent = 0;
    if (change->has_percent) {
        double share =
            100.0 * ((double)change->after - (double)change->before) / (double)change->before;
        double hundredths = share * 100.0 + (share < 0 ? -0.5 : 0.5);
        change->percent =
            hundredths > -1e15 && hundredths < 1e15 ? (double)(int64_t)hundredths / 100.0 : share;
    }
}

/* --- the list ------------------------------------------------------------------------------ */

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

enum { path_max_bytes = 4096 };

/* A value. Of an object or an array the text reaches from bracket to bracket. */
typedef struct json_node {
    bp_json_token key, value;
    size_t first, next; /* child and sibling, by index; 0: none */
} json_node;

typedef struct json_nodes {
    json_node *rows;
    size_t count, capacity, max;
} json_nodes;

typedef struct comparison {
    const bp_json_diff_rule *rule;
    json_nodes before, after;
    bp_buffer path;
    bp_json_differences *list;
    bool lacks_memory;
} comparison;

/* A child with what it is matched by: its key, the tokens that name it, or its number. */
typedef struct labelled {
    size_t node, number;
    bp_json_token name, tid; /* of no bytes where there is none */
} labelled;

/* What is between the quotes of a token, or all of it. */
static bp_json_token unquote(bp_json_token token) {
    if (token.byte_count >= 2 && token.text[0] == '"') {
        token.text++;
        token.byte_count -= 2;
    }
    return token;
}

static bool is_text(const bp_json_token *token, const char *text, size_t length) {
    return token->byte_count == length && memcmp(token->text, text, length) == 0;
}

static bool is_word_of(const char *words, const bp_json_token *word) {
    for (size_t length; *words != '\0'; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        if (length > 0 && is_text(word, words, length)) {
            return true;
        }
    }
    return false;
}

/* --- a document --------------------------------------------------------------------------- */

/* A document being read. Its root is node 0. Depths are those of what contains a value. */
typedef struct document_reader {
    const char *parts; /* of the rule */
    json_nodes *nodes;
    bp_json_token key;
    size_t parents[BP_JSON_DEPTH_MAX + 1], lasts[BP_JSON_DEPTH_MAX + 1];
    bool is_skipped; /* what is read is in no part */
} document_reader;

static bugpack_status add_node(document_reader *reader, size_t depth, const bp_json_token *value,
                               bugpack_error *error) {
    json_nodes *nodes = reader->nodes;
    if (nodes->count == nodes->max) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT,
                       "its comparison would take over %zu MiB of memory",
                       2 * BP_JSON_DIFF_SIDE_BYTES >> 20);
    }
    if (!bp_array_reserve(&nodes->rows, nodes->count, &nodes->capacity)) {
        return bp_fail_memory(error, "compare two documents");
    }
    size_t index = nodes->count++;
    nodes->rows[index] = (json_node){.key = reader->key, .value = *value};
    reader->key = (bp_json_token){.text = ""};
    if (reader->lasts[depth] != 0) {
        nodes->rows[reader->lasts[depth]].next = index;
    } else if (depth > 0) {
        nodes->rows[reader->parents[depth]].first = index;
    }
    reader->lasts[depth] = index;
    if (value->kind == BP_JSON_BEGIN) {
        reader->parents[depth + 1] = index;
        reader->lasts[depth + 1] = 0;
    }
    return BUGPACK_OK;
}

static bugpack_status take_token(document_reader *reader, size_t depth, const bp_json_token *token,
                                 bugpack_error *error) {
    static const bp_json_token object = {BP_JSON_BEGIN, "{", 1};
    bool has_parts = reader->parts[0] != '\0';
    if (token->kind == BP_JSON_KEY) {
        reader->key = unquote(*token);
        if (depth == 1) {
            reader->is_skipped = has_parts && !is_word_of(reader->parts, &reader->key);
        }
        return BUGPACK_OK;
    }
    bool is_end = token->kind == BP_JSON_END;
    if (depth == 0 && has_parts) {
        reader->is_skipped = true; /* of an array or a number there is no part */
        return is_end ? BUGPACK_OK : add_node(reader, depth, &object, error);
    }
    if (reader->is_skipped) {
        return BUGPACK_OK;
    }
    if (!is_end) {
        return add_node(reader, depth, token, error);
    }
    bp_json_token *open = &reader->nodes->rows[reader->parents[depth + 1]].value;
    open->byte_count = (size_t)(token->text - open->text) + 1;
    return BUGPACK_OK;
}

static bugpack_status read_document(const bp_buffer *text, const bp_json_diff_rule *rule,
                                    json_nodes *nodes, bugpack_error *error) {
    document_reader reader = {.parts = rule->parts, .nodes = nodes, .key = {.text = ""}};
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bp_json_scanner scanner;
    bp_json_token token;
    size_t left_bytes =
        text->size < BP_JSON_DIFF_SIDE_BYTES ? BP_JSON_DIFF_SIDE_BYTES - text->size : 0;
    nodes->max = left_bytes / (sizeof(json_node) + sizeof(labelled));
    bp_json_scanner_init(&scanner, bp_buffer_text(text), text->size);
    scanner.key_max = BP_JSON_KEY_MAX;
    bugpack_status status = bp_json_scanner_next(&scanner, &token, &detail);
    while (status == BUGPACK_OK && token.kind != BP_JSON_FINISH) {
        size_t depth = scanner.depth - (token.kind == BP_JSON_BEGIN);
        status = take_token(&reader, depth, &token, &detail);
        if (status == BUGPACK_OK) {
            status = bp_json_scanner_next(&scanner, &token, &detail);
        }
    }
    bp_json_scanner_release(&scanner);
    return status == BUGPACK_OK ? status
                                : bp_fail(error, status, "%s: %s", rule->entry, detail.message);
}

/* --- the comparison ----------------------------------------------------------------------- */

static void add_row(comparison *both, const bp_json_token *before, const bp_json_token *after) {
    both->lacks_memory |=
        !bp_json_differences_add(both->list, both->rule->entry, &both->path, before, after);
}

/* A member that is neither object nor array; of no bytes where there is none. */
static bp_json_token find_scalar(const json_nodes *nodes, size_t parent, const char *key) {
    for (size_t i = nodes->rows[parent].first; i != 0; i = nodes->rows[i].next) {
        const json_node *member = &nodes->rows[i];
        bp_json_token name = unquote(member->key);
        if (member->value.kind == BP_JSON_SCALAR && is_text(&name, key, strlen(key))) {
            return unquote(member->value);
        }
    }
    return (bp_json_token){.text = ""};
}

/* What names an element of an array. */
static labelled name_element(const comparison *both, const json_nodes *nodes, size_t node) {
    static const char *const keys[] = {"path", "name", "key", "id"};
    labelled made = {.node = node, .name = {.text = ""}, .tid = {.text = ""}};
    for (size_t i = 0; made.name.byte_count == 0 && i < sizeof keys / sizeof keys[0]; i++) {
        made.name = find_scalar(nodes, node, keys[i]);
    }
    if (!both->rule->by_name) {
        made.tid = find_scalar(nodes, node, "tid");
    }
    return made;
}

static bool are_named(const comparison *both, const json_nodes *nodes, size_t array) {
    size_t i = nodes->rows[array].first;
    while (i != 0 && name_element(both, nodes, i).name.byte_count > 0) {
        i = nodes->rows[i].next;
    }
    return i == 0;
}

static int compare_tokens(const bp_json_token *one, const bp_json_token *other) {
    size_t shorter = one->byte_count < other->byte_count ? one->byte_count : other->byte_count;
    int order = memcmp(one->text, other->text, shorter);
    int by_length = (one->byte_count > other->byte_count) - (one->byte_count < other->byte_count);
    return order != 0 ? order : by_length;
}

/* The order of two labels; elements without a name have their number. */
static int compare_labels(const labelled *one, const labelled *other, bool is_named) {
    int order = is_named ? compare_tokens(&one->name, &other->name)
                         : (one->number > other->number) - (one->number < other->number);
    return order != 0 || !is_named ? order : compare_tokens(&one->tid, &other->tid);
}

/* Those of one label, as the threads of a pool, stay in their order. */
static int sort_labels(const void *one, const void *other) {
    const labelled *left = one, *right = other;
    int order = compare_labels(left, right, true);
    return order != 0 ? order : compare_labels(left, right, false);
}

/* The children of a value with their labels, sorted. NULL for none, and without memory. */
static labelled *label_children(comparison *both, const json_nodes *nodes, size_t parent,
                                bool is_named, size_t *ret_count) {
    size_t count = 0;
    bool is_object = nodes->rows[parent].value.text[0] == '{';
    for (size_t i = nodes->rows[parent].first; i != 0; i = nodes->rows[i].next) {
        count++;
    }
    labelled *children = count == 0 ? NULL : malloc(count * sizeof *children);
    both->lacks_memory |= count > 0 && children == NULL;
    *ret_count = children == NULL ? 0 : count;
    count = 0;
    for (size_t i = nodes->rows[parent].first; children != NULL && i != 0;
         i = nodes->rows[i].next) {
        children[count] =
            is_object
                ? (labelled){.node = i, .name = unquote(nodes->rows[i].key), .tid = {.text = ""}}
                : name_element(both, nodes, i);
        children[count].number = count;
        count++;
    }
    if (count > 1 && is_named) {
        qsort(children, count, sizeof *children, sort_labels);
    }
    return children;
}

static void compare_nodes(comparison *both, size_t before, size_t after);

static void add_label(bp_buffer *path, const labelled *child, bool is_object, bool is_named) {
    const bp_json_token *name = &child->name, *tid = &child->tid;
    if (is_object && name->byte_count > 0) {
        (void)bp_buffer_printf(path, "%s%.*s", path->size > 0 ? "." : "", (int)name->byte_count,
                               name->text);
    } else if (!is_object && is_named) {
        (void)bp_buffer_printf(path, "[%.*s%s%.*s]", (int)name->byte_count, name->text,
                               tid->byte_count > 0 ? " " : "", (int)tid->byte_count, tid->text);
    } else if (!is_object) {
        (void)bp_buffer_printf(path, "[%zu]", child->number);
    }
}

/* Compares what two children, or one, have below a label. */
static void compare_children(comparison *both, const labelled *before, const labelled *after,
                             bool is_object, bool is_named) {
    const labelled *child = before != NULL ? before : after;
    size_t path_bytes = both->path.size;
    if (is_object && is_word_of(both->rule->skip, &child->name)) {
        return;
    }
    add_label(&both->path, child, is_object, is_named);
    if (both->path.status == BUGPACK_ERR_LIMIT) { /* so deep below such long names */
        both->list->is_cut = true;
    } else if (before == NULL) {
        add_row(both, NULL, &both->after.rows[after->node].value);
    } else if (after == NULL) {
        add_row(both, &both->before.rows[before->node].value, NULL);
    } else {
        compare_nodes(both, before->node, after->node);
    }
    both->lacks_memory |= both->path.status == BUGPACK_ERR_NO_MEMORY;
    both->path.size = path_bytes;
    both->path.status = BUGPACK_OK;
}

static void compare_nodes(comparison *both, size_t before, size_t after) {
    const json_node *one = &both->before.rows[before], *other = &both->after.rows[after];
    if (one->value.kind != BP_JSON_BEGIN || other->value.kind != BP_JSON_BEGIN ||
        one->value.text[0] != other->value.text[0]) {
        if (one->value.byte_count != other->value.byte_count ||
            memcmp(one->value.text, other->value.text, one->value.byte_count) != 0) {
            add_row(both, &one->value, &other->value);
        }
        return;
    }
    bool is_object = one->value.text[0] == '{';
    bool is_named = is_object || (are_named(both, &both->before, before) &&
                                  are_named(both, &both->after, after));
    size_t counts[2], i = 0, j = 0;
    labelled *olds = label_children(both, &both->before, before, is_named, &counts[0]);
    labelled *news = label_children(both, &both->after, after, is_named, &counts[1]);
    while (!both->lacks_memory && (i < counts[0] || j < counts[1])) {
        int order = i == counts[0] ? 1 : -1;
        if (i < counts[0] && j < counts[1]) {
            order = compare_labels(&olds[i], &news[j], is_named);
        }
        compare_children(both, order <= 0 ? &olds[i] : NULL, order >= 0 ? &news[j] : NULL,
                         is_object, is_named);
        i += order <= 0;
        j += order >= 0;
    }
    free(olds);
    free(news);
}

bugpack_status bp_json_diff(const bp_buffer *before, const bp_buffer *after,
                            const bp_json_diff_rule *rule, bp_json_differences *list,
                            bugpack_error *error) {
    comparison both = {.rule = rule, .list = list};
    bp_buffer_init(&both.path, path_max_bytes);
    bugpack_status status = read_document(before, rule, &both.before, error);
    if (status == BUGPACK_OK) {
        status = read_document(after, rule, &both.after, error);
    }
    if (status == BUGPACK_OK) {
        compare_nodes(&both, 0, 0);
    }
    if (both.lacks_memory) {
        status = bp_fail_memory(error, "compare two documents");
    }
    bp_buffer_release(&both.path);
    free(both.before.rows);
    free(both.after.rows);
    return status;
}
