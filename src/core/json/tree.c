#include "json/tree.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/status.h"
#include "json/json.h"
#include "json/parts.h"

enum { element_max_bytes = 8 << 20 };

/* What cJSON takes for a token: the allocator adds 8 bytes and rounds up to 16. */
static size_t memory_of(const bp_json_token *token) {
    bool is_text = token->kind == BP_JSON_KEY || token->text[0] == '"';
    bool is_value = token->kind == BP_JSON_BEGIN || token->kind == BP_JSON_SCALAR;
    size_t text_bytes = token->byte_count < 26 ? 32 : (token->byte_count + 22) & ~(size_t)15;
    return (is_value ? sizeof(cJSON) + 16 : 0) + (is_text ? text_bytes : 0);
}

/* A tree that grows token by token, so that no text is read twice. */
typedef struct tree_builder {
    bp_json_tree *root, *key; /* the key, a text, of the value that comes next */
    bp_json_tree *open[BP_JSON_DEPTH_MAX];
    size_t depth, memory_bytes, max_bytes;
} tree_builder;

static void release_builder(tree_builder *builder) {
    cJSON_Delete(builder->root);
    cJSON_Delete(builder->key);
    builder->root = builder->key = NULL;
}

/* cJSON reads each key, string, number and word by itself. What the scanner accepts cJSON accepts
 * as well, so that it can only run out of memory. */
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
    if (token->kind == BP_JSON_BEGIN) {
        item = token->text[0] == '{' ? cJSON_CreateObject() : cJSON_CreateArray();
    } else {
        item = cJSON_ParseWithLength(token->text, token->byte_count);
    }
    if (item == NULL) {
        return bp_fail_memory(error, "read a JSON text");
    }
    if (token->kind == BP_JSON_KEY) {
        builder->key = item;
        return BUGPACK_OK;
    }
    if (builder->key != NULL) {
        item->string = builder->key->valuestring;
        builder->key->valuestring = NULL;
        cJSON_Delete(builder->key);
        builder->key = NULL;
    }
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

bp_json_tree *bp_json_tree_take(bp_json_tree *object) {
    bp_json_tree *taken = cJSON_CreateObject();
    if (taken != NULL) {
        taken->child = object->child;
        object->child = NULL;
    }
    return taken;
}

size_t bp_json_tree_memory(const bp_json_tree *tree) {
    size_t memory_bytes = 0;
    for (; tree != NULL; tree = tree->next) {
        memory_bytes += sizeof *tree + 16 + (tree->string != NULL ? strlen(tree->string) + 24 : 0) +
                        (tree->valuestring != NULL ? strlen(tree->valuestring) + 24 : 0) +
                        bp_json_tree_memory(tree->child);
    }
    return memory_bytes;
}

void bp_json_tree_free(bp_json_tree *tree) {
    cJSON_Delete(tree);
}

const bp_json_tree *bp_json_tree_array(const bp_json_tree *object, const char *key) {
    const bp_json_tree *member = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsArray(member) ? member : NULL;
}

const char *bp_json_tree_text(const bp_json_tree *object, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

const char *bp_json_tree_text_or(const bp_json_tree *object, const char *key,
                                 const char *otherwise) {
    const char *text = bp_json_tree_text(object, key);
    return text != NULL ? text : otherwise;
}

const bp_json_tree *bp_json_tree_object(const bp_json_tree *object, const char *key) {
    const bp_json_tree *member = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsObject(member) ? member : NULL;
}

const char *bp_json_tree_key(const bp_json_tree *member) {
    return member->string != NULL ? member->string : "";
}

const char *bp_json_tree_value(const bp_json_tree *member) {
    return cJSON_IsString(member) ? member->valuestring : "";
}

/* 2^53, to which 2^53 + 1 is rounded. */
static const double exact_max = 9007199254740992.0;

bool bp_json_tree_uint(const bp_json_tree *object, const char *key, uint64_t *ret_value) {
    return bp_json_tree_value_uint(cJSON_GetObjectItemCaseSensitive(object, key), ret_value);
}

bool bp_json_tree_value_uint(const bp_json_tree *member, uint64_t *ret_value) {
    double value = cJSON_IsNumber(member) ? member->valuedouble : -1;
    if (!(value >= 0 && value < exact_max) || (double)(uint64_t)value != value) {
        return false;
    }
    *ret_value = (uint64_t)value;
    return true;
}

bool bp_json_tree_number(const bp_json_tree *object, const char *key, double *ret_value) {
    const bp_json_tree *member = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsNumber(member) ||
        !(member->valuedouble > -exact_max && member->valuedouble < exact_max)) {
        return false;
    }
    *ret_value = member->valuedouble;
    return true;
}

