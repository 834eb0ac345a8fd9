/*
 * Checks what an entry holds while it is read, by its name: JSON, pcap, PNG, a profile, or
 * anything.
 */
#ifndef BP_ENTRIES_CONTENT_H
#define BP_ENTRIES_CONTENT_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

typedef struct bp_content bp_content;

/* How much may still be done for one report; each entry takes off what it took. */
typedef struct bp_content_budget {
    uint64_t picture_bytes, json_steps;
} bp_content_budget;

/* Checks the entries of one report, one after the other. `budget` is borrowed. NULL without memory.
 */
bp_content *bp_content_new(bp_content_budget *budget);
/* NULL is fine. */
void bp_content_free(bp_content *content);

/* Begins an entry; the one before it is over in any case. NO_MEMORY. */
bugpack_status bp_content_begin(bp_content *content, const char *name, bugpack_error *error);
/* CORRUPT with what is wrong; LIMIT with what is too much; NO_MEMORY. All of them are final. */
bugpack_status bp_content_write(bp_content *content, const void *bytes, size_t byte_count,
                                bugpack_error *error);
bugpack_status bp_content_end(bp_content *content, bugpack_error *error);

#endif
