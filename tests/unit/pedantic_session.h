/*
 * A session in pedantic mode, and what it leaves in its directory.
 */
#ifndef TESTS_UNIT_PEDANTIC_SESSION_H
#define TESTS_UNIT_PEDANTIC_SESSION_H

#include "unit/quick_session.h"

/* Of a suite: options that waste no time. */
void pedantic_setup(void);

/* Waits until no report is on its way. */
bugpack_pedantic_state pedantic_settle(void);

/* How many files there have this text in their names and end in `ending`. */
size_t pedantic_count(const char *part, const char *ending);

/* The path of the one that has, into a static place. Fails the test unless it is one alone. */
const char *pedantic_path(const char *part, const char *ending);

/* Closes, and reads the summary, to be freed. */
char *pedantic_close(void);

/* Whether an entry of the report at `path` holds a text. */
static inline bool says(const char *path, const char *entry, const char *needle) {
    return report_entry_contains(path, entry, needle);
}

#endif
