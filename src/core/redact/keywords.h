/*
 * Finds many short keywords in one pass over a text: a deterministic automaton, one table look-up a
 * byte, whatever the number of keywords.
 *
 * A keyword is a sequence of bytes, letters in either case, and of sets: \d a digit, \a a letter,
 * \w a letter, digit or '_', \s a space, \xHH a byte, [...] and [^...] a set of these. A set that
 * stands first is context: it has to be there and is not part of the keyword.
 */
#ifndef BP_REDACT_KEYWORDS_H
#define BP_REDACT_KEYWORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

enum {
    BP_KEYWORD_MAX_BYTES = 64,
    BP_KEYWORD_NO_OWNER = UINT16_MAX /* stops a search, and is not among the hits */
};

typedef struct bp_keywords bp_keywords;

/* Without any keyword. NULL without memory. */
bp_keywords *bp_keywords_new(void);
void bp_keywords_free(bp_keywords *keywords);

/*
 * Adds the keywords of a list that is separated by spaces, each with the number `owner`. INVALID
 * for one that is empty, too long or not understood, or of one byte with an owner; LIMIT.
 */
bugpack_status bp_keywords_add(bp_keywords *keywords, const char *list, uint16_t owner,
                               bugpack_error *error);

/* Makes the automaton; once, after the last one was added. LIMIT, NO_MEMORY. */
bugpack_status bp_keywords_compile(bp_keywords *keywords, bugpack_error *error);

/* Where a scan is. Starts with bp_keywords_start: as behind the end of a line. */
typedef uint32_t bp_keyword_state;
bp_keyword_state bp_keywords_start(const bp_keywords *keywords);

/*
 * Goes on at `offset` until behind the last byte of the next keyword, whose state is left in
 * `state`; returns that offset. Without one it returns SIZE_MAX.
 */
size_t bp_keywords_next(const bp_keywords *keywords, const unsigned char *bytes, size_t byte_count,
                        size_t offset, bp_keyword_state *state);

/* Sets a bit for each byte that is the last one of a keyword: bit 0 of word 0 is the first byte's.
 */
#define BP_KEYWORD_MARK_WORDS(byte_count) (((byte_count) + 63) / 64)
void bp_keywords_mark(const bp_keywords *keywords, const unsigned char *bytes, size_t byte_count,
                      uint64_t *marks);

/* The state behind `offset` bytes, for bp_keywords_hits. */
bp_keyword_state bp_keywords_state(const bp_keywords *keywords, const unsigned char *bytes,
                                   size_t offset);

/* A keyword that ends in a state: how many bytes it had, without its context. */
typedef struct bp_keyword_hit {
    uint16_t owner;
    uint16_t length;
} bp_keyword_hit;

/* All that end there. Borrowed. */
size_t bp_keywords_hits(const bp_keywords *keywords, bp_keyword_state state,
                        const bp_keyword_hit **ret_hits);

/* A search for each keyword of an owner in a text, from `at` on; what follows starts zeroed. */
typedef struct bp_keyword_search {
    const bp_keywords *keywords;
    const unsigned char *text;
    size_t size, at; /* `at`: then the end of the keyword */
    bp_keyword_state state;
    const bp_keyword_hit *hits; /* that end there, too; NULL: nothing found yet */
    size_t hit_count;
} bp_keyword_search;

/* The next one; false where there is none. */
bool bp_keywords_find(bp_keyword_search *search, bp_keyword_hit *ret_hit);

#endif
