/*
 * Makes an allocation of the program under test fail on purpose: link failing_malloc.c into a test
 * program and it replaces malloc, calloc, realloc and aligned_alloc, also for what the shared
 * libraries call.
 *
 *     for (unsigned long nth = 1; ; nth++) {
 *         failing_malloc_arm(nth, false);
 *         … the work, without assertions that allocate …
 *         if (failing_malloc_disarm() < nth) {
 *             break;                               every allocation has had its turn
 *         }
 *     }
 */
#ifndef TESTS_SUPPORT_FAILING_MALLOC_H
#define TESTS_SUPPORT_FAILING_MALLOC_H

#include <stdbool.h>

/* False in a sanitizer's build, which has an allocator of its own: such a test is skipped (77). */
bool failing_malloc_is_available(void);

/*
 * From now on counts the allocations of all threads, and of processes forked later, and lets the
 * `nth` (1-based) fail with ENOMEM, and with `and_all_later` every one after it too. 0 counts only.
 */
void failing_malloc_arm(unsigned long nth, bool and_all_later);

/* The same for `count` allocations in a row, from the `nth` on. */
void failing_malloc_arm_burst(unsigned long nth, unsigned long count);

/* From now on only the calling thread's allocations are counted and fail. */
void failing_malloc_only_here(void);

/* The same for those that a library makes itself: part of its path, borrowed; NULL: all. */
void failing_malloc_only_of(const char *library);

/* Stops, and returns how many allocations were tried since arming. */
unsigned long failing_malloc_disarm(void);

#endif
