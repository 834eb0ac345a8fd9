#include "base/struct_size.h"

#include <inttypes.h>
#include <string.h>

#include <bugpack/version.h>

#include "base/status.h"

/* No version is larger: a size beyond this was never set. */
static const size_t max_bytes = 65536;

static size_t smaller(size_t one, size_t other) {
    return one < other ? one : other;
}

bool bp_struct_init(void *fresh, size_t struct_size) {
    if (fresh == NULL || struct_size < sizeof struct_size || struct_size > max_bytes) {
        return false;
    }
    memset(fresh, 0, struct_size);
    memcpy(fresh, &struct_size, sizeof struct_size);
    return true;
}

bugpack_status bp_struct_check(const bp_struct *of, const void *given, bugpack_error *error) {
    size_t given_bytes;
    if (given == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the %s is NULL", of->name);
    }
    memcpy(&given_bytes, given, sizeof given_bytes);
    return given_bytes >= sizeof given_bytes && given_bytes <= max_bytes
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_INVALID,
                         "the struct_size of %s is %zu, which no version has: start from %s_init",
                         of->name, given_bytes, of->name);
}

bugpack_status bp_struct_read(const bp_struct *of, void *to, const void *given,
                              bugpack_error *error) {
    bugpack_status status = bp_struct_check(of, given, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    size_t given_bytes;
    memcpy(&given_bytes, given, sizeof given_bytes);
    for (size_t i = of->bytes; i < given_bytes; i++) {
        if (((const unsigned char *)given)[i] != 0) {
            return bp_fail(error, BUGPACK_ERR_INVALID,
                           "byte %zu of %s belongs to a field that bugpack " BUGPACK_VERSION
                           " does not have",
                           i, of->name);
        }
    }
    memcpy(to, given, smaller(given_bytes, of->bytes));
    memcpy(to, &of->bytes, sizeof of->bytes);
    return BUGPACK_OK;
}

void bp_struct_write(const bp_struct *of, void *given, const void *from) {
    size_t given_bytes;
    memcpy(&given_bytes, given, sizeof given_bytes);
    memcpy(given, from, smaller(given_bytes, of->bytes));
    memcpy(given, &given_bytes, sizeof given_bytes);
}

bugpack_status bp_struct_fill(void *fields_of, const bp_field *fields, size_t field_count,
                              bugpack_error *error) {
    for (size_t i = 0; i < field_count; i++) {
        const bp_field *field = &fields[i];
        uint64_t *value = (uint64_t *)(void *)((char *)fields_of + field->offset);
        if (*value == BUGPACK_OFF && field->off_value == BP_FIELD_NEVER_OFF) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "%s cannot be BUGPACK_OFF", field->name);
        }
        if (*value != BUGPACK_OFF && *value > field->max_value) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "%s must be at most %" PRIu64, field->name,
                           field->max_value);
        }
        if (*value == 0) {
            *value = field->default_value;
        } else if (*value == BUGPACK_OFF) {
            *value = field->off_value;
        }
    }
    return BUGPACK_OK;
}