const bp_json_tree *bp_json_tree_member(const bp_json_tree *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

const bp_json_tree *bp_json_tree_at(const bp_json_tree *object, const char *path) {
    char key[48];
    for (;; path++) {
        size_t length = strcspn(path, ".");
        if (object == NULL || length >= sizeof key) {
            return NULL;
        }
        memcpy(key, path, length);
        key[length] = '\0';
        object = bp_json_tree_member(cJSON_IsArray(object) ? object->child : object, key);
        path += length;
        if (*path == '\0') {
            return object;
        }
    }
}

const char *bp_json_tree_value_text(const bp_json_tree *member) {
    return cJSON_GetStringValue(member);
}

bool bp_json_tree_value_number(const bp_json_tree *member, double *ret_value) {
    if (!cJSON_IsNumber(member) ||
        !(member->valuedouble > -exact_max && member->valuedouble < exact_max)) {
        return false;
    }
    *ret_value = member->valuedouble;
    return true;
}

bool bp_json_tree_value_is_false(const bp_json_tree *member) {
    return cJSON_IsFalse(member);
}

bool bp_json_tree_is_true(const bp_json_tree *object, const char *key) {
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

const bp_json_tree *bp_json_tree_first(const bp_json_tree *array) {
    return array != NULL ? array->child : NULL;
}

const bp_json_tree *bp_json_tree_next(const bp_json_tree *element) {
    return element->next;
}

const bp_json_tree *bp_json_tree_rows(const bp_json_tree *object, const char *key) {
    return bp_json_tree_first(bp_json_tree_array(object, key));
}

static bool set(bp_json_tree *object, const char *key, bp_json_tree *value) {
    if (value == NULL) {
        return false;
    }
    bool is_set = cJSON_HasObjectItem(object, key)
                      ? cJSON_ReplaceItemInObjectCaseSensitive(object, key, value)
                      : cJSON_AddItemToObject(object, key, value);
    if (!is_set) {
        cJSON_Delete(value);
    }
    return is_set;
}

bool bp_json_tree_set_uint(bp_json_tree *object, const char *key, uint64_t value) {
    return set(object, key, cJSON_CreateNumber((double)value));
}

bool bp_json_tree_set_bool(bp_json_tree *object, const char *key, bool value) {
    return set(object, key, cJSON_CreateBool(value));
}

bool bp_json_tree_set_text(bp_json_tree *object, const char *key, const char *value) {
    return set(object, key, cJSON_CreateString(value));
}

void bp_json_tree_remove(bp_json_tree *object, const char *key) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
}

bp_json_tree *bp_json_tree_append(bp_json_tree *object, const char *key) {
    bp_json_tree *array = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsArray(array) &&
        (!set(object, key, cJSON_CreateArray()) ||
         (array = cJSON_GetObjectItemCaseSensitive(object, key)) == NULL)) {
        return NULL;
    }
    bp_json_tree *element = cJSON_CreateObject();
    if (element != NULL && !cJSON_AddItemToArray(array, element)) {
        cJSON_Delete(element);
        return NULL;
    }
    return element;
}

bugpack_status bp_json_tree_print(const bp_json_tree *tree, bp_buffer *out, bugpack_error *error) {
    char *text = cJSON_PrintUnformatted(tree);
    if (text == NULL) {
        return bp_fail_memory(error, "print a JSON text");
    }
    bugpack_status status = bp_json_reformat(text, strlen(text), out, error);
    cJSON_free(text);
    return status;
}

