#include "json/parts.h"

#include <string.h>

#include "base/status.h"

void bp_json_parts_init(bp_json_parts *parts, bp_json_token_taker *take, void *context) {
    *parts = (bp_json_parts){.take = take, .context = context};
    bp_buffer_init(&parts->window, 3 * BP_JSON_PART_TOKEN_BYTES_MAX);
    bp_json_scanner_init(&parts->scanner, "", 0);
    parts->scanner.key_max = BP_JSON_KEY_MAX;
}

void bp_json_parts_release(bp_json_parts *parts) {
    bp_json_scanner_release(&parts->scanner);
    bp_buffer_release(&parts->window);
}

/* Takes all tokens that are there as a whole, and leaves the rest at the front of the window. */
static bugpack_status scan(bp_json_parts *parts, bool is_part, bugpack_error *error) {
    bp_json_token token = {.kind = BP_JSON_KEY};
    bool is_done = false;
    bp_json_scanner_continue(&parts->scanner, parts->window.data, parts->window.size, is_part);
    while (!is_done) {
        bugpack_status status = bp_json_scanner_next(&parts->scanner, &token, error);
        if (status != BUGPACK_OK) {
            return status;
        }
        bool is_finish = token.kind == BP_JSON_FINISH;
        is_done = token.kind == BP_JSON_MORE || (is_finish && token.byte_count == 0);
        status = is_done || is_finish ? BUGPACK_OK : parts->take(parts->context, &token, error);
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    size_t left = (size_t)(parts->scanner.end - parts->scanner.at);
    if (left > BP_JSON_PART_TOKEN_BYTES_MAX) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "a string has more than %zu bytes",
                       BP_JSON_PART_TOKEN_BYTES_MAX);
    }
    const unsigned char *rest = parts->scanner.at;
    bp_json_scanner_continue(&parts->scanner, "", 0, true);
    if (left > 0) {
        memmove(parts->window.data, rest, left);
    }
    parts->window.size = left;
    parts->needed = 2 * left; /* so that a long string is not scanned again for each piece */
    return BUGPACK_OK;
}

bugpack_status bp_json_parts_write(bp_json_parts *parts, const void *bytes, size_t byte_count,
                                   bugpack_error *error) {
    if (bp_buffer_append(&parts->window, bytes, byte_count) != BUGPACK_OK) {
        return bp_fail_memory(error, "read a JSON text");
    }
    return parts->window.size < parts->needed ? BUGPACK_OK : scan(parts, true, error);
}

bugpack_status bp_json_parts_end(bp_json_parts *parts, bugpack_error *error) {
    return scan(parts, false, error);
}

typedef struct whole_text {
    bp_json_parts *parts;
    bugpack_error failure; /* of a part: a sink has no place for its sentence */
} whole_text;

static bugpack_status write_part(void *context, const void *bytes, size_t byte_count) {
    whole_text *whole = context;
    return bp_json_parts_write(whole->parts, bytes, byte_count, &whole->failure);
}

bugpack_status bp_json_parts_read(bp_json_parts *parts, const bp_giver *text,
                                  bugpack_error *error) {
    whole_text whole = {parts, BUGPACK_ERROR_INIT};
    bugpack_status status = text->give(text->context, write_part, &whole, error);
    if (whole.failure.status != BUGPACK_OK) {
        return bp_fail(error, whole.failure.status, "%s", whole.failure.message);
    }
    return status == BUGPACK_OK ? bp_json_parts_end(parts, error) : status;
}

typedef struct row_reader {
    bp_json_parts parts;
    const bp_json_rows *rows;
    size_t list_bytes;
    bp_json_walk walk;
    bp_buffer *kept;
    size_t row_start, row_depth; /* of the element that is read, in `kept`; 0: none is */
    bp_json_pick *copied;        /* what is copied whole, from `copied_depth` on */
    size_t copied_depth;
    bp_json_token_kind last; /* token of it */
} row_reader;

