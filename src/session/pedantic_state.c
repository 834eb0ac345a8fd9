#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "report/accept.h"
#include "report/name.h"
#include "session/pedantic.h"
#include "session/session.h"

static const char state_name[] = "channel-state.json";

struct bp_pedantic_state {
    bugpack_writer given; /* what the host wrote; checked by the worker, not on the host's thread */
    int result;
    bp_instant asked;
    uint64_t duration_ns;
};

void bp_pedantic_state_free(bp_pedantic_state *state) {
    if (state != NULL) {
        bp_writer_release(&state->given);
        free(state);
    }
}

bugpack_status bp_pedantic_ask_state(bugpack *session, bp_order *order, bugpack_provider *provider,
                                     void *context) {
    bp_pedantic_state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    state->asked = bp_clock_now();
    bp_writer_init(&state->given, session->options.artefact_limit_bytes);
    bp_writer_set_channel(&state->given, order->channel);
    state->result = provider(&state->given, context);
    state->duration_ns = bp_clock_monotonic_ns() - state->asked.monotonic_ns;
    order->state = state;
    return BUGPACK_OK;
}

bool bp_pedantic_state_replaces(const bp_order *order, const char *name) {
    return order->state != NULL && bp_name_is_same_entry(name, state_name);
}

bugpack_status bp_pedantic_state_add(bp_order *order, bp_bundle *bundle, bugpack_error *error) {
    bp_pedantic_state *state = order->state;
    if (state == NULL) {
        return BUGPACK_OK;
    }
    bugpack_writer writer;
    bp_writer_init(&writer, SIZE_MAX / 4);
    bp_provider_accept(BP_CONTENT_JSON, state->given.content.max_size, state->result, &state->given,
                       &writer);
    writer.line.captured_wall_ns = state->asked.wall_ns;
    writer.line.duration_ns = state->duration_ns;
    return bp_bundle_put(bundle, state_name, BUGPACK_OK, &writer, error);
}
