#include "hosts/spice/states.h"

#include <spice/enums.h>

bool spice_link_reply_read(const uint8_t *body, size_t size, spice_link_reply *ret_reply) {
    spice_reader reader = {.body = body, .size = size};
    spice_link_reply reply = {.error = spice_read_u32(&reader)};
    reply.public_key = spice_read_bytes(&reader, SPICE_PUBLIC_KEY_BYTES);
    uint32_t common_count = spice_read_u32(&reader);
    uint64_t caps_bytes = ((uint64_t)common_count + spice_read_u32(&reader)) * 4;
    uint32_t offset = spice_read_u32(&reader);
    if (reader.is_short || offset > size || caps_bytes > size - offset) {
        return false;
    }
    if (common_count > 0) {
        spice_reader caps = spice_reader_at(&reader, offset);
        reply.common_caps = spice_read_u32(&caps);
    }
    *ret_reply = reply;
    return true;
}

/* --- main --------------------------------------------------------------------------------- */

static const char *main_init(void *state, spice_reader *message) {
    spice_main_state *main_state = state;
    if (main_state->has_init) {
        return SPICE_MALFORMED;
    }
    main_state->has_init = true;
    main_state->session_id = spice_read_u32(message);
    return NULL;
}

static const char *channels_list(void *state, spice_reader *message) {
    spice_main_state *main_state = state;
    uint32_t count = spice_read_u32(message);
    if (main_state->has_list || count > SPICE_LISTED_MAX ||
        count > (message->size - message->at) / 2) {
        return SPICE_MALFORMED;
    }
    for (uint32_t i = 0; i < count; i++) {
        main_state->listed[i].type = spice_read_u8(message);
        main_state->listed[i].id = spice_read_u8(message);
    }
    main_state->listed_count = count;
    main_state->has_list = true;
    return NULL;
}

const spice_opcode spice_main_opcodes[] = {
    {SPICE_MSG_MAIN_INIT, "init", 32, main_init},
    {SPICE_MSG_MAIN_CHANNELS_LIST, "channels_list", 4, channels_list},
    {SPICE_MSG_MAIN_MOUSE_MODE, "mouse_mode", 4, spice_accept},
    {SPICE_MSG_MAIN_MULTI_MEDIA_TIME, "multi_media_time", 4, spice_accept},
    {SPICE_MSG_MAIN_AGENT_CONNECTED, "agent_connected", 0, spice_accept},
    {SPICE_MSG_MAIN_AGENT_DISCONNECTED, "agent_disconnected", 0, spice_accept},
    {SPICE_MSG_MAIN_AGENT_DATA, "agent_data", 0, NULL},
    {SPICE_MSG_MAIN_AGENT_TOKEN, "agent_token", 0, NULL},
    {.name = NULL},
};

const spice_opcode spice_inputs_opcodes[] = {
    {SPICE_MSG_INPUTS_INIT, "init", 2, spice_accept},
    {SPICE_MSG_INPUTS_KEY_MODIFIERS, "key_modifiers", 2, spice_accept},
    {SPICE_MSG_INPUTS_MOUSE_MOTION_ACK, "mouse_motion_ack", 0, NULL}, /* no motion is sent */
    {.name = NULL},
};
