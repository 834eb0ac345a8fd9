/*
 * The name that somebody who mistyped a word most likely meant.
 */
#ifndef BP_BASE_SUGGEST_H
#define BP_BASE_SUGGEST_H

#include <stddef.h>

/* Starts with the word alone. */
typedef struct bp_suggestion {
    const char *word;
    const char *name; /* NULL: none is near */
    size_t distance;
} bp_suggestion;

/*
 * Looks at one more name. Kept is the first one with the fewest bytes to insert, remove, replace or
 * swap with the next: at most a third of the word, and at most 3.
 */
void bp_suggest(bp_suggestion *suggestion, const char *name);

#endif
