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
    (void)spice_read_bytes(message, 4 + 4); /* display channels, supported mouse modes */
    main_state->mouse_mode = spice_read_u32(message);
    main_state->has_agent = spice_read_u32(message) != 0;
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

static const char *mouse_mode(void *state, spice_reader *message) {
    (void)spice_read_u16(message);
    ((spice_main_state *)state)->mouse_mode = spice_read_u16(message);
    return NULL;
}

static const char *agent_connected(void *state, spice_reader *message) {
    (void)message;
    ((spice_main_state *)state)->has_agent = true;
    return NULL;
}

static const char *agent_disconnected(void *state, spice_reader *message) {
    (void)message;
    ((spice_main_state *)state)->has_agent = false;
    return NULL;
}

static const char *server_name(void *state, spice_reader *message) {
    uint32_t byte_count = spice_read_u32(message);
    const uint8_t *bytes = spice_read_bytes(message, byte_count);
    if (bytes != NULL) {
        char *name = ((spice_main_state *)state)->server_name;
        size_t most = byte_count < SPICE_NAME_MAX_BYTES ? byte_count : SPICE_NAME_MAX_BYTES;
        size_t length = strnlen((const char *)bytes, most);
        memcpy(name, bytes, length);
        name[length] = '\0';
    }
    return NULL;
}

const spice_opcode spice_main_opcodes[] = {
    {SPICE_MSG_MAIN_MIGRATE_BEGIN, "migrate_begin", 0, NULL},
    {SPICE_MSG_MAIN_MIGRATE_CANCEL, "migrate_cancel", 0, NULL},
    {SPICE_MSG_MAIN_INIT, "init", 32, main_init},
    {SPICE_MSG_MAIN_CHANNELS_LIST, "channels_list", 4, channels_list},
    {SPICE_MSG_MAIN_MOUSE_MODE, "mouse_mode", 4, mouse_mode},
    {SPICE_MSG_MAIN_MULTI_MEDIA_TIME, "multi_media_time", 4, spice_accept},
    {SPICE_MSG_MAIN_AGENT_CONNECTED, "agent_connected", 0, agent_connected},
    {SPICE_MSG_MAIN_AGENT_DISCONNECTED, "agent_disconnected", 0, agent_disconnected},
    {SPICE_MSG_MAIN_AGENT_DATA, "agent_data", 0, NULL},
    {SPICE_MSG_MAIN_AGENT_TOKEN, "agent_token", 0, NULL},
    {SPICE_MSG_MAIN_MIGRATE_SWITCH_HOST, "migrate_switch_host", 0, NULL},
    {SPICE_MSG_MAIN_MIGRATE_END, "migrate_end", 0, NULL},
    {SPICE_MSG_MAIN_NAME, "name", 4, server_name},
    {SPICE_MSG_MAIN_UUID, "uuid", 16, spice_accept},
    {SPICE_MSG_MAIN_AGENT_CONNECTED_TOKENS, "agent_connected_tokens", 0, agent_connected},
    {SPICE_MSG_MAIN_MIGRATE_BEGIN_SEAMLESS, "migrate_begin_seamless", 0, NULL},
    {SPICE_MSG_MAIN_MIGRATE_DST_SEAMLESS_ACK, "migrate_dst_seamless_ack", 0, NULL},
    {SPICE_MSG_MAIN_MIGRATE_DST_SEAMLESS_NACK, "migrate_dst_seamless_nack", 0, NULL},
    {.name = NULL},
};

const spice_opcode spice_inputs_opcodes[] = {
    {SPICE_MSG_INPUTS_INIT, "init", 2, spice_accept},
    {SPICE_MSG_INPUTS_KEY_MODIFIERS, "key_modifiers", 2, spice_accept},
    {SPICE_MSG_INPUTS_MOUSE_MOTION_ACK, "mouse_motion_ack", 0, NULL}, /* no motion is sent */
    {.name = NULL},
};

/* --- cursor ------------------------------------------------------------------------------- */

static const struct {
    const char *name, *gap;
} cursor_shapes[] = {
    [SPICE_CURSOR_TYPE_ALPHA] = {"alpha", "shape:alpha"},
    [SPICE_CURSOR_TYPE_MONO] = {"mono", "shape:mono"},
    [SPICE_CURSOR_TYPE_COLOR4] = {"color4", "shape:color4"},
    [SPICE_CURSOR_TYPE_COLOR8] = {"color8", "shape:color8"},
    [SPICE_CURSOR_TYPE_COLOR16] = {"color16", "shape:color16"},
    [SPICE_CURSOR_TYPE_COLOR24] = {"color24", "shape:color24"},
    [SPICE_CURSOR_TYPE_COLOR32] = {"color32", "shape:color32"},
};

/* The position, whether it is visible, and the shape, whose size is kept and whose pixels are not
 * drawn: a gap. */
