#include "json/tree.h"

#include <cjson/cJSON.h>
#include <string.h>

char *bp_json_tree_copy(const bp_json_token *token) {
    char *copy = cJSON_malloc(token->byte_count + 1);
    size_t length = token->byte_count;
    if (copy != NULL && token->text[0] == '"') {
        length = bp_json_token_decode(token, copy);
    } else if (copy != NULL) {
        memcpy(copy, token->text, length);
    }
    if (copy != NULL) {
        copy[length] = '\0';
    }
    return copy;
}

bool bp_json_tree_is_small(const bp_json_token *number, uint64_t *ret_value) {
    enum { exact_digits = 15 };
    return number->text[0] <= '9' && number->text[0] >= '0' && number->byte_count <= exact_digits &&
           bp_json_token_uint(number, ret_value);
}

bp_json_tree *bp_json_tree_scalar(const bp_json_token *token) {
    uint64_t value;
    char first = token->text[0];
    if (first == 't' || first == 'f') {
        return cJSON_CreateBool(first == 't');
    }
    if (first == 'n') {
        return cJSON_CreateNull();
    }
    if (bp_json_tree_is_small(token, &value)) {
        return cJSON_CreateNumber((double)value);
    }
    bp_json_tree *scalar =
        first == '"' ? cJSON_CreateNull() : cJSON_ParseWithLength(token->text, token->byte_count);
    if (scalar != NULL && (scalar->valuestring = bp_json_tree_copy(token)) == NULL) {
        cJSON_Delete(scalar);
        return NULL;
    }
    if (scalar != NULL && first == '"') {
        scalar->type = cJSON_String;
    }
    return scalar;
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

/* 2^53, to which 2^53 + 1 is rounded. */
static const double exact_max = 9007199254740992.0;

const bp_json_tree *bp_json_tree_member(const bp_json_tree *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

const bp_json_tree *bp_json_tree_array(const bp_json_tree *object, const char *key) {
    const bp_json_tree *member = bp_json_tree_member(object, key);
    return cJSON_IsArray(member) ? member : NULL;
}

const bp_json_tree *bp_json_tree_object(const bp_json_tree *object, const char *key) {
    const bp_json_tree *member = bp_json_tree_member(object, key);
    return cJSON_IsObject(member) ? member : NULL;
}

const char *bp_json_tree_text(const bp_json_tree *object, const char *key) {
    return cJSON_GetStringValue(bp_json_tree_member(object, key));
}

const char *bp_json_tree_text_or(const bp_json_tree *object, const char *key,
                                 const char *otherwise) {
    const char *text = bp_json_tree_text(object, key);
    return text != NULL ? text : otherwise;
}

const char *bp_json_tree_key(const bp_json_tree *member) {
    return member->string != NULL ? member->string : "";
}

const char *bp_json_tree_value(const bp_json_tree *member) {
    return cJSON_IsString(member) ? member->valuestring : "";
}

uint64_t bp_json_tree_uint_or(const bp_json_tree *object, const char *key, uint64_t otherwise) {
    (void)bp_json_tree_uint(object, key, &otherwise);
    return otherwise;
}

bool bp_json_tree_number(const bp_json_tree *object, const char *key, double *ret_value) {
    return bp_json_tree_value_number(bp_json_tree_member(object, key), ret_value);
}

bool bp_json_tree_uint(const bp_json_tree *object, const char *key, uint64_t *ret_value) {
    return bp_json_tree_value_uint(bp_json_tree_member(object, key), ret_value);
}

bool bp_json_tree_value_uint(const bp_json_tree *member, uint64_t *ret_value) {
    double value;
    if (!bp_json_tree_value_number(member, &value) || value < 0 ||
        (double)(uint64_t)value != value) {
        return false;
    }
    *ret_value = (uint64_t)value;
    return true;
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
    return cJSON_IsTrue(bp_json_tree_member(object, key));
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
    bool is_set = bp_json_tree_member(object, key) != NULL
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

/* cJSON_InsertItemInArray of 1.7.17, and of Debian 12, inserts at the front alone. The first
 * element has the last one in `prev`. */
static void link_before(bp_json_tree *array, bp_json_tree *element, bp_json_tree *item) {
    item->next = element;
    item->prev = element->prev;
    if (array->child == element) {
        array->child = item;
    } else {
        element->prev->next = item;
    }
    element->prev = item;
}

bp_json_tree *bp_json_tree_insert(bp_json_tree *array, bp_json_tree *element) {
    bp_json_tree *object = cJSON_CreateObject();
    if (object != NULL) {
        link_before(array, element, object);
    }
    return object;
}

void bp_json_tree_settle(bp_json_tree *array, bp_json_tree_order *is_before) {
    bp_json_tree *last = array->child->prev, *element = array->child;
    while (element != last && !is_before(last, element)) {
        element = element->next;
    }
    if (element != last) {
        link_before(array, element, cJSON_DetachItemViaPointer(array, last));
    }
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

static void add_members(bp_json *json, const bp_json_tree *object) {
    BP_JSON_EACH (member, object->child) {
        bp_json_add_tree(json, member->string, member);
    }
}

void bp_json_add_tree(bp_json *json, const char *key, const bp_json_tree *tree) {
    if (cJSON_IsString(tree)) {
        bp_json_add_text(json, key, tree->valuestring);
    } else if (cJSON_IsBool(tree)) {
        bp_json_add_bool(json, key, cJSON_IsTrue(tree));
    } else if (cJSON_IsNumber(tree) && tree->valuestring != NULL) { /* as it was read */
        bp_json_add_raw(json, key, tree->valuestring, strlen(tree->valuestring));
    } else if (cJSON_IsNumber(tree)) {
        bp_json_add_uint(json, key, (uint64_t)tree->valuedouble);
    } else if (cJSON_IsNull(tree)) {
        bp_json_add_null(json, key);
    } else if (cJSON_IsArray(tree)) {
        bp_json_array_begin(json, key);
        BP_JSON_EACH (element, tree->child) {
            bp_json_add_tree(json, NULL, element);
        }
        bp_json_array_end(json);
    } else if (cJSON_IsObject(tree)) {
        bp_json_object_begin(json, key);
        add_members(json, tree);
        bp_json_object_end(json);
    }
}

bugpack_status bp_json_tree_print(const bp_json_tree *object, bp_buffer *out,
                                  bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_quote(&json, true);
    add_members(&json, object);
    return bp_json_finish(&json, error);
}
