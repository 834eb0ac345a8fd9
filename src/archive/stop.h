/*
 * Why a writing stopped. libzip passes errors on through several hands and loses some on the way
 * (an allocation that fails early in zip_close sets none), so the first cause is kept here, where
 * it happened.
 */
#ifndef BP_ARCHIVE_STOP_H
#define BP_ARCHIVE_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/archive.h"

typedef struct bp_stop {
    bp_archive_poll *poll; /* NULL: nobody stops it */
    void *poll_context;
    bool is_cancelled;   /* poll said so */
    bool is_no_memory;   /* an allocation of ours failed */
    uint64_t done_bytes; /* of all entries, before deflating */
    int system_errno;    /* of the first system call that failed; 0 for none */
} bp_stop;

/* True when the writing is to stop. After a yes nobody is asked again. */
static inline bool bp_stop_poll(bp_stop *stop) {
    if (!stop->is_cancelled && stop->poll != NULL && stop->poll(stop->poll_context) != 0) {
        stop->is_cancelled = true;
    }
    return stop->is_cancelled;
}

#endif
