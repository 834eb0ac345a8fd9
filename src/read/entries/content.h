/*
 * Checks what an entry holds while it is read, by its name: JSON, or anything.
 */
#ifndef BP_ENTRIES_CONTENT_H
#define BP_ENTRIES_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "json/parts.h"

/* The entries of one report, one after the other. All zero has no steps left. */
typedef struct bp_content {
    uint64_t steps_left; /* how much may still be done; each value takes some */
    bool is_json;        /* of the entry that was begun */
    bp_json_parts json;
} bp_content;

void bp_content_release(bp_content *content);

/* Begins an entry; the one before it is over in any case. */
void bp_content_begin(bp_content *content, const char *name);
/* CORRUPT with what is wrong; LIMIT with what is too much; NO_MEMORY. All of them are final. */
bugpack_status bp_content_write(bp_content *content, const void *bytes, size_t byte_count,
                                bugpack_error *error);
bugpack_status bp_content_end(bp_content *content, bugpack_error *error);

#endif
