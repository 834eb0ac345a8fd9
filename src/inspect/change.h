/*
 * A number before and after.
 */
#ifndef BP_INSPECT_CHANGE_H
#define BP_INSPECT_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/* A number with a fraction is multiplied by a power of ten, which its owner knows. */
typedef struct bp_change {
    uint64_t before, after; /* 0 where it is not known */
    bool is_known_before, is_known_after;
    bool has_delta;   /* both are known */
    int64_t delta;    /* after - before, saturated */
    bool has_percent; /* there is a delta, and `before` is not 0 */
    double percent;   /* of `before`, rounded to hundredths */
} bp_change;

/* Fills in the rest from the first four members. */
void bp_change_complete(bp_change *change);

#endif
