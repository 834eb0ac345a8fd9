/*
 * A session whose reports are there in a moment: what the tests of sessions begin with.
 */
#ifndef TESTS_UNIT_QUICK_SESSION_H
#define TESTS_UNIT_QUICK_SESSION_H

#include <bugpack/bugpack.h>

#include "support/temp_dir.h"

/* Defaults, but for a window of 20 ms and no history: a thread that samples allocates when a test
 * forks, and the sanitizer's allocator does not survive that. `dir` is borrowed. */
bugpack_options quick_options(const temp_dir *dir);

/* Fails the test when it cannot be opened. */
bugpack *open_session(const bugpack_options *options);

#endif
