#include "hosts/spice/client.h"

#include <inttypes.h>
#include <string.h>

static void write_text(bugpack_writer *writer, const char *text) {
    bugpack_write_json_string(writer, text, strlen(text));
}

static const char *yes_or_no(bool is_so) {
    return is_so ? "true" : "false";
}

/* Which of so many is the oldest that is kept. */
static size_t first_kept(size_t count, size_t kept_count) {
    return count < kept_count ? 0 : count - kept_count;
}

/* --- a channel, whose lock is held -------------------------------------------------------- */

/* What both entries have of a channel, without the brace that ends it. */
static void write_head(bugpack_writer *writer, const spice_channel *channel) {
    const spice_failure *failure = &channel->failure;
    bugpack_printf(writer,
                   "{\"channel\": \"%s\", \"state\": \"%s\", \"ping\": {\"count\": %" PRIu64,
                   channel->kind->name, channel->phase, channel->ping_count);
    if (channel->ping_count > 0) {
        bugpack_printf(writer, ", \"last_bytes\": %zu, \"last_ms_ago\": %" PRId64,
                       channel->ping_bytes, spice_now_ms() - channel->ping_at_ms);
    }
    if (channel->rtt_us > 0) {
        bugpack_printf(writer, ", \"tcp_rtt_us\": %" PRIu32, channel->rtt_us);
    }
    if (failure->text[0] == '\0') {
        bugpack_printf(writer, "}, \"failure\": null");
        return;
    }
    bugpack_printf(writer,
                   "}, \"failure\": {\"kind\": \"%s\", \"errno\": %d, \"text\": ", failure->kind,
                   failure->error_number);
    write_text(writer, failure->text);
    bugpack_printf(writer, "}");
}

/* Opcodes that came or went, by name; those without one are counted together. */
static void write_counter(bugpack_writer *writer, const spice_channel *channel,
                          bugpack_direction direction) {
    const spice_counter *counter = &channel->counters[direction];
    const spice_opcode *tables[] = {channel->base_opcodes[direction],
                                    channel->kind->opcodes[direction]};
    const char *comma = "";
    bugpack_printf(writer, "{\"bytes\": %" PRIu64 ", \"messages\": {", counter->bytes);
    for (size_t i = 0; i < 2; i++) {
        for (const spice_opcode *opcode = tables[i]; opcode->name != NULL; opcode++) {
            if (counter->messages[opcode->type] > 0) {
                bugpack_printf(writer, "%s\"%s\": %" PRIu64, comma, opcode->name,
                               counter->messages[opcode->type]);
                comma = ", ";
            }
        }
    }
    bugpack_printf(writer, "}, \"unknown_messages\": %" PRIu64 "}", counter->messages[0]);
}

static void write_results(bugpack_writer *writer, const spice_channel *channel) {
    const char *comma = "";
    for (size_t i = first_kept(channel->result_count, SPICE_RESULTS_KEPT);
         i < channel->result_count; i++) {
        const spice_result *result = &channel->results[i % SPICE_RESULTS_KEPT];
        bugpack_printf(writer,
                       "%s{\"opcode\": \"%s\", \"bytes\": %zu, \"ms_ago\": %" PRId64
                       ", \"result\": \"%s\"}",
                       comma, result->opcode, result->bytes, spice_now_ms() - result->at_ms,
                       result->gap ? result->gap : "ok");
        comma = ", ";
    }
}

int spice_channel_json(bugpack_writer *writer, void *context) {
    spice_channel *channel = context;
    (void)pthread_mutex_lock(&channel->lock);
    write_head(writer, channel);
    bugpack_printf(writer, ", \"received\": ");
    write_counter(writer, channel, BUGPACK_RECEIVED);
    bugpack_printf(writer, ", \"sent\": ");
    write_counter(writer, channel, BUGPACK_SENT);
    bugpack_printf(writer,
                   ", \"acknowledgements\": {\"generation\": %" PRIu32 ", \"window\": %" PRIu32
                   ", \"until_next\": %" PRIu32 "}, \"gap_count\": %" PRIu64 ", \"recent\": [",
                   channel->ack_generation, channel->ack_window, channel->ack_left,
                   channel->gap_count);
    write_results(writer, channel);
    (void)pthread_mutex_unlock(&channel->lock);
    return bugpack_printf(writer, "]}");
}

int spice_channels_json(bugpack_writer *writer, void *context) {
    spice_client *client = context;
    const char *wanted = bugpack_report_channel(writer);
    for (size_t i = 0; wanted != NULL && i < SPICE_CHANNEL_KINDS; i++) {
        if (strcmp(client->channels[i].kind->name, wanted) == 0) {
            return spice_channel_json(writer, &client->channels[i]);
        }
    }
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        bugpack_printf(writer, "%s", i > 0 ? ", " : "{\"channels\": [");
        (void)spice_channel_json(writer, &client->channels[i]);
    }
    return bugpack_printf(writer, "]}");
}

