/*
 * Checks JSON against a JSON Schema while it is read, token by token, in memory that does not
 * depend on the size of the document.
 *
 * A schema is one of docs/schema. The keywords are those that they use; another one is refused.
 */
#ifndef BP_JSON_SCHEMA_H
#define BP_JSON_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "json/scanner.h"

typedef struct bp_json_schema bp_json_schema;

/* CORRUPT names what is wrong with the schema; NO_MEMORY. */
bugpack_status bp_json_schema_read(const void *text, size_t byte_count, bp_json_schema **ret_schema,
                                   bugpack_error *error);
/* NULL is fine. */
void bp_json_schema_free(bp_json_schema *schema);

/* A document being checked, or one after the other. */
typedef struct bp_json_check bp_json_check;

/* `schema` is borrowed. NULL without memory. */
bp_json_check *bp_json_check_new(bp_json_schema *schema);
/* NULL is fine. */
void bp_json_check_free(bp_json_check *check);

/* A bp_json_key_taker, which the scanner of the document must have. */
bool bp_json_check_key(void *check, const bp_json_token *key, bool *ret_is_repeated);

/*
 * The next token of that scanner, but for FINISH and MORE. CORRUPT with the place in the
 * document and what is wrong there: "threads[2].tid: is of another type". The sentence has no text
 * of the document. After a failure the check can only be freed. NO_MEMORY.
 */
bugpack_status bp_json_check_token(bp_json_check *check, const bp_json_token *token,
                                   bugpack_error *error);

/* How much work it was: how often a part of the schema was applied to a token. */
uint64_t bp_json_check_steps(const bp_json_check *check);

#endif
