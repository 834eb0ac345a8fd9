#include "compare/json_diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "json/parts.h"

enum { path_max_bytes = 4096 };
static const size_t paths_max_bytes = (size_t)32 << 20;

/* A value, as offsets into the text, where an object or array reaches from bracket to bracket. */
typedef struct bp_json_node {
    uint32_t key, key_bytes; /* without quotes */
    uint32_t value, value_bytes;
    uint32_t first, next; /* child and sibling, by index; 0: none */
} bp_json_node;

static bool is_text(const bp_json_token *token, const char *text, size_t length) {
    return token->byte_count == length && (length == 0 || memcmp(token->text, text, length) == 0);
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

static bp_json_token unquote(bp_json_token token) {
    if (token.byte_count >= 2 && token.text[0] == '"') {
        token.text++;
        token.byte_count -= 2;
    }
    return token;
}

/* --- a side ------------------------------------------------------------------------------- */

void bp_json_side_init(bp_json_side *side) {
    *side = (bp_json_side){0};
    bp_buffer_init(&side->text, BP_JSON_SIDE_BYTES);
}

void bp_json_side_release(bp_json_side *side) {
    free(side->nodes);
    bp_buffer_release(&side->text);
    *side = (bp_json_side){0};
}

/* A document being read. Depths are those of what contains a value. */
typedef struct document_reader {
    const bp_json_diff_rule *rule;
    bp_json_side *side;
    bp_json_parts parts;
    uint32_t key, key_bytes;
    uint32_t parents[BP_JSON_DEPTH_MAX + 1], lasts[BP_JSON_DEPTH_MAX + 1];
    bool skips_next;   /* the value of the last key is left out */
    size_t skip_depth; /* in an object or array that is, of this depth; 0: in none */
} document_reader;

static bugpack_status add_node(document_reader *reader, size_t depth, bp_json_node node,
                               bugpack_error *error) {
    bp_json_side *side = reader->side;
    uint32_t index = (uint32_t)side->count;
    if (!bp_array_reserve(&side->nodes, side->count, &side->capacity)) {
        return bp_fail_memory(error, "compare two documents");
    }
    side->nodes[side->count++] = node;
    if (reader->lasts[depth] != 0) {
        side->nodes[reader->lasts[depth]].next = index;
    } else if (depth > 0) {
        side->nodes[reader->parents[depth]].first = index;
    }
    reader->lasts[depth] = index;
    return BUGPACK_OK;
}

static void take_key(document_reader *reader, size_t depth, const bp_json_token *token) {
    const bp_json_diff_rule *rule = reader->rule;
    bp_json_token key = unquote(*token);
    bool is_in_part = depth > 1 || rule->parts[0] == '\0' || is_word_of(rule->parts, &key);
    reader->skips_next = !is_in_part || is_word_of(rule->skip, &key);
    if (!reader->skips_next) {
        bp_buffer *text = &reader->side->text;
        (void)bp_buffer_append_text(text, reader->lasts[depth] != 0 ? ",\"" : "\"");
        reader->key = (uint32_t)text->size;
        reader->key_bytes = (uint32_t)key.byte_count;
        (void)bp_buffer_append(text, token->text + 1, token->byte_count - 1);
        (void)bp_buffer_append_char(text, ':');
    }
}

static bugpack_status take_value(document_reader *reader, size_t depth, const bp_json_token *token,
                                 bugpack_error *error) {
    bp_buffer *text = &reader->side->text;
    bool is_element = depth > 0 && !reader->parts.scanner.is_object[depth - 1];
    if (is_element && reader->lasts[depth] != 0) {
        (void)bp_buffer_append_char(text, ',');
    }
    bp_json_node node = {.key = reader->key,
                         .key_bytes = reader->key_bytes,
                         .value = (uint32_t)text->size,
                         .value_bytes = (uint32_t)token->byte_count};
    reader->key_bytes = 0;
    (void)bp_buffer_append(text, token->text, token->byte_count);
    bugpack_status status = add_node(reader, depth, node, error);
    if (status == BUGPACK_OK && token->kind == BP_JSON_BEGIN) {
        reader->parents[depth + 1] = reader->lasts[depth];
        reader->lasts[depth + 1] = 0;
    }
    return status;
}

static bugpack_status take_token(void *context, const bp_json_token *token, bugpack_error *error) {
    document_reader *reader = context;
    bp_json_side *side = reader->side;
    size_t depth = reader->parts.scanner.depth;
    bool is_begin = token->kind == BP_JSON_BEGIN;
    bugpack_status status = BUGPACK_OK;
    if (reader->skip_depth > 0) {
        bool is_left = token->kind == BP_JSON_END && depth < reader->skip_depth;
        reader->skip_depth = is_left ? 0 : reader->skip_depth;
    } else if (token->kind == BP_JSON_KEY) {
        take_key(reader, depth, token);
    } else if (token->kind == BP_JSON_END) {
        (void)bp_buffer_append(&side->text, token->text, token->byte_count);
        bp_json_node *open = &side->nodes[reader->parents[depth + 1]];
        open->value_bytes = (uint32_t)side->text.size - open->value;
    } else if (reader->skips_next) {
        reader->skips_next = false;
        reader->skip_depth = is_begin ? depth : 0;
    } else {
        status = take_value(reader, depth - is_begin, token, error);
    }
    if (side->text.status == BUGPACK_ERR_LIMIT ||
        side->text.size + side->count * sizeof *side->nodes > BP_JSON_SIDE_BYTES) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT,
                       "its comparison would take over %zu MiB of memory",
                       BP_JSON_SIDE_BYTES >> 20);
    }
    return side->text.status == BUGPACK_OK ? status
                                           : bp_fail_memory(error, "compare two documents");
}

