/*
 * Pedantic mode: the first occurrence of a gap becomes a report.
 */
#ifndef BP_TRIGGER_PEDANTIC_H
#define BP_TRIGGER_PEDANTIC_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/gap.h>

#include "trigger/gaps.h"

typedef struct bp_pedantic bp_pedantic;

/* What the host gives with one occurrence. */
typedef struct bp_occurrence {
    bugpack_provider_callback *state; /* NULL: nothing */
    void *context;
    const void *bytes; /* of a message without a handler; NULL: none */
    size_t byte_count;
    const char *channel; /* what the message came on; the row may be one of overflow. Of `bytes` */
} bp_occurrence;

/* bp_gaps_read_key, also on a closed session. Any thread. */
void bp_pedantic_read_key(const bp_pedantic *pedantic, bp_gap_key *key, const char *text);

/*
 * Counts an occurrence. What comes back and is not BP_GAP_COUNTED has to be followed by
 * bp_pedantic_act, or by bp_pedantic_refuse. Also on a closed session. Any thread.
 */
bp_gap_occurrence bp_pedantic_see(bp_pedantic *pedantic, const bp_gap_key *key, bp_gap **ret_gap);

/* Makes the report, or notes that a cap is reached. Any thread, while the session is open. */
void bp_pedantic_act(bp_pedantic *pedantic, bp_gap_occurrence seen, bp_gap *gap,
                     const bp_occurrence *occurrence);
void bp_pedantic_refuse(bp_pedantic *pedantic, bp_gap_occurrence seen, bp_gap *gap);

/* Turns the mode on or off; whether it was on before. */
bool bp_pedantic_enable(bp_pedantic *pedantic, bool is_enabled);

/* Fills all of the state but its size. */
void bp_pedantic_get(bp_pedantic *pedantic, bugpack_pedantic_state *ret_state);

#endif
