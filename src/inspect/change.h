/*
 * What one number was and is.
 */
#ifndef BP_INSPECT_CHANGE_H
#define BP_INSPECT_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers with a fraction come multiplied by a power of ten, whose exponent their owner knows. */
typedef struct bp_change {
    uint64_t before, after; /* 0 where it is not known */
    bool is_known_before, is_known_after;
    /* after - before, at the ends of its range where it would not fit; only where both are known.
     */
    bool has_delta;
    int64_t delta;
    /* Of `before`, rounded to hundredths; not where that is 0, or there is no delta. */
    bool has_percent;
    double percent;
} bp_change;

/* Fills in the rest from the first four. */
void bp_change_complete(bp_change *change);

/* Below, at or above 0: larger changes first, and last what is not known. */
int bp_change_compare(const bp_change *one, const bp_change *other);

#endif
