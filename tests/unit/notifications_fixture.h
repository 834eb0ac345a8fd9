/*
 * Notifications on a ring of their own, and their artefact.
 */
#ifndef TESTS_UNIT_NOTIFICATIONS_FIXTURE_H
#define TESTS_UNIT_NOTIFICATIONS_FIXTURE_H

#include "recorder/notifications.h"
#include "unit/quick_session.h"

extern bp_notifications *notifications;
extern bp_ring *ring; /* theirs */

/* Of a suite. */
void open_fixture(void);
void close_fixture(void);

/* Adds a text that ends with a NUL. */
void add(uint64_t at_secs, bugpack_level level, const char *source, const char *text);

/* What the ring holds now; to be released. */
bp_temp_file copy(void);

/* The artefact, with the epoch as the wall time of the monotonic clock's zero; to be released. */
bp_buffer print(const bp_temp_file *records, uint32_t expected_count);
bp_buffer print_now(uint32_t expected_count);

/* How often the text has `needle` in it. */
size_t count_in(const bp_buffer *text, const char *needle);

#endif
