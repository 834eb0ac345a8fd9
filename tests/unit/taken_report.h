/*
 * A directory and the newest report in it: what the tests of a report's content begin with.
 */
#ifndef TESTS_UNIT_TAKEN_REPORT_H
#define TESTS_UNIT_TAKEN_REPORT_H

#include "support/temp_dir.h"
#include "unit/quick_session.h"

extern temp_dir dir;
extern char path[BUGPACK_REPORT_PATH_BYTES];

/* Of a suite. */
void setup(void);
void teardown(void);

/* Writes a report, which must succeed, and sets the path. The description and the result may be
 * NULL. */
void take(bugpack *session, const char *description, bugpack_report_result *ret_result);

#endif
