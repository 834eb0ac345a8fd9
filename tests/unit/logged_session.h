/*
 * A session that keeps every level, and what is in its log at the end.
 */
#ifndef TESTS_UNIT_LOGGED_SESSION_H
#define TESTS_UNIT_LOGGED_SESSION_H

#include <bugpack/bugpack.h>

#include "unit/quick_session.h"

typedef struct logged {
    temp_dir dir;
    bugpack *session;
} logged;

logged open_logged(void);

/*
 * Takes a report, closes all, and compares the records of logs.jsonl, each as
 * `level channel "message"` with a newline, "-" for no channel, and whatever follows the message.
 */
void expect_logged(logged *made, const char *expected);

#endif
