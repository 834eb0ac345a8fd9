#include "json/json.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "json/format.h"
#include "json/number.h"

struct bp_json {
    cJSON *root;
    cJSON *open[BP_JSON_DEPTH_MAX]; /* objects and arrays, outermost first; borrowed from root */
    size_t depth;
    bp_buffer scratch; /* a text on its way through bp_utf8_encode */
    bugpack_status status;
    const char *failure; /* the first one, static; NULL while there is none */
};

static const char out_of_memory[] = "out of memory";

static void fail(bp_json *json, bugpack_status status, const char *failure) {
    if (json != NULL && json->status == BUGPACK_OK) {
        json->status = status;
        json->failure = failure;
    }
}

bp_json *bp_json_new(void) {
    bp_json *json = calloc(1, sizeof *json);
    if (json == NULL) {
        return NULL;
    }
    bp_buffer_init(&json->scratch, SIZE_MAX / 4);
    json->root = cJSON_CreateObject();
    if (json->root == NULL) {
        free(json);
        return NULL;
    }
    json->open[json->depth++] = json->root;
    return json;
}

void bp_json_free(bp_json *json) {
    if (json == NULL) {
        return;
    }
    cJSON_Delete(json->root);
    bp_buffer_release(&json->scratch);
    free(json);
}

static bool is_building(const bp_json *json) {
    return json != NULL && json->status == BUGPACK_OK;
}

/* The bytes as valid UTF-8 without a NUL, which cJSON would cut at. NULL after a failure. */
static const char *clean_text(bp_json *json, const void *bytes, size_t byte_count) {
    bp_buffer_clear(&json->scratch);
    if (bp_utf8_encode(&json->scratch, bytes, byte_count) != BUGPACK_OK) {
        fail(json, BUGPACK_ERR_NO_MEMORY, out_of_memory);
        return NULL;
    }
    return bp_buffer_text(&json->scratch);
}

static bool append_to_array(bp_json *json, const char *key, cJSON *item) {
    if (key != NULL) {
        fail(json, BUGPACK_ERR_INVALID, "an element of an array has a key");
        return false;
    }
    return cJSON_AddItemToArray(json->open[json->depth - 1], item);
}

static bool append_to_object(bp_json *json, const char *key, cJSON *item) {
    if (key == NULL) {
        fail(json, BUGPACK_ERR_INVALID, "a member of an object has no key");
        return false;
    }
    const char *clean = clean_text(json, key, strlen(key));
    return clean != NULL && cJSON_AddItemToObject(json->open[json->depth - 1], clean, item);
}

/* Takes the item over. A NULL item is one that could not be allocated. */
static void append(bp_json *json, const char *key, cJSON *item) {
    bool appended = false;
    if (item != NULL && is_building(json)) {
        appended = cJSON_IsArray(json->open[json->depth - 1]) ? append_to_array(json, key, item)
                                                              : append_to_object(json, key, item);
    }
    if (!appended) {
        fail(json, BUGPACK_ERR_NO_MEMORY, out_of_memory); /* unless there is a better reason */
        cJSON_Delete(item);
    }
}

static void begin(bp_json *json, const char *key, cJSON *item) {
    append(json, key, item);
    if (!is_building(json)) {
        return;
    }
    if (json->depth == BP_JSON_DEPTH_MAX) {
        fail(json, BUGPACK_ERR_INVALID, "it is nested too deep");
        return;
    }
    json->open[json->depth++] = item;
}

static void end(bp_json *json, bool is_array) {
    if (!is_building(json)) {
        return;
    }
    if (json->depth == 1 || cJSON_IsArray(json->open[json->depth - 1]) != is_array) {
        fail(json, BUGPACK_ERR_INVALID, "what is ended is not what was begun last");
        return;
    }
    json->depth--;
}

void bp_json_object_begin(bp_json *json, const char *key) {
    if (is_building(json)) {
        begin(json, key, cJSON_CreateObject());
    }
}

void bp_json_object_end(bp_json *json) {
    end(json, false);
}

