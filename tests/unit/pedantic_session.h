/*
 * A session in pedantic mode, and what it leaves in its directory.
 */
#ifndef TESTS_UNIT_PEDANTIC_SESSION_H
#define TESTS_UNIT_PEDANTIC_SESSION_H

#include <bugpack/bugpack.h>

#include "unit/quick_session.h"

typedef struct pedantic {
    temp_dir dir;
    bugpack *session;
} pedantic;

/* Makes the directory, and options that waste no time. */
bugpack_options pedantic_options(pedantic *made);
/* With a session of these options. */
pedantic pedantic_start(void);

/* Waits until no report is on its way. */
bugpack_pedantic_state pedantic_settle(const pedantic *made);

/* How many files there have this text in their names and end in `ending`. */
size_t pedantic_count(const pedantic *made, const char *part, const char *ending);

/* The path of the one that has, into a static place. Fails the test unless it is one alone. */
const char *pedantic_path(const pedantic *made, const char *part, const char *ending);

/* Closes, and reads the summary, to be freed. */
char *pedantic_close(pedantic *made);
void pedantic_remove(pedantic *made);

#endif
