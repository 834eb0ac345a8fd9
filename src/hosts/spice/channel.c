#include "hosts/spice/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <spice/protocol.h>

enum { header_bytes = 6, pixmap_cache_id = 1, glz_window_pixels = 4 << 20 };

/* --- messages that all channels have ------------------------------------------------------ */

static const char *set_ack(void *state, spice_reader *message) {
    spice_channel *channel = state;
    channel->ack_generation = spice_read_u32(message);
    channel->ack_window = channel->ack_left = spice_read_u32(message);
    return NULL;
}

static const char *ping(void *state, spice_reader *message) {
    spice_channel *channel = state;
    channel->ping_count++;
    channel->ping_bytes = message->size;
    channel->ping_at_ms = spice_now_ms();
    return NULL;
}

/* Cut, as any server may send it. */
static const char *notify(void *state, spice_reader *message) {
    static const bugpack_level levels[] = {BUGPACK_LEVEL_INFO, BUGPACK_LEVEL_WARN,
                                           BUGPACK_LEVEL_ERROR};
    spice_channel *channel = state;
    (void)spice_read_bytes(message, 8); /* its time */
    uint32_t severity = spice_read_u32(message);
    (void)spice_read_bytes(message, 4 + 4);
    uint32_t length = spice_read_u32(message);
    const uint8_t *text = spice_read_bytes(message, length);
    if (text == NULL || severity > SPICE_NOTIFY_SEVERITY_ERROR) {
        return SPICE_MALFORMED;
    }
    bugpack_notify(channel->client->session, levels[severity], channel->kind->name, NULL, "%.*s",
                   (int)(length > 200 ? 200 : length), (const char *)text);
    return NULL;
}

static const spice_opcode base_received[] = {
    {SPICE_MSG_SET_ACK, "set_ack", 8, set_ack},
    {SPICE_MSG_PING, "ping", 12, ping},
    {SPICE_MSG_WAIT_FOR_CHANNELS, "wait_for_channels", 0, NULL},
    {SPICE_MSG_DISCONNECTING, "disconnecting", 0, spice_accept}, /* the end follows */
    {SPICE_MSG_NOTIFY, "notify", 24, notify},
    {.name = NULL},
};
static const spice_opcode base_sent[] = {
    {SPICE_MSGC_ACK_SYNC, "ack_sync", 0, NULL},
    {SPICE_MSGC_ACK, "ack", 0, NULL},
    {SPICE_MSGC_PONG, "pong", 0, NULL},
    {.name = NULL},
};
static const spice_opcode *const base_opcodes[2] = {
    [BUGPACK_RECEIVED] = base_received, [BUGPACK_SENT] = base_sent};

/* Counts a message and records it. Its opcode, or NULL. */
static const spice_opcode *record(spice_channel *channel, bugpack_direction direction,
                                  uint16_t type, const uint8_t *message, size_t size) {
    const spice_opcode *opcode = spice_opcode_find(base_opcodes[direction], type);
    opcode = opcode ? opcode : spice_opcode_find(channel->kind->opcodes[direction], type);
    (void)pthread_mutex_lock(&channel->lock);
    channel->counters[direction].bytes += size;
    channel->counters[direction].messages[opcode ? type : 0]++;
    (void)pthread_mutex_unlock(&channel->lock);
    bugpack_traffic(channel->traffic, direction, type, opcode ? opcode->name : NULL, message, size);
    return opcode;
}

static bool transmit(spice_channel *channel, uint16_t type, const void *body, size_t body_bytes,
                     spice_failure *failure) {
    uint8_t message[header_bytes + 32];
    size_t size = header_bytes + body_bytes;
    spice_put(message, type, 2);
    spice_put(message + 2, body_bytes, 4);
    memcpy(message + header_bytes, body, body_bytes);
    (void)record(channel, BUGPACK_SENT, type, message, size);
    return spice_write(channel->socket, message, size, SPICE_SEND_MS, failure);
}

/* --- what the kinds do -------------------------------------------------------------------- */

static bool start_channel(spice_channel *channel);

/* Starts the first channel of each kind that the server offers; of the others a gap is told. */
static void start_others(spice_channel *channel) {
    spice_client *client = channel->client;
    const spice_main_state *offered = &channel->state.main; /* written by this thread alone */
    for (size_t i = 0; i < offered->listed_count; i++) {
        const char *gap = offered->listed[i].id == 0 ? "channel:not_supported" : "channel:second";
        for (size_t k = 0; k < SPICE_CHANNEL_KINDS && offered->listed[i].id == 0; k++) {
            spice_channel *other = &client->channels[k];
            if (other->kind->type == offered->listed[i].type) {
                gap = NULL;
                if (!other->is_started && !start_channel(other)) {
                    bugpack_log(client->session, BUGPACK_LEVEL_ERROR, other->kind->name,
                                "no thread");
                }
            }
        }
        if (gap != NULL) {
            spice_report_gap(channel, NULL, gap);
        }
    }
}