void bp_json_array_begin(bp_json *json, const char *key) {
    if (is_building(json)) {
        begin(json, key, cJSON_CreateArray());
    }
}

void bp_json_array_end(bp_json *json) {
    end(json, true);
}

void bp_json_add_text(bp_json *json, const char *key, const char *text) {
    bp_json_add_bytes(json, key, text, text != NULL ? strlen(text) : 0);
}

void bp_json_add_bytes(bp_json *json, const char *key, const void *bytes, size_t byte_count) {
    if (!is_building(json) || bytes == NULL) {
        return;
    }
    const char *clean = clean_text(json, bytes, byte_count);
    if (clean != NULL) {
        append(json, key, cJSON_CreateString(clean));
    }
}

/* cJSON's own numbers are doubles; digits that are handed over as they are stay exact. */
static void append_digits(bp_json *json, const char *key, const char *digits) {
    append(json, key, cJSON_CreateRaw(digits));
}

void bp_json_add_uint(bp_json *json, const char *key, uint64_t value) {
    if (is_building(json)) {
        char digits[24];
        (void)snprintf(digits, sizeof digits, "%" PRIu64, value);
        append_digits(json, key, digits);
    }
}

void bp_json_add_int(bp_json *json, const char *key, int64_t value) {
    if (is_building(json)) {
        char digits[24];
        (void)snprintf(digits, sizeof digits, "%" PRId64, value);
        append_digits(json, key, digits);
    }
}

void bp_json_add_bool(bp_json *json, const char *key, bool value) {
    if (is_building(json)) {
        append(json, key, cJSON_CreateBool(value));
    }
}

void bp_json_add_null(bp_json *json, const char *key) {
    if (is_building(json)) {
        append(json, key, cJSON_CreateNull());
    }
}

void bp_json_add_number(bp_json *json, const char *key, double value, unsigned decimals) {
    if (!is_building(json)) {
        return;
    }
    if (!isfinite(value) || decimals > 9) {
        fail(json, BUGPACK_ERR_INVALID, "a number is not finite, or has too many decimals");
        return;
    }
    char digits[BP_JSON_NUMBER_BYTES];
    if (!bp_json_write_number(value, decimals, digits)) {
        fail(json, BUGPACK_ERR_NO_MEMORY, out_of_memory);
        return;
    }
    append_digits(json, key, digits);
}

static bugpack_status print(const bp_json *json, bp_json_layout layout, bp_buffer *out,
                            bugpack_error *error) {
    if (json == NULL) {
        return bp_fail_memory(error, "build a JSON document");
    }
    if (json->status != BUGPACK_OK) {
        return bp_fail(error, json->status, "cannot build a JSON document: %s", json->failure);
    }
    if (json->depth != 1) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "cannot build a JSON document: an object or array was not ended");
    }
    char *text = cJSON_PrintUnformatted(json->root);
    if (text == NULL) {
        return bp_fail_memory(error, "print a JSON document");
    }
    /* What the checker refuses here is a repeated key: a mistake of ours, not of a text's. */
    bugpack_status status = bp_json_format(text, strlen(text), layout, out, error);
    if (status == BUGPACK_ERR_CORRUPT) {
        status = bp_fail(error, BUGPACK_ERR_INVALID,
                         "cannot build a JSON document: a key is twice in one object");
    }
    cJSON_free(text); /* by cJSON's hooks, which a host may have set */
    return status;
}

bugpack_status bp_json_print(const bp_json *json, bp_buffer *out, bugpack_error *error) {
    return print(json, BP_JSON_INDENTED, out, error);
}

bugpack_status bp_json_print_line(const bp_json *json, bp_buffer *out, bugpack_error *error) {
    return print(json, BP_JSON_ONE_LINE, out, error);
}

bugpack_status bp_json_finish(bp_json *json, bp_buffer *out, bugpack_error *error) {
    bugpack_status status = bp_json_print(json, out, error);
    bp_json_free(json);
    return status;
}
