/*
 * A shared library with a mallctl that answers what a test wants. Its one variable is
 * `fake_mallctl`, found with dlsym.
 */
#ifndef TESTS_SUPPORT_FAKE_MALLCTL_H
#define TESTS_SUPPORT_FAKE_MALLCTL_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_NO_INTERNAL SIZE_MAX

typedef struct fake_mallctl_control {
    const char *failing;   /* this name gives ENOENT; NULL for none */
    const char *misshapen; /* this name answers in another size than it should */
    size_t allocated, active, resident, mapped;
    size_t
        internal; /* of `allocated`, what it took for itself; FAKE_NO_INTERNAL: it does not say */
    unsigned narenas;
    unsigned epoch_calls;   /* how often the epoch was advanced */
    unsigned stale_reads;   /* counters that were read before that */
    unsigned unknown_calls; /* names and shapes that jemalloc does not have */
} fake_mallctl_control;

#endif
