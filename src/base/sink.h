/*
 * Somewhere that bytes go, piece by piece.
 */
#ifndef BP_BASE_SINK_H
#define BP_BASE_SINK_H

#include <stddef.h>

#include <bugpack/error.h>

/* Takes the next bytes. Anything but BUGPACK_OK stops whoever gives them, with that status. */
typedef bugpack_status bp_sink(void *context, const void *bytes, size_t byte_count);

#endif
