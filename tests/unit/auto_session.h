/*
 * Sessions that trigger by themselves, for their unit tests: small, quick, and with a look at what
 * they count.
 */
#ifndef TESTS_UNIT_AUTO_SESSION_H
#define TESTS_UNIT_AUTO_SESSION_H

#include <bugpack/bugpack.h>

#include <stdatomic.h>

#include "model/manifest.h"
#include "unit/quick_session.h"

/* The app "viewer" in `dir`, without a window, a history or files for its rings. */
bugpack_options auto_options(const temp_dir *dir);

/* What the session's triggers of one kind and key (NULL: none) came to; all zero without a line. */
bp_trigger_entry auto_count(bugpack *session, bp_report_kind kind, const char *key);

/* Waits until a report that is taken now has ended; what became of it. */
bugpack_status auto_report(bugpack *session, bugpack_report_result *ret_result);

/* A provider that keeps the worker busy until it is told to go on. */
typedef struct auto_gate {
    atomic_bool is_inside, may_go;
} auto_gate;
int auto_wait_at_gate(bugpack_writer *writer, void *guard);
void auto_wait_for_worker(auto_gate *guard);

#endif