bugpack_status bp_json_side_read(bp_json_side *side, const bp_giver *text,
                                 const bp_json_diff_rule *rule, uint32_t *ret_root,
                                 bugpack_error *error) {
    document_reader reader = {.rule = rule, .side = side};
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = BUGPACK_OK;
    if (side->count == 0) {
        status = add_node(&reader, 0, (bp_json_node){0}, &detail); /* index 0 is none */
    }
    reader.lasts[0] = 0;
    uint32_t root = (uint32_t)side->count;
    bp_json_parts_init(&reader.parts, take_token, &reader);
    if (status == BUGPACK_OK) {
        status = bp_json_parts_read(&reader.parts, text, &detail);
    }
    bp_json_parts_release(&reader.parts);
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "%s: %s", rule->entry, detail.message);
    }
    *ret_root = root;
    return BUGPACK_OK;
}

/* --- the list ----------------------------------------------------------------------------- */

void bp_json_changes_release(bp_json_changes *list) {
    free(list->rows);
    bp_buffer_release(&list->paths);
    *list = (bp_json_changes){0};
}

const char *bp_json_change_kind(const bp_json_change *change) {
    const char *bracket = strrchr(change->path, ']');
    return bracket != NULL ? bracket + 1 : change->path;
}

/* Digits after the point. */
static unsigned count_decimals(const bp_json_token *value) {
    const char *point = memchr(value->text, '.', value->byte_count);
    return point == NULL ? 0 : (unsigned)(value->text + value->byte_count - point - 1);
}

static int64_t subtract(uint64_t after, uint64_t before) {
    if (after >= before) {
        return after - before > INT64_MAX ? INT64_MAX : (int64_t)(after - before);
    }
    return before - after > INT64_MAX ? INT64_MIN : -(int64_t)(before - after);
}

static double size_of(const bp_json_change *row) {
    double size = row->delta < 0 ? -(double)row->delta : (double)row->delta;
    for (unsigned i = 0; i < row->decimals; i++) {
        size /= 10;
    }
    return size;
}