/* --- the session: the state of a channel each, whose lock is held --------------------------- */

static void write_server(bugpack_writer *writer, const spice_channel *channel) {
    const spice_main_state *state = &channel->state.main;
    bugpack_printf(writer, "\"server\": {\"name\": ");
    write_text(writer, state->server_name);
    bugpack_printf(writer,
                   ", \"session_id\": %" PRIu32 ", \"mouse_mode\": %" PRIu32 ", \"agent\": %s}",
                   state->session_id, state->mouse_mode, yes_or_no(state->has_agent));
}

static void write_display(bugpack_writer *writer, const spice_channel *channel) {
    const char *comma = "";
    const spice_display *display = &channel->state.display;
    bugpack_printf(writer,
                   "\"display\": {\"frames\": %" PRIu64 ", \"draws\": %" PRIu64
                   ", \"marked\": %s, \"surfaces\": [",
                   channel->frame_count, display->draw_count, yes_or_no(display->is_marked));
    for (size_t i = 0; i < SPICE_SURFACES_MAX; i++) {
        const spice_surface *surface = &display->surfaces[i];
        if (surface->pixels != NULL) {
            bugpack_printf(writer,
                           "%s{\"id\": %" PRIu32 ", \"width\": %" PRIu32 ", \"height\": %" PRIu32
                           ", \"primary\": %s}",
                           comma, surface->id, surface->width, surface->height,
                           yes_or_no(surface->is_primary));
            comma = ", ";
        }
    }
    bugpack_printf(writer, "]}");
}

static void write_cursor(bugpack_writer *writer, const spice_channel *channel) {
    const spice_cursor_state *cursor = &channel->state.cursor;
    bugpack_printf(writer, "\"cursor\": {\"x\": %d, \"y\": %d, \"visible\": %s", cursor->x,
                   cursor->y, yes_or_no(cursor->is_visible));
    if (cursor->shape != NULL) {
        bugpack_printf(writer, ", \"shape\": \"%s\", \"width\": %u, \"height\": %u", cursor->shape,
                       cursor->width, cursor->height);
    }
    bugpack_printf(writer, "}");
}

static void write_playback(bugpack_writer *writer, const spice_channel *channel) {
    const spice_playback_state *playback = &channel->state.playback;
    bugpack_printf(writer,
                   "\"playback\": {\"playing\": %s, \"channels\": %" PRIu32
                   ", \"frequency\": %" PRIu32 ", \"bytes\": %" PRIu64 "}",
                   yes_or_no(playback->is_playing), playback->channel_count, playback->frequency,
                   playback->data_bytes);
}

/* The last seconds, the newest last. */
static void write_seconds(bugpack_writer *writer, spice_client *client) {
    (void)pthread_mutex_lock(&client->lock);
    size_t first = first_kept(client->second_count, SPICE_SECONDS_KEPT);
    for (size_t i = first; i < client->second_count; i++) {
        const spice_second *second = &client->seconds[i % SPICE_SECONDS_KEPT];
        bugpack_printf(writer,
                       "%s{\"frames\": %" PRIu64 ", \"draws\": %" PRIu64
                       ", \"received_bytes\": %" PRIu64 ", \"sent_bytes\": %" PRIu64 "}",
                       i > first ? ", " : "", second->frames, second->draws, second->received_bytes,
                       second->sent_bytes);
    }
    (void)pthread_mutex_unlock(&client->lock);
}

int spice_session_json(bugpack_writer *writer, void *context) {
    static void (*const write_state[SPICE_CHANNEL_KINDS])(bugpack_writer *,
                                                          const spice_channel *) = {
        [SPICE_MAIN] = write_server,
        [SPICE_DISPLAY] = write_display,
        [SPICE_CURSOR] = write_cursor,
        [SPICE_PLAYBACK] = write_playback,
    };
    spice_client *client = context;
    const spice_options *options = client->options;
    bugpack_printf(writer, "{\"host\": ");
    write_text(writer, options->host);
    bugpack_printf(writer, ", \"port\": %s, \"tls\": %s, \"connection\": %u, \"channels\": [",
                   options->tls_port ? options->tls_port : options->port,
                   yes_or_no(options->tls_port != NULL), atomic_load(&client->connection_count));
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        spice_channel *channel = &client->channels[i];
        (void)pthread_mutex_lock(&channel->lock);
        write_head(writer, channel);
        (void)pthread_mutex_unlock(&channel->lock);
        bugpack_printf(writer, i + 1 < SPICE_CHANNEL_KINDS ? "}, " : "}], ");
    }
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        spice_channel *channel = &client->channels[i];
        if (write_state[i] != NULL) {
            (void)pthread_mutex_lock(&channel->lock);
            write_state[i](writer, channel);
            (void)pthread_mutex_unlock(&channel->lock);
            bugpack_printf(writer, ", ");
        }
    }
    bugpack_printf(writer, "\"seconds\": [");
    write_seconds(writer, client);
    return bugpack_printf(writer, "]}");
}
