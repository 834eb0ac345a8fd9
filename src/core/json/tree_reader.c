#include "json/tree_reader.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/status.h"
#include "json/parts.h"

enum { element_max_bytes = 8 << 20 };

/* The bytes that cJSON takes for a token: the allocator adds 8 and rounds up to 16. */
static size_t memory_of(const bp_json_token *token) {
    bool is_value = token->kind == BP_JSON_BEGIN || token->kind == BP_JSON_SCALAR;
    bool is_word = strchr("{}[]tfn", token->text[0]) != NULL;
    uint64_t value;
    bool has_text = !is_word && !bp_json_tree_is_small(token, &value);
    size_t text_bytes = token->byte_count < 26 ? 32 : (token->byte_count + 22) & ~(size_t)15;
    return (is_value ? sizeof(cJSON) + 16 : 0) + (has_text ? text_bytes : 0);
}

/* A tree that grows token by token, so that no text is read twice. */
typedef struct tree_builder {
    bp_json_tree *root;
    char *key; /* of the value that comes next */
    bp_json_tree *open[BP_JSON_DEPTH_MAX];
    size_t depth, memory_bytes, max_bytes;
} tree_builder;

static void release_builder(tree_builder *builder) {
    cJSON_Delete(builder->root);
    cJSON_free(builder->key);
    builder->root = NULL;
    builder->key = NULL;
}

static bugpack_status build(tree_builder *builder, const bp_json_token *token,
                            bugpack_error *error) {
    bp_json_tree *item = NULL;
    builder->memory_bytes += memory_of(token);
    if (builder->memory_bytes > builder->max_bytes) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "it would take over %zu MiB of memory",
                       builder->max_bytes >> 20);
    }
    if (token->kind == BP_JSON_END) {
        builder->depth--;
        return BUGPACK_OK;
    }
    if (token->kind == BP_JSON_KEY) {
        builder->key = bp_json_tree_copy(token);
        return builder->key != NULL ? BUGPACK_OK : bp_fail_memory(error, "read a JSON text");
    }
    if (token->kind == BP_JSON_BEGIN) {
        item = token->text[0] == '{' ? cJSON_CreateObject() : cJSON_CreateArray();
    } else {
        item = bp_json_tree_scalar(token);
    }
    if (item == NULL) {
        return bp_fail_memory(error, "read a JSON text");
    }
    item->string = builder->key;
    builder->key = NULL;
    if (builder->depth > 0) {
        (void)cJSON_AddItemToArray(builder->open[builder->depth - 1], item);
    } else {
        builder->root = item;
    }
    if (token->kind == BP_JSON_BEGIN) {
        builder->open[builder->depth++] = item;
    }
    return BUGPACK_OK;
}

bugpack_status bp_json_tree_read(const void *text, size_t byte_count, bp_json_tree **ret_tree,
                                 bugpack_error *error) {
    return bp_json_tree_read_within(text, byte_count, BP_JSON_TREE_MAX_BYTES, ret_tree, error);
}

bugpack_status bp_json_tree_read_within(const void *text, size_t byte_count, size_t max_bytes,
                                        bp_json_tree **ret_tree, bugpack_error *error) {
    tree_builder builder = {.memory_bytes = byte_count, .max_bytes = max_bytes};
    bp_json_scanner scanner;
    bp_json_token token;
    bp_json_scanner_init(&scanner, text, byte_count);
    bugpack_status status = bp_json_scanner_next(&scanner, &token, error);
    while (status == BUGPACK_OK && token.kind != BP_JSON_FINISH) {
        status = build(&builder, &token, error);
        if (status == BUGPACK_OK) {
            status = bp_json_scanner_next(&scanner, &token, error);
        }
    }
    bp_json_scanner_release(&scanner);
    if (status == BUGPACK_OK) {
        *ret_tree = builder.root;
    } else {
        release_builder(&builder);
    }
    return status;
}

/* Where in a document it is. */
typedef struct element_reader {
    bp_json_parts parts;
    const bp_json_tree_list *lists;
    const bp_json_tree_list *list; /* of the last key of the root, or NULL */
    void *context;
    bool is_in_element, has_rest;
    size_t element_count;
    tree_builder element, rest;
} element_reader;

static bool is_key(const bp_json_token *token, const char *key) {
    size_t length = strlen(key);
    return token->byte_count == length + 2 && memcmp(token->text + 1, key, length) == 0;
}

static const bp_json_tree_list *find_list(const element_reader *reader,
                                          const bp_json_token *token) {
    const bp_json_tree_list *list = reader->lists;
    while (list->key != NULL && !is_key(token, list->key)) {
        list++;
    }
    return list->key != NULL ? list : NULL;
}

static bugpack_status end_element(element_reader *reader, bugpack_error *error) {
    if (reader->element_count++ == BP_JSON_TREE_MAX_ELEMENTS) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "a list has over %zu elements",
                       BP_JSON_TREE_MAX_ELEMENTS);
    }
    bugpack_status status = reader->list->take(reader->context, reader->element.root, error);
    release_builder(&reader->element);
    return status;
}

static bugpack_status take_token(void *context, const bp_json_token *token, bugpack_error *error) {
    enum { members = 1, elements, of_element }; /* how deep they are */
    element_reader *reader = context;
    size_t depth = reader->parts.scanner.depth;
    bool is_member = token->kind == BP_JSON_BEGIN && depth == elements;
    if (token->kind == BP_JSON_KEY && depth == members) {
        reader->list = find_list(reader, token);
    } else if (is_member && reader->list != NULL &&
               (token->text[0] == '{') != reader->list->is_object) {
        reader->list = NULL;
    }
    const bp_json_tree_list *list = reader->list;
    size_t element_depth = list != NULL && list->is_object ? elements : of_element;
    if (reader->has_rest && (list == NULL || depth < elements || is_member)) {
        bugpack_status status = build(&reader->rest, token, error);
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    if (list != NULL && token->kind == BP_JSON_BEGIN && depth == element_depth) {
        reader->is_in_element = token->text[0] == '{';
        reader->element.memory_bytes = 0;
    }
    if (!reader->is_in_element) {
        return BUGPACK_OK;
    }
    bugpack_status status = build(&reader->element, token, error);
    if (status == BUGPACK_OK && token->kind == BP_JSON_END && depth == element_depth - 1) {
        reader->is_in_element = false;
        status = end_element(reader, error);
    }
    return status;
}

bugpack_status bp_json_tree_each(const bp_giver *text, const bp_json_tree_list *lists,
                                 void *context, bp_json_tree **ret_rest, bugpack_error *error) {
    element_reader reader = {.lists = lists,
                             .context = context,
                             .has_rest = ret_rest != NULL,
                             .element.max_bytes = element_max_bytes,
                             .rest.max_bytes = BP_JSON_TREE_MAX_BYTES};
    bp_json_parts_init(&reader.parts, take_token, &reader);
    bugpack_status status = bp_json_parts_read(&reader.parts, text, error);
    bp_json_parts_release(&reader.parts);
    if (status == BUGPACK_OK && ret_rest != NULL) {
        *ret_rest = reader.rest.root;
        reader.rest.root = NULL;
    }
    release_builder(&reader.element);
    release_builder(&reader.rest);
    return status;
}