static bool on_main_message(spice_channel *channel, spice_failure *failure) {
    spice_main_state *main_state = &channel->state.main;
    if (main_state->has_init &&
        channel->counters[BUGPACK_SENT].messages[SPICE_MSGC_MAIN_ATTACH_CHANNELS] == 0) {
        return transmit(channel, SPICE_MSGC_MAIN_ATTACH_CHANNELS, "", 0, failure);
    }
    if (main_state->has_list && main_state->listed_count > 0) {
        start_others(channel);
        (void)pthread_mutex_lock(&channel->lock);
        main_state->listed_count = 0; /* done */
        (void)pthread_mutex_unlock(&channel->lock);
    }
    return true;
}

/* Without a cache, whose images a server would refer to. It compresses by GLZ as it likes. */
static bool init_display(spice_channel *channel, spice_failure *failure) {
    uint8_t body[14] = {pixmap_cache_id};
    body[9] = pixmap_cache_id;
    spice_put(body + 10, glz_window_pixels, 4);
    return transmit(channel, SPICE_MSGC_DISPLAY_INIT, body, sizeof body, failure);
}

static const spice_opcode main_sent[] = {
    {SPICE_MSGC_MAIN_ATTACH_CHANNELS, "attach_channels", 0, NULL}, {.name = NULL}};
static const spice_opcode display_sent[] = {{SPICE_MSGC_DISPLAY_INIT, "init", 0, NULL},
                                            {.name = NULL}};
static const spice_opcode nothing_sent[] = {{.name = NULL}};

/* Weights add up to BUGPACK_TRAFFIC_WEIGHT_TOTAL, so that display has 4/5 of three quarters of the
 * traffic budget: 30 MiB. */
static const spice_kind kinds[SPICE_CHANNEL_KINDS] = {
    [SPICE_MAIN] =
        {.type = SPICE_CHANNEL_MAIN,
         .name = "main",
         .thread_name = "spice-main",
         .weight = 6,
         .message_max_bytes = 4 << 20,
         .opcodes = {[BUGPACK_SENT] = main_sent, [BUGPACK_RECEIVED] = spice_main_opcodes},
         .on_message = on_main_message},
    [SPICE_DISPLAY] =
        {.type = SPICE_CHANNEL_DISPLAY,
         .name = "display",
         .thread_name = "spice-display",
         .weight = 40,
         .message_max_bytes = 64 << 20,
         .opcodes = {[BUGPACK_SENT] = display_sent, [BUGPACK_RECEIVED] = spice_display_opcodes},
         .on_up = init_display},
    [SPICE_INPUTS] =
        {.type = SPICE_CHANNEL_INPUTS,
         .name = "inputs",
         .thread_name = "spice-inputs",
         .weight = 4,
         .message_max_bytes = 1 << 20,
         .payload = BUGPACK_PAYLOAD_NONE,
         .opcodes = {[BUGPACK_SENT] = nothing_sent, [BUGPACK_RECEIVED] = spice_inputs_opcodes}},
};

/* --- receiving ---------------------------------------------------------------------------- */

static bool reserve(spice_channel *channel, size_t byte_count, spice_failure *failure) {
    if (byte_count <= channel->buffer_bytes) {
        return true;
    }
    uint8_t *larger = realloc(channel->buffer, byte_count);
    if (larger == NULL) {
        return spice_fail(failure, "protocol", ENOMEM, "no memory for a message of %zu bytes",
                          byte_count);
    }
    channel->buffer = larger;
    channel->buffer_bytes = byte_count;
    return true;
}

/* Reads a message into the buffer, which grows as the bytes come: no server gets memory for a size
 * that it only names. */
