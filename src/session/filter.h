/*
 * A channel's filter is the host's function, called on the thread that records. It is called
 * through this, so that a close can wait until nobody is inside it, and nobody comes later: then
 * the host may free what the filter works with.
 */
#ifndef BP_SESSION_FILTER_H
#define BP_SESSION_FILTER_H

#include <bugpack/error.h>
#include <bugpack/traffic.h>

typedef struct bp_filter bp_filter;

/*
 * Puts a gate before the filter of a channel's options, which call this one from then on; NULL for
 * options without a filter. `owner`: the session. NO_MEMORY.
 */
bugpack_status bp_filter_wrap(const void *owner, bugpack_channel_options *options,
                              bp_filter **ret_filter, bugpack_error *error);

/* Waits for the calls that are inside, and keeps nothing of a message from then on. NULL is fine.
 */
void bp_filter_close(bp_filter *filter);

/* No thread may be inside, nor come any more. NULL is fine. */
void bp_filter_free(bp_filter *filter);

#endif
