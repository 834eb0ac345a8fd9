#include "platform/posix/jemalloc.h"

#include <errno.h>
#include <stdint.h>

#include "platform/posix/allocator_symbol.h"

/* The counters are what they were when the epoch was last moved (jemalloc(3), "epoch"). */
static int advance_epoch(bp_mallctl *mallctl) {
    uint64_t epoch = 1;
    return mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
}

/* The types of the counters are those that jemalloc(3) gives them. */
static int read_size(bp_mallctl *mallctl, const char *name, uint64_t *ret_value) {
    size_t value = 0;
    size_t value_bytes = sizeof value;
    int result = mallctl(name, &value, &value_bytes, NULL, 0);
    if (result == 0 && value_bytes != sizeof value) {
        result = EINVAL;
    }
    if (result == 0) {
        *ret_value = value;
    }
    return result;
}

static int read_unsigned(bp_mallctl *mallctl, const char *name, uint64_t *ret_value) {
    unsigned value = 0;
    size_t value_bytes = sizeof value;
    int result = mallctl(name, &value, &value_bytes, NULL, 0);
    if (result == 0 && value_bytes != sizeof value) {
        result = EINVAL;
    }
    if (result == 0) {
        *ret_value = value;
    }
    return result;
}

/*
 * Nothing given out and no page held for it, or nothing but what jemalloc took for itself: asking
 * a jemalloc 5 gives the asking thread a cache, and its bytes are counted like anybody's. 4096
 * stands for all arenas (MALLCTL_ARENAS_ALL, since 5.0); an older one has no such sum.
 */
static bool is_used(bp_mallctl *mallctl, const bugpack_heap_state *state) {
    if (state->allocated_bytes == 0 && state->active_bytes == 0) {
        return false;
    }
    uint64_t own_bytes = 0;
    return state->allocated_bytes == BUGPACK_HEAP_UNKNOWN ||
           read_size(mallctl, "stats.arenas.4096.internal", &own_bytes) != 0 || own_bytes == 0 ||
           state->allocated_bytes > own_bytes;
}

bool bp_jemalloc_read(bp_mallctl *mallctl, bp_heap_reading *reading) {
    reading->state = bp_heap_state_of("jemalloc");
    reading->missing[0] = '\0';
    int result = advance_epoch(mallctl);
    if (result != 0) {
        bp_heap_reading_miss(reading, "epoch", result);
        return true;
    }
    bugpack_heap_state *state = &reading->state;
    const struct {
        const char *name;
        uint64_t *value;
    } sizes[] = {{"stats.allocated", &state->allocated_bytes},
                 {"stats.active", &state->active_bytes},
                 {"stats.resident", &state->resident_bytes},
                 {"stats.mapped", &state->mapped_bytes}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        result = read_size(mallctl, sizes[i].name, sizes[i].value);
        if (result != 0) {
            bp_heap_reading_miss(reading, sizes[i].name, result);
        }
    }
    result = read_unsigned(mallctl, "arenas.narenas", &state->narenas);
    if (result != 0) {
        bp_heap_reading_miss(reading, "arenas.narenas", result);
    }
    return is_used(mallctl, state);
}
