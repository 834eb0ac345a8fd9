/*
 * A channel's filter is the host's function, called on the recording thread. This wrapper lets a
 * close wait until no thread is inside it, and none enters later, so that the host may free what
 * the filter uses.
 */
#ifndef BP_RECORDER_FILTER_H
#define BP_RECORDER_FILTER_H

#include <bugpack/error.h>
#include <bugpack/traffic.h>

typedef struct bp_filter bp_filter;

/*
 * Replaces the filter of a channel's options by a wrapper; NULL for options without a filter.
 * `owner`: the session. NO_MEMORY.
 */
bugpack_status bp_filter_wrap(const void *owner, bugpack_channel_options *options,
                              bp_filter **ret_filter, bugpack_error *error);

/* Waits for the calls that are inside; later messages keep no bytes. NULL is fine. */
void bp_filter_close(bp_filter *filter);

/* No thread may be inside or come later. NULL is fine. */
void bp_filter_free(bp_filter *filter);

#endif