static int compare_rows(const void *one, const void *other) {
    const bp_json_change *left = one, *right = other;
    int order = strcmp(bp_json_change_kind(left), bp_json_change_kind(right));
    double sizes[2] = {size_of(left), size_of(right)};
    if (order == 0 && (sizes[0] < sizes[1] || sizes[0] > sizes[1])) {
        return sizes[0] > sizes[1] ? -1 : 1;
    }
    return order != 0 ? order : strcmp(left->path, right->path);
}

/* --- the comparison ----------------------------------------------------------------------- */

typedef struct comparison {
    const bp_json_side *before, *after;
    const char *entry;
    bp_buffer path;
    bp_json_changes *list;
    bool lacks_memory;
} comparison;

static bp_json_token value_of(const bp_json_side *side, uint32_t node) {
    const bp_json_node *of = &side->nodes[node];
    return (bp_json_token){BP_JSON_SCALAR, side->text.data + of->value, of->value_bytes};
}

/* A node that is 0 is not there. */
static void add_row(comparison *both, uint32_t before, uint32_t after) {
    bp_json_changes *list = both->list;
    const bp_json_token none = {.text = ""};
    bp_json_change row = {.entry = both->entry,
                          .before = before != 0 ? value_of(both->before, before) : none,
                          .after = after != 0 ? value_of(both->after, after) : none};
    if (list->count == BP_JSON_CHANGE_MAX ||
        list->paths.size + both->path.size >= list->paths.max_size) {
        list->is_cut = true;
        return;
    }
    if (!bp_array_reserve(&list->rows, list->count, &list->capacity)) {
        both->lacks_memory = true;
        return;
    }
    row.path = list->paths.data + list->paths.size;
    (void)bp_buffer_append(&list->paths, bp_buffer_text(&both->path), both->path.size);
    (void)bp_buffer_append_char(&list->paths, '\0');
    unsigned decimals[] = {count_decimals(&row.before), count_decimals(&row.after)};
    row.decimals = decimals[0] > decimals[1] ? decimals[0] : decimals[1];
    row.is_number = row.decimals <= 9 &&
                    bp_json_token_fixed(&row.before, row.decimals, &row.numbers[0]) &&
                    bp_json_token_fixed(&row.after, row.decimals, &row.numbers[1]);
    row.delta = row.is_number ? subtract(row.numbers[1], row.numbers[0]) : 0;
    list->rows[list->count++] = row;
}

/* True if two strings are equal except for the hashes of secrets (redact/tag.h), which are other
 * ones in each report. */
