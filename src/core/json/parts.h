/*
 * A JSON text that is read while it comes, in parts of any size.
 */
#ifndef BP_JSON_PARTS_H
#define BP_JSON_PARTS_H

#include "base/buffer.h"
#include "base/sink.h"
#include "json/scanner.h"

/* A longer string or number is refused. */
#define BP_JSON_PART_TOKEN_BYTES_MAX ((size_t)8 << 20)

/* Takes the next token. `depth` of the scanner is that after the token. Anything but BUGPACK_OK is
 * returned by whoever gave the part. */
typedef bugpack_status bp_json_token_taker(void *context, const bp_json_token *token,
                                           bugpack_error *error);

typedef struct bp_json_parts {
    bp_json_scanner scanner;
    bp_buffer window; /* what no token has had yet */
    size_t needed;    /* the window is not scanned before it has as many bytes */
    bp_json_token_taker *take;
    void *context;
    bugpack_error failure; /* of bp_json_parts_read */
} bp_json_parts;

/* `context` is borrowed. */
void bp_json_parts_init(bp_json_parts *parts, bp_json_token_taker *take, void *context);
void bp_json_parts_release(bp_json_parts *parts);

/* CORRUPT with what is wrong and where; NO_MEMORY; what the taker returned. All of them are final.
 */
bugpack_status bp_json_parts_write(bp_json_parts *parts, const void *bytes, size_t byte_count,
                                   bugpack_error *error);
/* The same for the end of the text. */
bugpack_status bp_json_parts_end(bp_json_parts *parts, bugpack_error *error);

/* Reads all that is given, and its end. Errors of both, and those of the giver. */
bugpack_status bp_json_parts_read(bp_json_parts *parts, const bp_giver *text, bugpack_error *error);

#endif
