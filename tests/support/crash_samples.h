/*
 * A crash page as a handler on x86_64 would leave it.
 */
#ifndef TESTS_SUPPORT_CRASH_SAMPLES_H
#define TESTS_SUPPORT_CRASH_SAMPLES_H

#include "model/crash.h"

extern const char sample_crash_session[BP_ID_BYTES];

extern const bp_crash_backtrace sample_crash_backtrace;

/* The page is static, and made anew by each call. */
bp_crash_page *sample_crash_page(void);

#endif
