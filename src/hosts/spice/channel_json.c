#include "hosts/spice/client.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

static void write_text(bugpack_writer *writer, const char *text) {
    bugpack_write_json_string(writer, text, strlen(text));
}

/* --- a channel, whose lock is held -------------------------------------------------------- */

/* The members of a channel in both entries, without the brace that ends it. */
static void write_head(bugpack_writer *writer, const spice_channel *channel) {
    const spice_failure *failure = &channel->failure;
    bugpack_printf(writer,
                   "{\"channel\": \"%s\", \"state\": \"%s\", \"ping\": {\"count\": %" PRIu64,
                   channel->kind->name, channel->phase, channel->ping_count);
    if (channel->ping_count > 0) {
        bugpack_printf(writer, ", \"last_bytes\": %zu, \"last_ms_ago\": %" PRId64,
                       channel->ping_bytes, spice_now_ms() - channel->ping_at_ms);
    }
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (channel->socket >= 0 &&
        getsockopt(channel->socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
        bugpack_printf(writer, ", \"tcp_rtt_us\": %" PRIu32, info.tcpi_rtt);
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
    size_t count = channel->result_count;
    for (size_t i = count < SPICE_RESULTS_KEPT ? 0 : count - SPICE_RESULTS_KEPT; i < count; i++) {
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

/* --- the session -------------------------------------------------------------------------- */

int spice_session_json(bugpack_writer *writer, void *context) {
    spice_client *client = context;
    spice_channel *shown = &client->channels[SPICE_DISPLAY];
    bugpack_printf(writer, "{\"host\": ");
    write_text(writer, client->host);
    bugpack_printf(writer, ", \"port\": %s, \"connection\": %u, \"channels\": [", client->port,
                   atomic_load(&client->connection_count));
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        spice_channel *channel = &client->channels[i];
        (void)pthread_mutex_lock(&channel->lock);
        write_head(writer, channel);
        (void)pthread_mutex_unlock(&channel->lock);
        bugpack_printf(writer, i + 1 < SPICE_CHANNEL_KINDS ? "}, " : "}], ");
    }
    (void)pthread_mutex_lock(&shown->lock);
    const spice_display *display = &shown->state.display;
    bugpack_printf(writer,
                   "\"display\": {\"draws\": %" PRIu64 ", \"width\": %" PRIu32
                   ", \"height\": %" PRIu32 "}",
                   display->draw_count, display->width, display->height);
    (void)pthread_mutex_unlock(&shown->lock);
    return bugpack_printf(writer, "}");
}