static const char *read_cursor(spice_cursor_state *cursor, spice_reader *message, size_t between) {
    spice_cursor_state fresh = {.x = (int16_t)spice_read_u16(message)};
    fresh.y = (int16_t)spice_read_u16(message);
    (void)spice_read_bytes(message, between);
    fresh.is_visible = spice_read_u8(message) != 0;
    uint16_t flags = spice_read_u16(message);
    const char *gap = NULL;
    if ((flags & SPICE_CURSOR_FLAGS_NONE) == 0) {
        (void)spice_read_bytes(message, 8); /* its id, for a cache */
        uint8_t type = spice_read_u8(message);
        fresh.width = spice_read_u16(message);
        fresh.height = spice_read_u16(message);
        (void)spice_read_bytes(message, 2 + 2); /* the hot spot */
        if (type >= sizeof cursor_shapes / sizeof cursor_shapes[0]) {
            return SPICE_MALFORMED;
        }
        fresh.shape = cursor_shapes[type].name;
        gap = flags & SPICE_CURSOR_FLAGS_FROM_CACHE ? "shape:from_cache" : cursor_shapes[type].gap;
    }
    if (!message->is_short) {
        *cursor = fresh;
    }
    return gap;
}

static const char *cursor_init(void *state, spice_reader *message) {
    return read_cursor(state, message, 2 + 2); /* the length and frequency of its trail */
}

static const char *cursor_set(void *state, spice_reader *message) {
    return read_cursor(state, message, 0);
}

static const char *cursor_move(void *state, spice_reader *message) {
    spice_cursor_state *cursor = state;
    cursor->x = (int16_t)spice_read_u16(message);
    cursor->y = (int16_t)spice_read_u16(message);
    cursor->is_visible = true;
    return NULL;
}

static const char *cursor_hide(void *state, spice_reader *message) {
    (void)message;
    ((spice_cursor_state *)state)->is_visible = false;
    return NULL;
}

static const char *cursor_reset(void *state, spice_reader *message) {
    (void)message;
    *(spice_cursor_state *)state = (spice_cursor_state){0};
    return NULL;
}

const spice_opcode spice_cursor_opcodes[] = {
    {SPICE_MSG_CURSOR_INIT, "init", 11, cursor_init},
    {SPICE_MSG_CURSOR_RESET, "reset", 0, cursor_reset},
    {SPICE_MSG_CURSOR_SET, "set", 7, cursor_set},
    {SPICE_MSG_CURSOR_MOVE, "move", 4, cursor_move},
    {SPICE_MSG_CURSOR_HIDE, "hide", 0, cursor_hide},
    {SPICE_MSG_CURSOR_TRAIL, "trail", 0, NULL},
    {SPICE_MSG_CURSOR_INVAL_ONE, "inval_one", 0, spice_accept}, /* there is no cache of shapes */
    {SPICE_MSG_CURSOR_INVAL_ALL, "inval_all", 0, spice_accept},
    {.name = NULL},
};

/* --- playback ----------------------------------------------------------------------------- */

static const char *playback_data(void *state, spice_reader *message) {
    spice_playback_state *playback = state;
    if (playback->mode != SPICE_AUDIO_DATA_MODE_RAW) {
        return "mode:compressed";
    }
    playback->data_bytes += message->size - 4; /* its time */
    return NULL;
}

static const char *playback_mode(void *state, spice_reader *message) {
    (void)spice_read_u32(message);
    uint16_t mode = spice_read_u16(message);
    if (mode == 0 || mode >= SPICE_AUDIO_DATA_MODE_ENUM_END) {
        return SPICE_MALFORMED;
    }
    ((spice_playback_state *)state)->mode = mode;
    return mode == SPICE_AUDIO_DATA_MODE_RAW ? NULL : "mode:compressed";
}

static const char *playback_start(void *state, spice_reader *message) {
    spice_playback_state *playback = state;
    uint32_t channel_count = spice_read_u32(message);
    if (spice_read_u16(message) != SPICE_AUDIO_FMT_S16) {
        return SPICE_MALFORMED;
    }
    playback->channel_count = channel_count;
    playback->frequency = spice_read_u32(message);
    playback->is_playing = true;
    return NULL;
}

static const char *playback_stop(void *state, spice_reader *message) {
    (void)message;
    ((spice_playback_state *)state)->is_playing = false;
    return NULL;
}

static const char *playback_volume(void *state, spice_reader *message) {
    (void)state;
    (void)spice_read_bytes(message, (size_t)spice_read_u8(message) * 2);
    return NULL;
}

const spice_opcode spice_playback_opcodes[] = {
    {SPICE_MSG_PLAYBACK_DATA, "data", 4, playback_data},
    {SPICE_MSG_PLAYBACK_MODE, "mode", 6, playback_mode},
    {SPICE_MSG_PLAYBACK_START, "start", 14, playback_start},
    {SPICE_MSG_PLAYBACK_STOP, "stop", 0, playback_stop},
    {SPICE_MSG_PLAYBACK_VOLUME, "volume", 1, playback_volume},
    {SPICE_MSG_PLAYBACK_MUTE, "mute", 1, spice_accept},
    {SPICE_MSG_PLAYBACK_LATENCY, "latency", 4, spice_accept},
    {.name = NULL},
};