/* --- making ------------------------------------------------------------------------------- */

void bp_json_maker_begin(bp_json_maker *maker) {
    *maker = (bp_json_maker){.root = cJSON_CreateObject()};
    maker->open[0] = maker->root;
    maker->lacks_memory = maker->root == NULL;
}

static bool make(bp_json_maker *maker, const char *key, bp_json_tree *value) {
    bp_json_tree *parent = maker->open[maker->depth];
    bool is_added = !maker->lacks_memory && value != NULL &&
                    (key == NULL ? cJSON_AddItemToArray(parent, value)
                                 : cJSON_AddItemToObjectCS(parent, key, value));
    if (!is_added) {
        cJSON_Delete(value);
        maker->lacks_memory = true;
    }
    return is_added;
}

static void open_value(bp_json_maker *maker, const char *key, bp_json_tree *value) {
    if (make(maker, key, value)) {
        maker->open[++maker->depth] = value;
    }
}

void bp_json_make_object(bp_json_maker *maker, const char *key) {
    open_value(maker, key, cJSON_CreateObject());
}

void bp_json_make_array(bp_json_maker *maker, const char *key) {
    open_value(maker, key, cJSON_CreateArray());
}

void bp_json_make_end(bp_json_maker *maker) {
    maker->depth -= maker->lacks_memory ? 0 : 1;
}

void bp_json_make_text(bp_json_maker *maker, const char *key, const char *text) {
    if (text != NULL) {
        (void)make(maker, key, cJSON_CreateString(text));
    }
}

/* cJSON keeps an integer beside the double, which it does not look at when it compares or prints:
 * here it is the number of decimals. */
void bp_json_make_number(bp_json_maker *maker, const char *key, bool is_known, double value,
                         unsigned decimals) {
    bp_json_tree *number = is_known ? cJSON_CreateNumber(value) : NULL;
    if (number != NULL) {
        number->valueint = (int)decimals;
    }
    if (is_known) {
        (void)make(maker, key, number);
    }
}

void bp_json_make_uint(bp_json_maker *maker, const char *key, bool is_known, uint64_t value) {
    bp_json_make_number(maker, key, is_known, (double)value, 0);
}

void bp_json_make_bool(bp_json_maker *maker, const char *key, bool value) {
    (void)make(maker, key, cJSON_CreateBool(value));
}

void bp_json_make_known_text(bp_json_maker *maker, const char *key, const char *text) {
    bp_json_make_text(maker, key, text != NULL && text[0] != '\0' ? text : NULL);
}

void bp_json_make_flag(bp_json_maker *maker, const char *key, bool is_set) {
    if (is_set) {
        bp_json_make_bool(maker, key, true);
    }
}

void bp_json_add_made(bp_json *json, const char *key, const bp_json_tree *made) {
    if (cJSON_IsString(made)) {
        bp_json_add_text(json, key, made->valuestring);
    } else if (cJSON_IsBool(made)) {
        bp_json_add_bool(json, key, cJSON_IsTrue(made));
    } else if (cJSON_IsNumber(made) && made->valueint == 0 && made->valuedouble >= 0) {
        bp_json_add_uint(json, key, (uint64_t)made->valuedouble);
    } else if (cJSON_IsNumber(made)) {
        bp_json_add_number(json, key, made->valuedouble, (unsigned)made->valueint);
    } else if (cJSON_IsArray(made)) {
        bp_json_array_begin(json, key);
        for (const bp_json_tree *element = made->child; element != NULL; element = element->next) {
            bp_json_add_made(json, NULL, element);
        }
        bp_json_array_end(json);
    } else if (cJSON_IsObject(made)) {
        bp_json_object_begin(json, key);
        for (const bp_json_tree *member = made->child; member != NULL; member = member->next) {
            if (member->string[0] != '_') {
                bp_json_add_made(json, member->string, member);
            }
        }
        bp_json_object_end(json);
    }
}
