#include "hosts/spice/channel_json.h"

#include <inttypes.h>
#include <string.h>

#include <spice/enums.h>

#include "hosts/spice/base.h"

static void write_text(bugpack_writer *writer, const char *text) {
    bugpack_write_json_string(writer, text, strlen(text));
}

static const char *yes_or_no(bool is_so) {
    return is_so ? "true" : "false";
}

static void write_failure(bugpack_writer *writer, const spice_failure *failure) {
    if (failure->text[0] == '\0') {
        bugpack_printf(writer, "null");
        return;
    }
    bugpack_printf(writer, "{\"kind\": \"%s\", \"errno\": %d, \"text\": ", failure->kind,
                   failure->error_number);
    write_text(writer, failure->text);
    bugpack_printf(writer, "}");
}

/* --- a channel ---------------------------------------------------------------------------- */

/* Opcodes that came or went, by name; those without one are counted together. */
static void write_counter(bugpack_writer *writer, const spice_counter *counter,
                          const spice_opcodes *base, const spice_opcodes *own) {
    const char *comma = "";
    bugpack_printf(writer, "{\"bytes\": %" PRIu64 ", \"messages\": {", counter->bytes);
    for (size_t i = 0; i < base->count + own->count; i++) {
        const spice_opcode *opcode = i < base->count ? &base->rows[i] : &own->rows[i - base->count];
        if (counter->messages[i] > 0) {
            bugpack_printf(writer, "%s\"%s\": %" PRIu64, comma, opcode->name, counter->messages[i]);
            comma = ", ";
        }
    }
    bugpack_printf(writer, "}, \"unknown_messages\": %" PRIu64 "}",
                   counter->messages[SPICE_OPCODES_MAX]);
}

static void write_ping(bugpack_writer *writer, const spice_channel *channel) {
    bugpack_printf(writer, "{\"count\": %" PRIu64, channel->ping_count);
    if (channel->ping_count > 0) {
        bugpack_printf(writer, ", \"last_bytes\": %zu, \"last_ms_ago\": %" PRId64,
                       channel->ping_bytes, spice_now_ms() - channel->ping_at_ms);
    }
    if (channel->rtt_us > 0) {
        bugpack_printf(writer, ", \"tcp_rtt_us\": %" PRIu32, channel->rtt_us);
    }
    bugpack_printf(writer, "}");
}

/* Which of so many is the oldest that is kept. */
static size_t first_kept(size_t count, size_t kept_count) {
    return count < kept_count ? 0 : count - kept_count;
}

static void write_results(bugpack_writer *writer, const spice_channel *channel) {
    size_t first = first_kept(channel->result_count, SPICE_RESULTS_KEPT);
    bugpack_printf(writer, "[");
    for (size_t i = first; i < channel->result_count; i++) {
        const spice_result *result = &channel->results[i % SPICE_RESULTS_KEPT];
        bugpack_printf(writer,
                       "%s{\"opcode\": \"%s\", \"bytes\": %zu, \"ms_ago\": %" PRId64
                       ", \"result\": \"%s\"}",
                       i > first ? ", " : "", result->opcode, result->bytes,
                       spice_now_ms() - result->at_ms, result->gap ? result->gap : "ok");
    }
    bugpack_printf(writer, "]");
}

static void write_channel(bugpack_writer *writer, spice_channel *channel) {
    (void)pthread_mutex_lock(&channel->lock);
    bugpack_printf(writer,
                   "{\"channel\": \"%s\", \"state\": \"%s\", \"received\": ", channel->kind->name,
                   channel->phase);
    write_counter(writer, &channel->received, &spice_base_received, channel->kind->received);
    bugpack_printf(writer, ", \"sent\": ");
    write_counter(writer, &channel->sent, &spice_base_sent, channel->kind->sent);
    bugpack_printf(writer,
                   ", \"acknowledgements\": {\"generation\": %" PRIu32 ", \"window\": %" PRIu32
                   ", \"until_next\": %" PRIu32 "}, \"ping\": ",
                   channel->ack_generation, channel->ack_window, channel->ack_left);
    write_ping(writer, channel);
    bugpack_printf(writer, ", \"gap_count\": %" PRIu64 ", \"failure\": ", channel->gap_count);
    write_failure(writer, &channel->failure);
    bugpack_printf(writer, ", \"recent\": ");
    write_results(writer, channel);
    bugpack_printf(writer, "}");
    (void)pthread_mutex_unlock(&channel->lock);
}

int spice_channel_json(bugpack_writer *writer, void *context) {
    write_channel(writer, context);
    return bugpack_write(writer, "", 0);
}

int spice_channels_json(bugpack_writer *writer, void *context) {
    spice_client *client = context;
    const char *wanted = bugpack_report_channel(writer);
    for (size_t i = 0; wanted != NULL && i < SPICE_CHANNEL_KINDS; i++) {
        if (strcmp(client->channels[i].kind->name, wanted) == 0) {
            return spice_channel_json(writer, &client->channels[i]);
        }
    }
    bugpack_printf(writer, "{\"channels\": [");
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        bugpack_printf(writer, "%s", i > 0 ? ", " : "");
        write_channel(writer, &client->channels[i]);
    }
    return bugpack_printf(writer, "]}");
}

