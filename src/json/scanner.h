/*
 * Reads a JSON text piece by piece and refuses whatever RFC 8259 does not allow. It never recurses:
 * what is open lies in a fixed array, so a hostile text cannot exhaust the stack.
 */
#ifndef BP_JSON_SCANNER_H
#define BP_JSON_SCANNER_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "json/json.h"
#include "json/keys.h"

typedef enum bp_json_token_kind {
    BP_JSON_BEGIN, /* of an object or an array; `text` is its bracket */
    BP_JSON_END,
    BP_JSON_KEY,    /* with its quotes; the colon behind it is checked and passed over */
    BP_JSON_SCALAR, /* a string with its quotes, a number, true, false or null */
    BP_JSON_FINISH  /* the document is complete */
} bp_json_token_kind;

/* A piece of the text, which it points into. */
typedef struct bp_json_token {
    bp_json_token_kind kind;
    const char *text;
    size_t byte_count;
} bp_json_token;

typedef struct bp_json_scanner {
    const unsigned char *text, *at, *end;
    int expected; /* what may come next: a value of an enum inside scanner.c */
    size_t depth; /* how many objects and arrays are open */
    struct {
        bool is_object;
        size_t first_key; /* in `keys` */
    } open[BP_JSON_DEPTH_MAX];
    bp_json_keys keys;
} bp_json_scanner;

/*
 * Begins a text, which must stay where it is; a byte order mark is skipped. Fails with NO_MEMORY
 * for 4 GiB and more. After success the scanner is to be released, after failure it need not be.
 */
bugpack_status bp_json_scanner_init(bp_json_scanner *scanner, const void *text, size_t byte_count,
                                    bugpack_error *error);
void bp_json_scanner_release(bp_json_scanner *scanner);

/*
 * The next piece. CORRUPT with "line L, column C: what was expected", or NO_MEMORY; after a failure
 * or BP_JSON_FINISH the scanner may only be released.
 */
bugpack_status bp_json_scanner_next(bp_json_scanner *scanner, bp_json_token *ret_token,
                                    bugpack_error *error);

#endif
