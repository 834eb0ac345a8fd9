#include "archive/inflate.h"

#include <stdint.h>
#include <stdlib.h>

#include <isa-l/igzip_lib.h>

enum { piece_bytes = 64 * 1024 };

struct bp_inflater {
    struct inflate_state state;
    uint8_t piece[piece_bytes];
};

bp_inflater *bp_inflater_new(void) {
    bp_inflater *inflater = malloc(sizeof *inflater);
    if (inflater != NULL) {
        isal_inflate_init(&inflater->state);
    }
    return inflater;
}

void bp_inflater_free(bp_inflater *inflater) {
    free(inflater);
}

void bp_inflater_reset(bp_inflater *inflater) {
    isal_inflate_reset(&inflater->state);
}

bugpack_status bp_inflate(bp_inflater *inflater, const void *bytes, size_t byte_count,
                          bool *ret_is_over, bp_sink *sink, void *context) {
    struct inflate_state *state = &inflater->state;
    /* It only reads; the interface has no const. */
    state->next_in = (uint8_t *)(uintptr_t)bytes;
    state->avail_in = (uint32_t)byte_count;
    do {
        state->next_out = inflater->piece;
        state->avail_out = piece_bytes;
        int result = isal_inflate(state);
        size_t made = piece_bytes - state->avail_out;
        bugpack_status status = made > 0 ? sink(context, inflater->piece, made) : BUGPACK_OK;
        if (status != BUGPACK_OK) {
            return status;
        }
        if (result < 0 && result != ISAL_END_INPUT) {
            return BUGPACK_ERR_CORRUPT;
        }
    } while (state->block_state != ISAL_BLOCK_FINISH && state->avail_out == 0);
    *ret_is_over = state->block_state == ISAL_BLOCK_FINISH;
    /* Whole bytes that it has read ahead were behind the end. */
    return *ret_is_over && state->avail_in + (uint32_t)state->read_in_length / 8 > 0
               ? BUGPACK_ERR_CORRUPT
               : BUGPACK_OK;
}
