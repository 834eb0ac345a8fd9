/*
 * Texts that any strict reader of RFC 8259 accepts, and texts that it refuses.
 */
#ifndef TESTS_UNIT_JSON_CASES_H
#define TESTS_UNIT_JSON_CASES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct json_case {
    const char *text;
    size_t byte_count; /* a text may hold a NUL */
    bool others_agree; /* false: Python's reader says otherwise, and is known to */
} json_case;

extern const json_case json_accepted[];
extern const size_t json_accepted_count;

extern const json_case json_refused[];
extern const size_t json_refused_count;

#endif