static bool is_of_row(const bp_json_rows *rows, const bp_json_pick *pick) {
    return strncmp(pick->path, rows->list, strlen(rows->list)) == 0;
}

/* Says where the values of an element are, or those of the document. */
static void point(const row_reader *reader, bool of_row) {
    for (size_t i = 0; i < reader->rows->pick_count; i++) {
        bp_json_pick *pick = &reader->rows->picks[i];
        if (is_of_row(reader->rows, pick) == of_row && pick->token.byte_count > 0) {
            pick->token.text = bp_buffer_text(reader->kept) + pick->offset;
        }
    }
}

/* Forgets what an element had. */
static void begin_row(row_reader *reader) {
    reader->row_start = reader->kept->size;
    reader->row_depth = reader->parts.scanner.depth;
    for (size_t i = 0; i < reader->rows->pick_count; i++) {
        if (is_of_row(reader->rows, &reader->rows->picks[i])) {
            reader->rows->picks[i].token = (bp_json_token){.text = ""};
        }
    }
}

static bugpack_status end_row(row_reader *reader, bugpack_error *error) {
    point(reader, true);
    bugpack_status status = reader->rows->take(reader->rows->context, error);
    reader->kept->size = reader->row_start;
    reader->row_depth = 0;
    return status;
}

/* Copies a value without white space, token by token. */
static void copy_token(row_reader *reader, const bp_json_token *token) {
    bool follows = reader->last == BP_JSON_END || reader->last == BP_JSON_SCALAR;
    if (follows && token->kind != BP_JSON_END) {
        (void)bp_buffer_append_char(reader->kept, ',');
    }
    (void)bp_buffer_append(reader->kept, token->text, token->byte_count);
    if (token->kind == BP_JSON_KEY) {
        (void)bp_buffer_append_char(reader->kept, ':');
    }
    reader->last = token->kind;
    if (token->kind == BP_JSON_END && reader->parts.scanner.depth < reader->copied_depth) {
        reader->copied->token.byte_count = reader->kept->size - reader->copied->offset;
        reader->copied = NULL;
    }
}

/* A bp_json_token_taker. */
static bugpack_status pick_token(void *context, const bp_json_token *token, bugpack_error *error) {
    row_reader *reader = context;
    const bp_json_rows *rows = reader->rows;
    size_t depth = reader->parts.scanner.depth;
    bool is_begin = token->kind == BP_JSON_BEGIN;
    bp_json_pick *pick = bp_json_walk_to(&reader->walk, &reader->parts.scanner, token, rows->picks,
                                         rows->pick_count);
    if (reader->copied != NULL) {
        copy_token(reader, token);
        pick = NULL;
    } else if (is_begin && reader->walk.base[depth] == reader->list_bytes &&
               strcmp(reader->walk.path, rows->list) == 0) {
        begin_row(reader);
    }
    if (pick != NULL) {
        pick->token = *token;
        pick->offset = reader->kept->size;
        (void)bp_buffer_append(reader->kept, token->text, token->byte_count);
        if (is_begin && pick->is_whole) {
            reader->copied = pick;
            reader->copied_depth = depth;
            reader->last = BP_JSON_BEGIN;
        }
    }
    if (reader->kept->status != BUGPACK_OK) {
        return bp_fail_memory(error, "read a JSON text");
    }
    bool is_row_end = token->kind == BP_JSON_END && depth + 1 == reader->row_depth;
    return is_row_end ? end_row(reader, error) : BUGPACK_OK;
}

bugpack_status bp_json_pick_rows(const bp_giver *text, const bp_json_rows *rows, bp_buffer *kept,
                                 bugpack_error *error) {
    row_reader reader = {.rows = rows, .list_bytes = strlen(rows->list), .kept = kept};
    bp_json_picks_clear(rows->picks, rows->pick_count);
    bp_json_parts_init(&reader.parts, pick_token, &reader);
    bugpack_status status = bp_json_parts_read(&reader.parts, text, error);
    bp_json_parts_release(&reader.parts);
    point(&reader, false);
    return status;
}