static bool receive(spice_channel *channel, uint16_t *ret_type, size_t *ret_body_bytes,
                    spice_failure *failure) {
    enum { first_bytes = 64 << 10 };
    int64_t deadline_ms = spice_now_ms() + SPICE_MESSAGE_MS;
    if (!reserve(channel, first_bytes, failure) ||
        !spice_read(channel->socket, channel->buffer, header_bytes, SPICE_MESSAGE_MS, failure)) {
        return false;
    }
    spice_reader header = {.body = channel->buffer, .size = header_bytes};
    uint16_t type = spice_read_u16(&header);
    size_t body_bytes = spice_read_u32(&header);
    if (body_bytes > channel->kind->message_max_bytes) {
        return spice_fail(failure, "protocol", EMSGSIZE, "a message of type %u has %zu bytes",
                          (unsigned)type, body_bytes);
    }
    size_t wanted = header_bytes + body_bytes;
    for (size_t at = header_bytes; at < wanted;) {
        size_t space = channel->buffer_bytes < 2 * at ? 2 * at : channel->buffer_bytes;
        space = space > wanted ? wanted : space;
        if (!reserve(channel, space, failure) ||
            !spice_read(channel->socket, channel->buffer + at, space - at,
                        deadline_ms - spice_now_ms(), failure)) {
            return false;
        }
        at = space;
    }
    *ret_type = type;
    *ret_body_bytes = body_bytes;
    return true;
}

/* Sends the answer that a message asks for: an acknowledgement of the new window, a pong. */
static bool answer(spice_channel *channel, uint16_t type, const uint8_t *body,
                   spice_failure *failure) {
    if (type == SPICE_MSG_SET_ACK) {
        return transmit(channel, SPICE_MSGC_ACK_SYNC, body, 4, failure);
    }
    return type != SPICE_MSG_PING || transmit(channel, SPICE_MSGC_PONG, body, 12, failure);
}

/* Counts a message against the window; whether an acknowledgement is due. With the lock. */
static bool is_ack_due(spice_channel *channel) {
    if (channel->ack_window == 0 || --channel->ack_left > 0) {
        return false;
    }
    channel->ack_left = channel->ack_window;
    return true;
}

/* Carries out the message in the buffer. */
static bool handle(spice_channel *channel, uint16_t type, size_t body_bytes,
                   spice_failure *failure) {
    const uint8_t *body = channel->buffer + header_bytes;
    spice_reader message = {.body = body, .size = body_bytes};
    const spice_opcode *opcode =
        record(channel, BUGPACK_RECEIVED, type, channel->buffer, header_bytes + body_bytes);
    const char *gap = "unknown", *name = opcode ? opcode->name : "unknown";
    (void)pthread_mutex_lock(&channel->lock);
    bool is_due = is_ack_due(channel);
    if (opcode != NULL) {
        bool is_base = type < SPICE_MSG_BASE_LAST;
        gap = spice_carry_out(opcode, is_base ? (void *)channel : &channel->state, &message);
    }
    channel->results[channel->result_count++ % SPICE_RESULTS_KEPT] =
        (spice_result){spice_now_ms(), name, gap, body_bytes};
    channel->gap_count += gap != NULL;
    (void)pthread_mutex_unlock(&channel->lock);
    if (opcode == NULL) {
        bugpack_gap_unknown(channel->client->session, channel->kind->name, type, body, body_bytes);
    } else if (gap != NULL) {
        spice_report_gap(channel, name, gap);
    }
    return (gap != NULL || answer(channel, type, body, failure)) &&
           (!is_due || transmit(channel, SPICE_MSGC_ACK, "", 0, failure)) &&
           (channel->kind->on_message == NULL || channel->kind->on_message(channel, failure));
}

static bool serve(spice_channel *channel, spice_failure *failure) {
    struct pollfd input = {.fd = channel->socket, .events = POLLIN};
    uint16_t type = 0;
    size_t body_bytes = 0;
    for (;;) {
        bugpack_watchdog_pause(channel->watchdog);
        (void)poll(&input, 1, -1);
        /* A server that stops in a message is no hang: that has a time limit of its own. */
        if (!receive(channel, &type, &body_bytes, failure)) {
            return false;
        }
        bugpack_watchdog_beat(channel->watchdog);
        if (!handle(channel, type, body_bytes, failure)) {
            return false;
        }
    }
}

/* --- the thread --------------------------------------------------------------------------- */

static void open_records(spice_channel *channel) {
    bugpack_session *session = channel->client->session;
    bugpack_channel_options traffic = BUGPACK_CHANNEL_OPTIONS_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    traffic.weight = channel->kind->weight;
    traffic.peer_port = (uint16_t)strtoul(channel->client->port, NULL, 10);
    traffic.payload = channel->kind->payload;
    if (bugpack_channel_open(session, channel->kind->name, &traffic, &channel->traffic, &error) !=
            BUGPACK_OK ||
        bugpack_watchdog_open(session, channel->kind->name, SPICE_HANG_MS, &channel->watchdog,
                              &error) != BUGPACK_OK) {
        bugpack_log(session, BUGPACK_LEVEL_WARN, channel->kind->name, "%s", error.message);
    }
    bugpack_watchdog_pause(channel->watchdog);
    (void)bugpack_crash_thread_init(NULL);
}

