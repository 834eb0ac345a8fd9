/*
 * A session that keeps every level, and what is in its log at the end.
 */
#ifndef TESTS_UNIT_LOGGED_SESSION_H
#define TESTS_UNIT_LOGGED_SESSION_H

#include "unit/quick_session.h"

/* Of a suite: opens the session. */
void logged_setup(void);

/* Takes a report, and compares the records of logs.jsonl, each as `level channel "message"` with a
 * newline, "-" for no channel, and whatever follows the message. */
void expect_logged(const char *expected);

#endif
