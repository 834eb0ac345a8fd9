#include "hosts/spice/base.h"

#include <spice/enums.h>

/* The state of these is the channel. */
static const char *set_ack(void *state, spice_reader *message) {
    spice_channel *channel = state;
    uint32_t generation = spice_read_u32(message);
    uint32_t window = spice_read_u32(message);
    if (message->is_short) {
        return SPICE_MALFORMED;
    }
    channel->ack_generation = generation;
    channel->ack_window = window;
    channel->ack_left = window;
    return NULL;
}

static const char *ping(void *state, spice_reader *message) {
    spice_channel *channel = state;
    (void)spice_read_bytes(message, 4 + 8);
    if (message->is_short) {
        return SPICE_MALFORMED;
    }
    channel->ping_count++;
    channel->ping_bytes = message->size;
    channel->ping_at_ms = spice_now_ms();
    return NULL;
}

static const char *disconnecting(void *state, spice_reader *message) {
    (void)state;
    (void)message;
    return NULL; /* the end of the connection follows */
}

/* Cut, and without what is no ASCII: any server may send it. */
static const char *notify(void *state, spice_reader *message) {
    spice_channel *channel = state;
    (void)spice_read_bytes(message, 8);
    uint32_t severity = spice_read_u32(message);
    (void)spice_read_bytes(message, 4 + 4);
    uint32_t length = spice_read_u32(message);
    const uint8_t *text = spice_read_bytes(message, length);
    if (message->is_short || severity > SPICE_NOTIFY_SEVERITY_ERROR) {
        return SPICE_MALFORMED;
    }
    static const bugpack_level levels[] = {BUGPACK_LEVEL_INFO, BUGPACK_LEVEL_WARN,
                                           BUGPACK_LEVEL_ERROR};
    bugpack_notify(channel->client->session, levels[severity], channel->kind->name, "%.*s",
                   (int)(length > 200 ? 200 : length), (const char *)text);
    return NULL;
}

static const spice_opcode base_received_rows[] = {
    {SPICE_MSG_MIGRATE, "migrate", NULL},
    {SPICE_MSG_MIGRATE_DATA, "migrate_data", NULL},
    {SPICE_MSG_SET_ACK, "set_ack", set_ack},
    {SPICE_MSG_PING, "ping", ping},
    {SPICE_MSG_WAIT_FOR_CHANNELS, "wait_for_channels", NULL},
    {SPICE_MSG_DISCONNECTING, "disconnecting", disconnecting},
    {SPICE_MSG_NOTIFY, "notify", notify},
    {SPICE_MSG_LIST, "list", NULL},
};
const spice_opcodes spice_base_received = {base_received_rows, sizeof base_received_rows /
                                                                   sizeof base_received_rows[0]};

static const spice_opcode base_sent_rows[] = {
    {SPICE_MSGC_ACK_SYNC, "ack_sync", NULL},
    {SPICE_MSGC_ACK, "ack", NULL},
    {SPICE_MSGC_PONG, "pong", NULL},
};
const spice_opcodes spice_base_sent = {base_sent_rows,
                                       sizeof base_sent_rows / sizeof base_sent_rows[0]};

const spice_opcode *spice_opcode_row(const spice_opcodes *base, const spice_opcodes *own,
                                     uint16_t type, size_t *ret_place) {
    size_t row = spice_opcode_find(base, type);
    *ret_place = row;
    if (row < base->count) {
        return &base->rows[row];
    }
    row = spice_opcode_find(own, type);
    *ret_place = row < own->count ? base->count + row : SPICE_OPCODES_MAX;
    return row < own->count ? &own->rows[row] : NULL;
}
