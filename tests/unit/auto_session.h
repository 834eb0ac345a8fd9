/*
 * Sessions that trigger by themselves, for their unit tests: small, quick, and with a look at what
 * they count.
 */
#ifndef TESTS_UNIT_AUTO_SESSION_H
#define TESTS_UNIT_AUTO_SESSION_H

#include <stdatomic.h>

#include "model/manifest.h"
#include "unit/quick_session.h"

/* Of a suite: options without a window, a history or files for the rings. */
void auto_setup(void);

/* What the session's triggers of one kind and key (NULL: none) came to; all zero without a line. */
bp_trigger_entry auto_count(bp_report_kind kind, const char *key);

/* A provider that keeps the worker busy until it is told to go on. */
typedef struct auto_gate {
    atomic_bool is_inside, may_go;
} auto_gate;
int auto_wait_at_gate(bugpack_writer *writer, void *gate);
void auto_wait_for_worker(auto_gate *gate);

/* Gives the session that provider. */
void auto_add_gate(auto_gate *gate);

#endif