/* Lets others end the connection from now on; false if they want to already. */
static bool publish(spice_channel *channel, int socket, const char *phase) {
    (void)pthread_mutex_lock(&channel->lock);
    channel->socket = socket;
    channel->phase = phase;
    bool is_wanted = !atomic_load(&channel->client->is_ending);
    (void)pthread_mutex_unlock(&channel->lock);
    return is_wanted;
}

static bool link_up(spice_channel *channel, spice_failure *failure) {
    spice_client *client = channel->client;
    const spice_channel *first = &client->channels[SPICE_MAIN];
    /* Main's thread set it before it started this one. */
    uint32_t id = channel == first ? 0 : first->state.main.session_id;
    int fd;
    if (!spice_connect(client->host, client->port, &fd, failure) ||
        !publish(channel, fd, "connecting") ||
        !spice_link(fd, channel->kind->type, id, client->password, channel->traffic, failure) ||
        !publish(channel, fd, "up")) {
        return false;
    }
    (void)printf("%s is up\n", channel->kind->name);
    bugpack_log(client->session, BUGPACK_LEVEL_INFO, channel->kind->name, "up");
    return channel->kind->on_up == NULL || channel->kind->on_up(channel, failure);
}

static void note_end(spice_channel *channel, const spice_failure *failure) {
    (void)pthread_mutex_lock(&channel->lock);
    bool was_up = strcmp(channel->phase, "up") == 0;
    channel->phase = "lost";
    channel->failure = *failure;
    int fd = channel->socket;
    channel->socket = -1;
    (void)pthread_mutex_unlock(&channel->lock);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (!atomic_load(&channel->client->is_ending)) {
        spice_report_lost(channel, failure, was_up);
    }
    atomic_store(&channel->client->is_lost, true);
}

static void *run_channel(void *argument) {
    spice_channel *channel = argument;
    spice_failure failure = {.kind = "io"};
    (void)pthread_setname_np(pthread_self(), channel->kind->thread_name);
    open_records(channel);
    if (link_up(channel, &failure)) {
        (void)serve(channel, &failure);
    }
    bugpack_watchdog_close(channel->watchdog);
    note_end(channel, &failure);
    bugpack_channel_close(channel->traffic);
    free(channel->buffer);
    channel->buffer = NULL;
    channel->buffer_bytes = 0;
    channel->watchdog = NULL;
    channel->traffic = NULL;
    return NULL;
}

/* --- connections -------------------------------------------------------------------------- */

void spice_channels_init(spice_client *client) {
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        spice_channel *channel = &client->channels[i];
        *channel = (spice_channel){.kind = &kinds[i], .client = client};
        channel->base_opcodes = base_opcodes;
        channel->socket = -1;
        channel->phase = "closed";
        (void)pthread_mutex_init(&channel->lock, NULL);
    }
}

/* Clears the state of the last connection; reports may be reading it. */
static void forget(spice_channel *channel) {
    (void)pthread_mutex_lock(&channel->lock);
    if (channel->kind->type == SPICE_CHANNEL_DISPLAY) {
        spice_display_clear(&channel->state.display);
    }
    memset(&channel->counters, 0, sizeof *channel - offsetof(spice_channel, counters));
    channel->phase = "closed";
    (void)pthread_mutex_unlock(&channel->lock);
}

static bool start_channel(spice_channel *channel) {
    (void)pthread_mutex_lock(&channel->lock);
    channel->phase = "connecting";
    (void)pthread_mutex_unlock(&channel->lock);
    channel->is_started = pthread_create(&channel->thread, NULL, run_channel, channel) == 0;
    return channel->is_started;
}

bool spice_connection_start(spice_client *client) {
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        forget(&client->channels[i]);
    }
    atomic_store(&client->is_ending, false);
    atomic_store(&client->is_lost, false);
    atomic_fetch_add(&client->connection_count, 1);
    return start_channel(&client->channels[SPICE_MAIN]);
}

void spice_connection_end(spice_client *client) {
    atomic_store(&client->is_ending, true);
    /* Main first: once its thread has ended no other is started. */
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        spice_channel *channel = &client->channels[i];
        (void)pthread_mutex_lock(&channel->lock);
        if (channel->socket >= 0) {
            (void)shutdown(channel->socket, SHUT_RDWR);
        }
        (void)pthread_mutex_unlock(&channel->lock);
        if (channel->is_started) {
            (void)pthread_join(channel->thread, NULL);
            channel->is_started = false;
        }
    }
}
