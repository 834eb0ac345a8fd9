/*
 * A session whose reports are there in a moment: what the tests of sessions work on.
 */
#ifndef TESTS_UNIT_QUICK_SESSION_H
#define TESTS_UNIT_QUICK_SESSION_H

#include <bugpack/bugpack.h>

#include "support/report_reader.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

extern temp_dir dir;
extern bugpack_options options; /* a test may change them before it opens a session */
extern bugpack_session *session;
extern bugpack_report_result taken; /* the report that was written last */

/* Of a suite. Makes the directory and the options: defaults, but for a window of 20 ms and no
 * history: a thread that samples allocates when a test forks, and the sanitizer's allocator does
 * not survive that. The teardown closes the session that is open. */
void setup(void);
void teardown(void);

#define SESSION_SUITE(name, ...) TestSuite(name, .init = setup, .fini = teardown, ##__VA_ARGS__)

/* Opens `session` with `options`. */
void open_session(void);

/* Whether it can be opened is the test's to say; `session` is NULL if not. */
bugpack_status try_open(bugpack_error *error);

bugpack_channel *open_channel(const char *name);
bugpack_channel *open_channel_with(const char *name, const bugpack_channel_options *with);

void provide(const char *name, bugpack_provider_kind kind, bugpack_provider_callback *callback,
             void *context);

/* Asks for a report and waits for it; the request may be NULL. */
bugpack_status try_report(const bugpack_report_request *request);

/* The same, but it must succeed. */
void take(const bugpack_report_request *request);

/* With a description. */
void take_described(const char *description);

/* Closes the session, and looks for the only report in the directory. */
void close_and_find(void);
void find_only(void);

/* Whether an entry of the report in `taken` holds a text. */
bool holds(const char *entry, const char *text);

/* Whether the pcap of a report has these bytes. */
bool pcap_holds(const char *path, const char *text);

/* Kills a process that has opened a session with rings in the directory, and recorded something in
 * it. */
void leave_dead_session(void (*record)(void));

/* Recovers it; its report must be the only one in the directory. */
void recover_and_find(void);

#endif
