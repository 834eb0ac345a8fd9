#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/literal.h"
#include "json/pick.h"
#include "json/schema_private.h"

enum { number_bytes_max = 64 };

const char *bp_schema_decode(bp_schema_values *values, const bp_json_token *token,
                             size_t *ret_bytes) {
    *ret_bytes = token->byte_count - 2;
    if (memchr(token->text, '\\', token->byte_count) == NULL) {
        return token->text + 1;
    }
    const unsigned char *at = (const unsigned char *)token->text + 1;
    int32_t character;
    bp_buffer_clear(&values->decoded);
    while ((character = bp_json_next_character(&at)) >= 0) {
        char bytes[BP_JSON_CHARACTER_BYTES];
        (void)bp_buffer_append(&values->decoded, bytes, bp_json_put_character(character, bytes));
    }
    values->is_out_of_memory |= values->decoded.status != BUGPACK_OK;
    *ret_bytes = values->decoded.size;
    return bp_buffer_text(&values->decoded);
}

/* False where it has more digits than a number that anybody writes. */
static bool read_number(const bp_json_token *token, double *ret_value) {
    uint64_t whole;
    char text[number_bytes_max];
    if (bp_json_token_uint(token, &whole)) {
        *ret_value = (double)whole;
        return true;
    }
    if (token->byte_count >= sizeof text) {
        return false;
    }
    memcpy(text, token->text, token->byte_count);
    text[token->byte_count] = '\0';
    *ret_value = strtod(text, NULL);
    return true;
}

/* A double over 2^53 has no fraction. */
static bool is_integer(double value) {
    static const double exact = 9007199254740992.0;
    double rest = value > -exact && value < exact ? value - (double)(int64_t)value : 0;
    return !(rest < 0 || rest > 0);
}

static unsigned type_of(const bp_json_token *token) {
    switch (token->text[0]) {
    case '{':
        return BP_SCHEMA_OBJECT;
    case '[':
        return BP_SCHEMA_ARRAY;
    case '"':
        return BP_SCHEMA_STRING;
    case 't':
    case 'f':
        return BP_SCHEMA_BOOLEAN;
    case 'n':
        return BP_SCHEMA_NULL;
    default:
        break;
    }
    for (size_t i = 0; i < token->byte_count; i++) {
        if (token->text[i] == '.' || token->text[i] == 'e' || token->text[i] == 'E') {
            double value = 0.5;
            bool is_whole = read_number(token, &value) && is_integer(value);
            return is_whole ? BP_SCHEMA_INTEGER | BP_SCHEMA_NUMBER : BP_SCHEMA_NUMBER;
        }
    }
    return BP_SCHEMA_INTEGER | BP_SCHEMA_NUMBER;
}

static bool is_constant(bp_schema_values *values, const cJSON *constant,
                        const bp_json_token *token) {
    size_t byte_count;
    if (token->text[0] == '"') {
        const char *text = bp_schema_decode(values, token, &byte_count);
        return cJSON_IsString(constant) && strlen(constant->valuestring) == byte_count &&
               memcmp(constant->valuestring, text, byte_count) == 0;
    }
    double value;
    if (cJSON_IsBool(constant)) {
        return bp_json_token_is(token, cJSON_IsTrue(constant) ? "true" : "false");
    }
    return cJSON_IsNumber(constant) && type_of(token) >= BP_SCHEMA_INTEGER &&
           (type_of(token) & BP_SCHEMA_NUMBER) != 0 && read_number(token, &value) &&
           value >= constant->valuedouble && value <= constant->valuedouble;
}

int bp_schema_find_constant(bp_schema_values *values, const bp_schema_node *node,
                            const bp_json_token *token) {
    int place = 0;
    for (const cJSON *one = node->constants; one != NULL; one = one->next, place++) {
        if (is_constant(values, one, token)) {
            return place;
        }
        if (!node->is_enumeration) {
            break; /* what is behind it in the schema is another keyword */
        }
    }
    return -1;
}

