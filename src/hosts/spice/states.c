#include "hosts/spice/states.h"

#include <spice/enums.h>

#define ROWS(rows)                                                                                 \
    { rows, sizeof(rows) / sizeof(rows)[0] }

static const char *done(const spice_reader *message) {
    return message->is_short ? SPICE_MALFORMED : NULL;
}

/* --- the link ---------------------------------------------------------------------------- */

bool spice_link_reply_read(const uint8_t *body, size_t size, spice_link_reply *ret_reply) {
    spice_reader reader = {.body = body, .size = size};
    spice_link_reply reply = {.error = spice_read_u32(&reader)};
    reply.public_key = spice_read_bytes(&reader, SPICE_PUBLIC_KEY_BYTES);
    uint32_t common_count = spice_read_u32(&reader);
    uint32_t channel_count = spice_read_u32(&reader);
    uint32_t offset = spice_read_u32(&reader);
    if (reader.is_short) {
        return false;
    }
    uint64_t caps_bytes = ((uint64_t)common_count + channel_count) * 4;
    if (offset > size || caps_bytes > size - offset) {
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
    uint32_t session_id = spice_read_u32(message);
    (void)spice_read_bytes(message, 4 + 4); /* display channels, supported mouse modes */
    uint32_t mouse_mode = spice_read_u32(message);
    uint32_t agent = spice_read_u32(message);
    (void)spice_read_bytes(message, 4 + 4 + 4); /* tokens, multimedia time, memory */
    if (message->is_short || main_state->has_init) {
        return SPICE_MALFORMED;
    }
    main_state->has_init = true;
    main_state->session_id = session_id;
    main_state->mouse_mode = mouse_mode;
    main_state->has_agent = agent != 0;
    return NULL;
}

static const char *channels_list(void *state, spice_reader *message) {
    spice_main_state *main_state = state;
    uint32_t count = spice_read_u32(message);
    if (message->is_short || main_state->has_list || count > SPICE_LISTED_MAX ||
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
    uint16_t mode = spice_read_u16(message);
    if (!message->is_short) {
        ((spice_main_state *)state)->mouse_mode = mode;
    }
    return done(message);
}

static const char *multi_media_time(void *state, spice_reader *message) {
    (void)state;
    (void)spice_read_u32(message);
    return done(message);
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
    spice_main_state *main_state = state;
    uint32_t byte_count = spice_read_u32(message);
    const uint8_t *bytes = spice_read_bytes(message, byte_count);
    if (bytes == NULL) {
        return SPICE_MALFORMED;
    }
    size_t length = strnlen((const char *)bytes, byte_count);
    length = length > SPICE_NAME_MAX_BYTES ? SPICE_NAME_MAX_BYTES : length;
    memcpy(main_state->server_name, bytes, length);
    main_state->server_name[length] = '\0';
    return NULL;
}

static const char *server_uuid(void *state, spice_reader *message) {
    (void)state;
    (void)spice_read_bytes(message, 16);
    return done(message);
}

static const spice_opcode main_rows[] = {
    {SPICE_MSG_MAIN_MIGRATE_BEGIN, "migrate_begin", NULL},
    {SPICE_MSG_MAIN_MIGRATE_CANCEL, "migrate_cancel", NULL},
    {SPICE_MSG_MAIN_INIT, "init", main_init},
    {SPICE_MSG_MAIN_CHANNELS_LIST, "channels_list", channels_list},
    {SPICE_MSG_MAIN_MOUSE_MODE, "mouse_mode", mouse_mode},
    {SPICE_MSG_MAIN_MULTI_MEDIA_TIME, "multi_media_time", multi_media_time},
    {SPICE_MSG_MAIN_AGENT_CONNECTED, "agent_connected", agent_connected},
    {SPICE_MSG_MAIN_AGENT_DISCONNECTED, "agent_disconnected", agent_disconnected},
    {SPICE_MSG_MAIN_AGENT_DATA, "agent_data", NULL},
    {SPICE_MSG_MAIN_AGENT_TOKEN, "agent_token", NULL},
    {SPICE_MSG_MAIN_MIGRATE_SWITCH_HOST, "migrate_switch_host", NULL},
    {SPICE_MSG_MAIN_MIGRATE_END, "migrate_end", NULL},
    {SPICE_MSG_MAIN_NAME, "name", server_name},
    {SPICE_MSG_MAIN_UUID, "uuid", server_uuid},
    {SPICE_MSG_MAIN_AGENT_CONNECTED_TOKENS, "agent_connected_tokens", agent_connected},
    {SPICE_MSG_MAIN_MIGRATE_BEGIN_SEAMLESS, "migrate_begin_seamless", NULL},
    {SPICE_MSG_MAIN_MIGRATE_DST_SEAMLESS_ACK, "migrate_dst_seamless_ack", NULL},
    {SPICE_MSG_MAIN_MIGRATE_DST_SEAMLESS_NACK, "migrate_dst_seamless_nack", NULL},
};
const spice_opcodes spice_main_opcodes = ROWS(main_rows);

/* --- inputs ------------------------------------------------------------------------------- */

static const char *modifiers(void *state, spice_reader *message) {
    uint16_t bits = spice_read_u16(message);
    if (!message->is_short) {
        ((spice_inputs_state *)state)->modifiers = bits;
        ((spice_inputs_state *)state)->is_ready = true;
    }
    return done(message);
}

static const spice_opcode inputs_rows[] = {
    {SPICE_MSG_INPUTS_INIT, "init", modifiers},
    {SPICE_MSG_INPUTS_KEY_MODIFIERS, "key_modifiers", modifiers},
    {SPICE_MSG_INPUTS_MOUSE_MOTION_ACK, "mouse_motion_ack", NULL}, /* no motion is sent */
};
const spice_opcodes spice_inputs_opcodes = ROWS(inputs_rows);

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

static void read_position(spice_cursor_state *cursor, spice_reader *message) {
    cursor->x = (int16_t)spice_read_u16(message);
    cursor->y = (int16_t)spice_read_u16(message);
}

/* The position, whether it is visible, and the shape, whose size is kept and whose pixels are not
 * drawn: a gap. */
static const char *read_cursor(spice_cursor_state *cursor, spice_reader *message, size_t between) {
    spice_cursor_state fresh = {0};
    read_position(&fresh, message);
    (void)spice_read_bytes(message, between);
    fresh.is_visible = spice_read_u8(message) != 0;
    uint16_t flags = spice_read_u16(message);
    const char *gap = NULL;
    if ((flags & SPICE_CURSOR_FLAGS_NONE) == 0) {
        (void)spice_read_bytes(message, 8); /* its id, for a cache */
        uint8_t type = spice_read_u8(message);
        fresh.width = spice_read_u16(message);
        fresh.height = spice_read_u16(message);
        fresh.hot_x = spice_read_u16(message);
        fresh.hot_y = spice_read_u16(message);
        fresh.has_shape = true;
        if (type >= sizeof cursor_shapes / sizeof cursor_shapes[0]) {
            return SPICE_MALFORMED;
        }
        fresh.shape = cursor_shapes[type].name;
        gap = flags & SPICE_CURSOR_FLAGS_FROM_CACHE ? "shape:from_cache" : cursor_shapes[type].gap;
    }
    if (message->is_short) {
        return SPICE_MALFORMED;
    }
    *cursor = fresh;
    return gap;
}

static const char *cursor_init(void *state, spice_reader *message) {
    return read_cursor(state, message, 2 + 2); /* the length and frequency of its trail */
}

static const char *cursor_set(void *state, spice_reader *message) {
    return read_cursor(state, message, 0);
}

static const char *cursor_move(void *state, spice_reader *message) {
    spice_cursor_state moved = *(spice_cursor_state *)state;
    read_position(&moved, message);
    if (message->is_short) {
        return SPICE_MALFORMED;
    }
    moved.is_visible = true;
    *(spice_cursor_state *)state = moved;
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

/* There is no cache of shapes. */
static const char *cursor_inval(void *state, spice_reader *message) {
    (void)state;
    (void)message;
    return NULL;
}

static const spice_opcode cursor_rows[] = {
    {SPICE_MSG_CURSOR_INIT, "init", cursor_init},
    {SPICE_MSG_CURSOR_RESET, "reset", cursor_reset},
    {SPICE_MSG_CURSOR_SET, "set", cursor_set},
    {SPICE_MSG_CURSOR_MOVE, "move", cursor_move},
    {SPICE_MSG_CURSOR_HIDE, "hide", cursor_hide},
    {SPICE_MSG_CURSOR_TRAIL, "trail", NULL},
    {SPICE_MSG_CURSOR_INVAL_ONE, "inval_one", cursor_inval},
    {SPICE_MSG_CURSOR_INVAL_ALL, "inval_all", cursor_inval},
};
const spice_opcodes spice_cursor_opcodes = ROWS(cursor_rows);

/* --- playback ----------------------------------------------------------------------------- */

static const char *playback_data(void *state, spice_reader *message) {
    spice_playback_state *playback = state;
    (void)spice_read_u32(message); /* its time */
    if (message->is_short) {
        return SPICE_MALFORMED;
    }
    if (playback->mode != SPICE_AUDIO_DATA_MODE_RAW) {
        return "mode:compressed";
    }
    playback->data_bytes += message->size - message->at;
    return NULL;
}

static const char *playback_mode(void *state, spice_reader *message) {
    (void)spice_read_u32(message);
    uint16_t mode = spice_read_u16(message);
    if (message->is_short || mode == 0 || mode >= SPICE_AUDIO_DATA_MODE_ENUM_END) {
        return SPICE_MALFORMED;
    }
    ((spice_playback_state *)state)->mode = mode;
    return mode == SPICE_AUDIO_DATA_MODE_RAW ? NULL : "mode:compressed";
}

static const char *playback_start(void *state, spice_reader *message) {
    spice_playback_state *playback = state;
    uint32_t channel_count = spice_read_u32(message);
    uint16_t format = spice_read_u16(message);
    uint32_t frequency = spice_read_u32(message);
    (void)spice_read_u32(message);
    if (message->is_short || format != SPICE_AUDIO_FMT_S16) {
        return SPICE_MALFORMED;
    }
    playback->channel_count = channel_count;
    playback->frequency = frequency;
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
    return done(message);
}

static const char *playback_mute(void *state, spice_reader *message) {
    bool is_muted = spice_read_u8(message) != 0;
    if (!message->is_short) {
        ((spice_playback_state *)state)->is_muted = is_muted;
    }
    return done(message);
}

static const char *playback_latency(void *state, spice_reader *message) {
    (void)state;
    (void)spice_read_u32(message);
    return done(message);
}

static const spice_opcode playback_rows[] = {
    {SPICE_MSG_PLAYBACK_DATA, "data", playback_data},
    {SPICE_MSG_PLAYBACK_MODE, "mode", playback_mode},
    {SPICE_MSG_PLAYBACK_START, "start", playback_start},
    {SPICE_MSG_PLAYBACK_STOP, "stop", playback_stop},
    {SPICE_MSG_PLAYBACK_VOLUME, "volume", playback_volume},
    {SPICE_MSG_PLAYBACK_MUTE, "mute", playback_mute},
    {SPICE_MSG_PLAYBACK_LATENCY, "latency", playback_latency},
};
const spice_opcodes spice_playback_opcodes = ROWS(playback_rows);
