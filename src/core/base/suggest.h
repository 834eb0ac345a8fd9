/*
 * The name that somebody who mistyped a word most likely meant.
 */
#ifndef BP_BASE_SUGGEST_H
#define BP_BASE_SUGGEST_H

#include <stddef.h>

/* The name of an index; NULL after the last. */
typedef const char *bp_suggest_name(const void *context, size_t index);

/*
 * The name with the fewest bytes to insert, remove, replace or swap with the next: at most a third
 * of the word, and at most 3. The first of several; NULL: none is near.
 */
const char *bp_suggest(const char *word, bp_suggest_name *name, const void *context);

#endif
