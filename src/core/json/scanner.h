/*
 * Reads a JSON text token by token and refuses what RFC 8259 does not allow. It never recurses:
 * what is open is listed in a fixed array, so a hostile text cannot exhaust the stack.
 */
#ifndef BP_JSON_SCANNER_H
#define BP_JSON_SCANNER_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "json/json.h"
#include "json/token.h"

/* The most keys of the objects that are open at a time, in a text from outside. */
#define BP_JSON_KEY_MAX ((size_t)1 << 17)

/* The keys of all objects that are open now, outermost first: finds one that an object has twice in
 * constant time, also of a hostile text, which may be gone by then. All zero is empty. */
typedef struct bp_json_keys {
    struct bp_json_key *keys;
    size_t count, capacity;
    uint32_t *slots; /* places in `keys`, from 1, by hash; 0 is free */
    size_t slot_count;
    uint64_t seed;
} bp_json_keys;

typedef struct bp_json_scanner {
    const unsigned char *text, *at, *end;
    int expected;  /* what may come next: an enum in scanner.c */
    size_t depth;  /* how many objects and arrays are open, after the last token */
    bool is_part;  /* the text goes on behind `end` */
    bool is_lines; /* set it after the start: each line is a document, and ends with a newline */
    bool has_reached_end;
    size_t key_max; /* set it after the start: more keys are refused; 0: as many as there are */
    size_t line, column; /* of `text`, from 1 */
    bp_json_keys keys;
    bool is_object[BP_JSON_DEPTH_MAX];   /* what is open, up to `depth` */
    size_t first_key[BP_JSON_DEPTH_MAX]; /* of it in `keys` */
} bp_json_scanner;

/* Starts a text, which must stay where it is; a byte order mark is skipped. */
void bp_json_scanner_init(bp_json_scanner *scanner, const void *text, size_t byte_count);
void bp_json_scanner_release(bp_json_scanner *scanner);

/*
 * Goes on with a text that is given in parts: with what no token has had yet, from `at` to `end`,
 * and what follows it. The last part, which may be empty, is none of which `is_part`.
 */
void bp_json_scanner_continue(bp_json_scanner *scanner, const void *text, size_t byte_count,
                              bool is_part);

/*
 * CORRUPT with "line L, column C: " and a sentence about what is at `at`, in a text that was
 * checked up to there.
 */
bugpack_status bp_json_fail_at(const void *text, const void *at, bugpack_error *error,
                               const char *sentence);

/*
 * The next token. CORRUPT with "line L, column C: what was expected", or NO_MEMORY; after a failure
 * or BP_JSON_FINISH the scanner may only be released. With `is_lines` the FINISH of a line has the
 * newline as its text; only that of the whole text, which is empty, is the last.
 */
bugpack_status bp_json_scanner_next(bp_json_scanner *scanner, bp_json_token *ret_token,
                                    bugpack_error *error);

#endif