/* --- the session -------------------------------------------------------------------------- */

static void write_connection(bugpack_writer *writer, spice_client *client) {
    const spice_options *options = client->options;
    spice_channel *channel = &client->channels[SPICE_MAIN];
    bugpack_printf(writer, "\"host\": ");
    write_text(writer, options->host);
    bugpack_printf(writer, ", \"port\": %s, \"tls\": %s, \"connection\": %u, \"server\": ",
                   options->tls_port ? options->tls_port : options->port,
                   yes_or_no(options->tls_port != NULL), atomic_load(&client->connection_count));
    (void)pthread_mutex_lock(&channel->lock);
    const spice_main_state *state = &channel->state.main;
    bugpack_printf(writer, "{\"name\": ");
    write_text(writer, state->server_name);
    bugpack_printf(writer,
                   ", \"session_id\": %" PRIu32 ", \"mouse_mode\": %" PRIu32 ", \"agent\": %s}",
                   state->session_id, state->mouse_mode, yes_or_no(state->has_agent));
    (void)pthread_mutex_unlock(&channel->lock);
}

static void write_channel_pings(bugpack_writer *writer, spice_client *client) {
    bugpack_printf(writer, ", \"channels\": [");
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        spice_channel *channel = &client->channels[i];
        (void)pthread_mutex_lock(&channel->lock);
        bugpack_printf(writer,
                       "%s{\"channel\": \"%s\", \"state\": \"%s\", \"ping\": ", i > 0 ? ", " : "",
                       channel->kind->name, channel->phase);
        write_ping(writer, channel);
        bugpack_printf(writer, ", \"failure\": ");
        write_failure(writer, &channel->failure);
        bugpack_printf(writer, "}");
        (void)pthread_mutex_unlock(&channel->lock);
    }
    bugpack_printf(writer, "]");
}

static void write_display(bugpack_writer *writer, spice_channel *channel) {
    const char *comma = "";
    (void)pthread_mutex_lock(&channel->lock);
    const spice_display *display = &channel->state.display;
    bugpack_printf(writer,
                   ", \"display\": {\"frames\": %" PRIu64 ", \"draws\": %" PRIu64
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
    (void)pthread_mutex_unlock(&channel->lock);
}

static void write_devices(bugpack_writer *writer, spice_client *client) {
    spice_channel *channel = &client->channels[SPICE_CURSOR];
    (void)pthread_mutex_lock(&channel->lock);
    const spice_cursor_state *cursor = &channel->state.cursor;
    bugpack_printf(writer, ", \"cursor\": {\"x\": %d, \"y\": %d, \"visible\": %s", cursor->x,
                   cursor->y, yes_or_no(cursor->is_visible));
    if (cursor->has_shape) {
        bugpack_printf(writer, ", \"shape\": \"%s\", \"width\": %u, \"height\": %u", cursor->shape,
                       cursor->width, cursor->height);
    }
    bugpack_printf(writer, "}");
    (void)pthread_mutex_unlock(&channel->lock);
    channel = &client->channels[SPICE_PLAYBACK];
    (void)pthread_mutex_lock(&channel->lock);
    const spice_playback_state *playback = &channel->state.playback;
    bugpack_printf(writer,
                   ", \"playback\": {\"playing\": %s, \"channels\": %" PRIu32
                   ", \"frequency\": %" PRIu32 ", \"bytes\": %" PRIu64 "}",
                   yes_or_no(playback->is_playing), playback->channel_count, playback->frequency,
                   playback->data_bytes);
    (void)pthread_mutex_unlock(&channel->lock);
}

/* The last seconds, the newest last. */
static void write_seconds(bugpack_writer *writer, spice_client *client) {
    (void)pthread_mutex_lock(&client->lock);
    size_t first = first_kept(client->second_count, SPICE_SECONDS_KEPT);
    bugpack_printf(writer, ", \"seconds\": [");
    for (size_t i = first; i < client->second_count; i++) {
        const spice_second *second = &client->seconds[i % SPICE_SECONDS_KEPT];
        bugpack_printf(writer,
                       "%s{\"frames\": %" PRIu64 ", \"draws\": %" PRIu64
                       ", \"received_bytes\": %" PRIu64 ", \"sent_bytes\": %" PRIu64 "}",
                       i > first ? ", " : "", second->frames, second->draws, second->received_bytes,
                       second->sent_bytes);
    }
    bugpack_printf(writer, "]");
    (void)pthread_mutex_unlock(&client->lock);
}

int spice_session_json(bugpack_writer *writer, void *context) {
    spice_client *client = context;
    bugpack_printf(writer, "{");
    write_connection(writer, client);
    write_channel_pings(writer, client);
    write_display(writer, &client->channels[SPICE_DISPLAY]);
    write_devices(writer, client);
    write_seconds(writer, client);
    return bugpack_printf(writer, "}");
}