/* RFC 3339: a date, a time with a fraction or not, and a zone. */
static bool is_date_time(const char *text, size_t byte_count) {
    static const char shape[] = "0000-00-00T00:00:00";
    static const struct {
        size_t at;
        int smallest, largest;
    } parts[] = {{5, 1, 12}, {8, 1, 31}, {11, 0, 23}, {14, 0, 59}, {17, 0, 60}};
    size_t at = sizeof shape - 1;
    if (byte_count <= at) {
        return false;
    }
    for (size_t i = 0; i < at; i++) {
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (shape[i] == '0' ? !is_digit : text[i] != shape[i]) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int value = (text[parts[i].at] - '0') * 10 + text[parts[i].at + 1] - '0';
        if (value < parts[i].smallest || value > parts[i].largest) {
            return false;
        }
    }
    if (text[at] == '.') {
        size_t first = ++at;
        while (at < byte_count && text[at] >= '0' && text[at] <= '9') {
            at++;
        }
        if (at == first) {
            return false;
        }
    }
    return at + 1 == byte_count && text[at] == 'Z'; /* no report has another zone */
}

static const char *check_string(bp_schema_values *values, const bp_schema_node *node,
                                const bp_json_token *token) {
    bool has_bounds = node->min_length > 0 || node->max_length < SIZE_MAX;
    if (!has_bounds && !node->is_date_time && node->pattern == NULL) {
        return NULL;
    }
    size_t byte_count, length = 0;
    const char *text = bp_schema_decode(values, token, &byte_count);
    for (size_t i = 0; has_bounds && i < byte_count; i++) {
        length += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    if (has_bounds && (length < node->min_length || length > node->max_length)) {
        return length < node->min_length ? "is too short" : "is too long";
    }
    if (node->is_date_time && !is_date_time(text, byte_count)) {
        return "is no time in UTC";
    }
    bool matches =
        node->pattern == NULL || pcre2_match(node->pattern, (PCRE2_SPTR)text, byte_count, 0,
                                             PCRE2_NO_UTF_CHECK, values->schema->match, NULL) >= 0;
    return matches ? NULL : "does not look as it should";
}

static const char *check_number(const bp_schema_node *node, const bp_json_token *token) {
    double value;
    if (node->minimum == -HUGE_VAL && node->maximum == HUGE_VAL) {
        return NULL;
    }
    if (!read_number(token, &value)) {
        return "has too many digits";
    }
    if (value < node->minimum || (node->is_exclusive && value <= node->minimum)) {
        return "is too small";
    }
    return value > node->maximum ? "is too large" : NULL;
}

const char *bp_schema_check_value(bp_schema_values *values, const bp_schema_node *node,
                                  const bp_json_token *token) {
    unsigned type = type_of(token);
    values->steps++;
    if (node->is_never) {
        return "must not be there";
    }
    if (node->types != 0 && (node->types & type) == 0) {
        return "is of another type";
    }
    if (node->constants != NULL && bp_schema_find_constant(values, node, token) < 0) {
        return "has another value";
    }
    if (type == BP_SCHEMA_STRING) {
        return check_string(values, node, token);
    }
    return (type & BP_SCHEMA_NUMBER) != 0 ? check_number(node, token) : NULL;
}

/* How many nodes of a list a value is good for. */
static int count_forms(bp_schema_values *values, int first, int count, const bp_json_token *token) {
    int forms = 0;
    for (int i = first; i < first + count; i++) {
        forms += bp_schema_check_scalar(values, values->schema->lists[i], token) == NULL;
    }
    return forms;
}

const char *bp_schema_check_scalar(bp_schema_values *values, int place,
                                   const bp_json_token *token) {
    if (place < 0) {
        return NULL;
    }
    const bp_schema_node *node = &values->schema->nodes[place];
    const char *why = bp_schema_check_value(values, node, token);
    why = why == NULL ? bp_schema_check_scalar(values, node->reference, token) : why;
    for (int i = 0; why == NULL && i < node->all_count; i++) {
        why = bp_schema_check_scalar(values, values->schema->lists[node->all_first + i], token);
    }
    if (why == NULL && node->condition >= 0) {
        bool is_true = bp_schema_check_scalar(values, node->condition, token) == NULL;
        why = bp_schema_check_scalar(values, is_true ? node->on_true : node->on_false, token);
    }
    if (why == NULL && node->one_count > 0) {
        int forms = count_forms(values, node->one_first, node->one_count, token);
        why = forms == 1 ? NULL : "has none of its forms, or several";
    }
    if (why == NULL && node->any_count > 0) {
        int forms = count_forms(values, node->any_first, node->any_count, token);
        why = forms > 0 ? NULL : "has none of its forms";
    }
    if (why == NULL && node->negated >= 0) {
        bool holds = bp_schema_check_scalar(values, node->negated, token) == NULL;
        why = holds ? "is what it must not be" : NULL;
    }
    return why;
}
