#include "recorder/filter.h"

#include <stdlib.h>

#include "base/entry_guard.h"
#include "base/lock.h"
#include "base/status.h"

struct bp_filter {
    /* On its own cache line, which two channels do not share. */
    _Alignas(64) bp_entry_guard guard;
    bugpack_traffic_filter *run;
    void *context;
};

static size_t run_filter(bugpack_direction direction, uint32_t type, void *bytes, size_t byte_count,
                         void *context) {
    bp_filter *filter = context;
    bp_guard_entry entry;
    if (!bp_entry_guard_enter(&filter->guard, &entry)) {
        return 0; /* the ring is closed too */
    }
    bp_lock_check_none_held();
    size_t left = filter->run(direction, type, bytes, byte_count, filter->context);
    bp_entry_guard_leave(&entry);
    return left;
}

bugpack_status bp_filter_wrap(const void *owner, bugpack_channel_options *options,
                              bp_filter **ret_filter, bugpack_error *error) {
    if (options->filter == NULL) {
        *ret_filter = NULL;
        return BUGPACK_OK;
    }
    bp_filter *filter = aligned_alloc(_Alignof(bp_filter), sizeof *filter);
    if (filter == NULL) {
        return bp_fail_memory(error, "open a channel");
    }
    bugpack_status status = bp_entry_guard_init(&filter->guard, owner, error);
    if (status != BUGPACK_OK) {
        free(filter);
        return status;
    }
    filter->run = options->filter;
    filter->context = options->filter_context;
    options->filter = run_filter;
    options->filter_context = filter;
    *ret_filter = filter;
    return BUGPACK_OK;
}

void bp_filter_close(bp_filter *filter) {
    if (filter != NULL) {
        (void)bp_entry_guard_shut(&filter->guard);
    }
}

void bp_filter_free(bp_filter *filter) {
    if (filter != NULL) {
        bp_entry_guard_release(&filter->guard);
        free(filter);
    }
}
