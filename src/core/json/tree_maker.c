#include "json/tree_maker.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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
    bp_json_tree *array = cJSON_GetObjectItemCaseSensitive(maker->open[maker->depth], key);
    if (array != NULL && !maker->lacks_memory) {
        maker->open[++maker->depth] = array;
    } else {
        open_value(maker, key, cJSON_CreateArray());
    }
}

void bp_json_make_end(bp_json_maker *maker) {
    maker->depth -= maker->lacks_memory ? 0 : 1;
}

uint64_t bp_json_make_settled(bp_json_maker *maker, size_t max_count,
                              bp_json_tree_order *is_before) {
    bp_json_tree *array = maker->open[maker->depth];
    if (maker->lacks_memory) {
        return 0;
    }
    bp_json_tree_settle(array, is_before);
    if ((size_t)cJSON_GetArraySize(array) <= max_count) {
        return 0;
    }
    uint64_t count = bp_json_tree_uint_or(array->child->prev, "count", 1);
    cJSON_Delete(cJSON_DetachItemViaPointer(array, array->child->prev));
    return count;
}

void bp_json_make_again(bp_json_maker *maker, const bp_json_tree *object) {
    (void)make(maker, NULL,
               maker->lacks_memory ? NULL : cJSON_CreateObjectReference(object->child));
}

void bp_json_make_text(bp_json_maker *maker, const char *key, const char *text) {
    if (text != NULL) {
        (void)make(maker, key, cJSON_CreateString(text));
    }
}

void bp_json_make_number(bp_json_maker *maker, const char *key, bool is_known, double value,
                         unsigned decimals) {
    bp_buffer text;
    if (!is_known || !isfinite(value)) {
        return;
    }
    bp_buffer_init(&text, 512); /* the largest double has 309 digits */
    bp_json_tree *number =
        bp_json_append_number(&text, value, decimals) == BUGPACK_OK
            ? bp_json_tree_scalar(&(bp_json_token){BP_JSON_SCALAR, text.data, text.size})
            : NULL;
    if (number != NULL) {
        number->valuedouble = value; /* readers of the tree round it once */
    }
    (void)make(maker, key, number);
    bp_buffer_release(&text);
}

void bp_json_make_uint(bp_json_maker *maker, const char *key, bool is_known, uint64_t value) {
    char text[24];
    int length = snprintf(text, sizeof text, "%" PRIu64, value);
    if (is_known) {
        (void)make(maker, key,
                   bp_json_tree_scalar(&(bp_json_token){BP_JSON_SCALAR, text, (size_t)length}));
    }
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