static bool is_redacted_alike(const bp_json_token *before, const bp_json_token *after) {
    static const char prefix[] = "REDACTED-";
    static const char word_bytes[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    enum { hash_bytes = 12, prefix_bytes = sizeof prefix - 1 };
    const char *one = before->text, *other = after->text, *end = one + before->byte_count;
    if (before->byte_count != after->byte_count || *one != '"') {
        return false;
    }
    while (one < end && *one == *other) {
        if (strncmp(one, prefix, prefix_bytes) == 0) { /* a quote is at the end, at the latest */
            size_t word = strspn(one, word_bytes);
            size_t kept = word > prefix_bytes + hash_bytes ? word - hash_bytes : word;
            if (strspn(other, word_bytes) != word || strncmp(one, other, kept) != 0) {
                return false;
            }
            one += word;
            other += word;
        } else {
            one++;
            other++;
        }
    }
    return one == end;
}

/* A child with what it is matched by: its key, the tokens that name it, or its number. */
typedef struct label {
    bp_json_token name, tid; /* of no bytes where there is none */
    uint32_t node, number;
} label;

static bp_json_token key_of(const bp_json_side *side, uint32_t node) {
    const bp_json_node *of = &side->nodes[node];
    return (bp_json_token){BP_JSON_KEY, side->text.data + of->key, of->key_bytes};
}

/* A member that is neither object nor array; of no bytes where there is none. */
static bp_json_token find_scalar(const bp_json_side *side, uint32_t parent, const char *key) {
    for (uint32_t i = side->nodes[parent].first; i != 0; i = side->nodes[i].next) {
        bp_json_token name = key_of(side, i), value = value_of(side, i);
        if (is_text(&name, key, strlen(key)) && strchr("{[", value.text[0]) == NULL) {
            return unquote(value);
        }
    }
    return (bp_json_token){.text = ""};
}

static label name_element(const bp_json_side *side, uint32_t node) {
    static const char *const keys[] = {"path", "name", "key", "id"};
    label made = {.name = {.text = ""}, .tid = find_scalar(side, node, "tid"), .node = node};
    for (size_t i = 0; made.name.byte_count == 0 && i < sizeof keys / sizeof keys[0]; i++) {
        made.name = find_scalar(side, node, keys[i]);
    }
    return made;
}

static bool are_named(const bp_json_side *side, uint32_t array) {
    uint32_t i = side->nodes[array].first;
    bool is_named = true;
    for (; i != 0 && is_named; i = side->nodes[i].next) {
        label element = name_element(side, i);
        is_named = element.name.byte_count > 0 || element.tid.byte_count > 0;
    }
    return is_named;
}

static int compare_tokens(const bp_json_token *one, const bp_json_token *other) {
    size_t shorter = one->byte_count < other->byte_count ? one->byte_count : other->byte_count;
    int order = shorter > 0 ? memcmp(one->text, other->text, shorter) : 0;
    int by_length = (one->byte_count > other->byte_count) - (one->byte_count < other->byte_count);
    return order != 0 ? order : by_length;
}

static int compare_numbers(const label *one, const label *other) {
    return (one->number > other->number) - (one->number < other->number);
}

static int compare_names(const label *one, const label *other) {
    int order = compare_tokens(&one->name, &other->name);
    return order != 0 ? order : compare_tokens(&one->tid, &other->tid);
}

/* Labels of one name, as of the threads of a pool, stay in their order. */
static int sort_labels(const void *one, const void *other) {
    int order = compare_names(one, other);
    return order != 0 ? order : compare_numbers(one, other);
}

/* The children of a value with their labels, sorted. NULL for none, and without memory. */
static label *label_children(comparison *both, const bp_json_side *side, uint32_t parent,
                             bool is_named, size_t *ret_count) {
    size_t count = 0;
    bool is_object = value_of(side, parent).text[0] == '{';
    for (uint32_t i = side->nodes[parent].first; i != 0; i = side->nodes[i].next) {
        count++;
    }
    label *children = count == 0 ? NULL : malloc(count * sizeof *children);
    both->lacks_memory |= count > 0 && children == NULL;
    *ret_count = 0;
    for (uint32_t i = side->nodes[parent].first; children != NULL && i != 0;
         i = side->nodes[i].next) {
        label *child = &children[*ret_count];
        *child = is_object ? (label){.name = key_of(side, i), .tid = {.text = ""}, .node = i}
                           : name_element(side, i);
        child->number = (uint32_t)(*ret_count)++;
    }
    if (count > 1 && children != NULL && is_named) {
        qsort(children, count, sizeof *children, sort_labels);
    }
    return children;
}

/* Appends what a string without its quotes, or a number, stands for. */
static void add_text(bp_buffer *path, const bp_json_token *text) {
    char *at = text->byte_count > 0 ? bp_buffer_reserve(path, text->byte_count) : NULL;
    if (at != NULL) {
        const bp_json_token quoted = {.text = text->text - 1, .byte_count = text->byte_count + 2};
        bp_buffer_commit(path, strnlen(at, bp_json_token_decode(&quoted, at)));
    }
}

static void add_label(bp_buffer *path, const label *child, bool is_object, bool is_named) {
    const bp_json_token *name = &child->name, *tid = &child->tid;
    if (is_object) {
        (void)bp_buffer_append_text(path, name->byte_count > 0 && path->size > 0 ? "." : "");
        add_text(path, name);
    } else if (is_named) {
        (void)bp_buffer_append_char(path, '[');
        add_text(path, name);
        (void)bp_buffer_append_text(path, name->byte_count > 0 && tid->byte_count > 0 ? " " : "");
        add_text(path, tid);
        (void)bp_buffer_append_char(path, ']');
    } else {
        (void)bp_buffer_printf(path, "[%u]", (unsigned)child->number);
    }
}

static void compare_nodes(comparison *both, uint32_t before, uint32_t after);

/* Compares what two children, or one, have below a label. */
static void compare_children(comparison *both, const label *before, const label *after,
                             bool is_object, bool is_named) {
    size_t path_bytes = both->path.size;
    add_label(&both->path, before != NULL ? before : after, is_object, is_named);
    if (both->path.status == BUGPACK_ERR_LIMIT) { /* so deep below such long names */
        both->list->is_cut = true;
    } else if (before == NULL || after == NULL) {
        add_row(both, before != NULL ? before->node : 0, after != NULL ? after->node : 0);
    } else {
        compare_nodes(both, before->node, after->node);
    }
    both->lacks_memory |= both->path.status == BUGPACK_ERR_NO_MEMORY;
    both->path.size = path_bytes;
    both->path.status = BUGPACK_OK;
}

static void compare_nodes(comparison *both, uint32_t before, uint32_t after) {
    bp_json_token one = value_of(both->before, before), other = value_of(both->after, after);
    char begin = one.text[0];
    if (is_text(&one, other.text, other.byte_count)) {
        return;
    }
    if ((begin != '{' && begin != '[') || begin != other.text[0]) {
        if (!is_redacted_alike(&one, &other)) {
            add_row(both, before, after);
        }
        return;
    }
    bool is_object = begin == '{';
    bool is_named = is_object || (are_named(both->before, before) && are_named(both->after, after));
    size_t counts[2], i = 0, j = 0;
    label *olds = label_children(both, both->before, before, is_named, &counts[0]);
    label *news = label_children(both, both->after, after, is_named, &counts[1]);
    while (!both->lacks_memory && (i < counts[0] || j < counts[1])) {
        int order = i == counts[0] ? 1 : -1;
        if (i < counts[0] && j < counts[1]) {
            order =
                is_named ? compare_names(&olds[i], &news[j]) : compare_numbers(&olds[i], &news[j]);
        }
        compare_children(both, order <= 0 ? &olds[i] : NULL, order >= 0 ? &news[j] : NULL,
                         is_object, is_named);
        i += order <= 0;
        j += order >= 0;
    }
    free(olds);
    free(news);
}

bugpack_status bp_json_diff(const bp_json_side *before, uint32_t before_root,
                            const bp_json_side *after, uint32_t after_root, const char *entry,
                            bp_json_changes *list, bugpack_error *error) {
    comparison both = {.before = before, .after = after, .entry = entry, .list = list};
    size_t first = list->count;
    if (list->paths.data == NULL) {
        bp_buffer_init(&list->paths, paths_max_bytes);
        /* At once, so that the rows may point into it. */
        both.lacks_memory = bp_buffer_reserve(&list->paths, paths_max_bytes) == NULL;
    }
    bp_buffer_init(&both.path, path_max_bytes);
    if (!both.lacks_memory) {
        compare_nodes(&both, before_root, after_root);
    }
    bp_buffer_release(&both.path);
    if (both.lacks_memory) {
        return bp_fail_memory(error, "compare two documents");
    }
    if (list->count > first) {
        qsort(list->rows + first, list->count - first, sizeof *list->rows, compare_rows);
    }
    return BUGPACK_OK;
}
