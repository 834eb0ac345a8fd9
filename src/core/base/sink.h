/*
 * Somewhere that bytes go, piece by piece.
 */
#ifndef BP_BASE_SINK_H
#define BP_BASE_SINK_H

#include <stddef.h>

#include <bugpack/error.h>

/* Takes the next bytes. Anything but BUGPACK_OK stops whoever gives them, with that status. */
typedef bugpack_status bp_sink(void *context, const void *bytes, size_t byte_count);

/* A source of bytes: gives all of them to the sink, or fails, also with the sink's result. */
typedef struct bp_giver {
    bugpack_status (*give)(const void *context, bp_sink *sink, void *sink_context,
                           bugpack_error *error);
    const void *context;
} bp_giver;

#endif
