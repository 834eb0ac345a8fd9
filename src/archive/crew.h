/*
 * Who deflates chunks: the calling thread, and helpers beside it, in a ring of slots.
 */
#ifndef BP_ARCHIVE_CREW_H
#define BP_ARCHIVE_CREW_H

#include <stdbool.h>
#include <stddef.h>

#include "archive/archive.h"
#include "archive/stop.h"

typedef struct bp_crew bp_crew;

/* One chunk and what becomes of it. What belongs to the slot's state is the crew's. */
typedef struct bp_slot {
    unsigned char *read; /* room for a chunk of a file; NULL where none was asked for */
    const unsigned char *bytes;
    size_t byte_count;
    bool is_last;
    unsigned char *out;
    size_t out_bytes;
    int state;
} bp_slot;

/* A crew of the calling thread alone. NULL when memory is short. It is used by one thread. */
bp_crew *bp_crew_new(void);

/*
 * Ends the helpers and frees it. NULL is fine. Where it may wait, every slot was settled or
 * dropped. Where not, slots may be at work, and the last helper frees what is left: they stand back
 * for the host, so that a busy machine lets one wait for long with a chunk in its hands.
 */
void bp_crew_free(bp_crew *crew, bool may_wait);

/*
 * Starts the helpers, once; more calls do nothing. Whoever cannot be started is done without.
 * `helpers` is only read.
 */
void bp_crew_hire(bp_crew *crew, const bp_archive_helpers *helpers);

/* Whether there are any: then chunks have to be read into their slots. */
bool bp_crew_has_helpers(const bp_crew *crew);

/*
 * The slot for the next chunk, with room for reading one where `must_read`; NULL when memory is
 * short. Where bp_crew_is_full, the oldest slot has to be settled first.
 */
bp_slot *bp_crew_next(bp_crew *crew, bool must_read);
bool bp_crew_is_full(const bp_crew *crew);
bool bp_crew_is_empty(const bp_crew *crew);

/* Hands over the slot that was got last. Its bytes must stay until it is settled. */
void bp_crew_submit(bp_crew *crew);

/* The oldest slot, deflated; NULL when none was submitted, or `stop` said so while a helper was
 * waited for. Valid until the next call of next. */
const bp_slot *bp_crew_settle(bp_crew *crew, bp_stop *stop);

/* Waits until nobody is at work on any slot, and forgets them all. */
void bp_crew_drop_all(bp_crew *crew);

#endif
