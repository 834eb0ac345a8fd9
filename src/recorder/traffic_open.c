#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "recorder/traffic_private.h"
#include "recorder/traffic_record.h"

static const size_t message_max_bytes = (size_t)16 << 20;
static const uint32_t pin_max_bytes = (uint32_t)1 << 20;
static const uint64_t temp_file_max_bytes = (uint64_t)2 << 30; /* twice the largest ring */

void bp_traffic_identity_init(bp_traffic_identity *identity, const char *name, uint32_t number,
                              const bugpack_channel_options *options) {
    /* Ports that nobody has registered (RFC 6335), so that no dissector is chosen by chance. */
    static const unsigned client_port = 49152, server_port = 61440;
    *identity = (bp_traffic_identity){.is_ipv6 = options->is_ipv6,
                                      .host_is_server = options->host_is_server,
                                      .host_port = options->host_port,
                                      .peer_port = options->peer_port,
                                      .snap_bytes = options->snap_bytes,
                                      .number = number};
    memcpy(identity->name, name, strnlen(name, sizeof identity->name - 1));
    uint16_t client = (uint16_t)(client_port + number % 4096);
    uint16_t server = (uint16_t)(server_port + number % 4096);
    if (identity->host_port == 0) {
        identity->host_port = identity->host_is_server ? server : client;
    }
    if (identity->peer_port == 0) {
        identity->peer_port = identity->host_is_server ? client : server;
    }
}

size_t bp_traffic_pins_ring_bytes(uint32_t pin_bytes) {
    const size_t overhead_bytes = BP_TRAFFIC_RING_FRAME_BYTES + sizeof(uint64_t) +
                                  sizeof(bp_traffic_header) + BP_TRAFFIC_NAME_MAX_BYTES;
    /* A ring takes no record over a quarter of it; what that leaves over is for small messages. */
    size_t one_message = 4 * (pin_bytes + overhead_bytes + 8);
    size_t many_messages = pin_bytes + 256 * overhead_bytes;
    return one_message > many_messages ? one_message : many_messages;
}

static size_t kept_max_of(const bp_ring *ring, size_t prefix_bytes) {
    size_t before_bytes = prefix_bytes + sizeof(bp_traffic_header) + BP_TRAFFIC_NAME_MAX_BYTES;
    size_t fits = bp_ring_payload_max(ring) - before_bytes;
    return fits < message_max_bytes ? fits : message_max_bytes;
}

bugpack_status bp_traffic_new(const bp_traffic_identity *identity,
                              const bugpack_channel_options *options, bp_ring *ring, bp_ring *pins,
                              bp_traffic **ret_traffic, bugpack_error *error) {
    if (options->pin_bytes > pin_max_bytes) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot pin %u bytes: the most is 1 MiB",
                       (unsigned)options->pin_bytes);
    }
    bp_traffic *traffic = aligned_alloc(BP_TRAFFIC_CACHE_LINE, sizeof *traffic);
    if (traffic == NULL) {
        return bp_fail_memory(error, "open a channel");
    }
    memset(traffic, 0, sizeof *traffic);
    traffic->identity = *identity;
    traffic->kept_max = kept_max_of(ring, 0);
    traffic->kept_cut = 1u << BP_TRAFFIC_CUT_LIMIT;
    if (options->snap_bytes > 0 && options->snap_bytes < traffic->kept_max) {
        traffic->kept_max = options->snap_bytes;
        traffic->kept_cut = 1u << BP_TRAFFIC_CUT_SNAP;
    }
    traffic->filter = options->filter;
    traffic->filter_context = options->filter_context;
    if (options->filter != NULL) {
        traffic->filter_copy = malloc(traffic->kept_max);
    }
    if ((options->filter != NULL && traffic->filter_copy == NULL) ||
        pthread_mutex_init(&traffic->filter_mutex, NULL) != 0) {
        free(traffic->filter_copy);
        free(traffic);
        return bp_fail_memory(error, "open a channel");
    }
    if (pins != NULL) {
        uint64_t room = 4 * (uint64_t)(bp_ring_payload_max(pins) + BP_TRAFFIC_RING_FRAME_BYTES);
        traffic->pin_kept_max = kept_max_of(pins, sizeof(uint64_t));
        atomic_init(&traffic->pin_left,
                    options->pin_bytes > 0 ? (uint64_t)options->pin_bytes << 32 | room : 0);
    }
    traffic->ring = ring;
    traffic->pins = pins;
    *ret_traffic = traffic;
    return BUGPACK_OK;
}

void bp_traffic_free(bp_traffic *traffic) {
    if (traffic != NULL) {
        bp_ring_free(traffic->ring);
        bp_ring_free(traffic->pins);
        (void)pthread_mutex_destroy(&traffic->filter_mutex);
        free(traffic->filter_copy);
        free(traffic);
    }
}

const bp_traffic_identity *bp_traffic_identity_of(const bp_traffic *traffic) {
    return &traffic->identity;
}

bp_ring *bp_traffic_ring(const bp_traffic *traffic) {
    return traffic->ring;
}

bp_ring *bp_traffic_pins(const bp_traffic *traffic) {
    return traffic->pins;
}

static bugpack_status copy(bp_ring *ring, uint64_t until_ns, int dir_fd,
                           const bp_cancel_token *token, bp_temp_file *temp_file,
                           bp_ring_view *ret_view, bugpack_error *error) {
    bugpack_status status = bp_temp_file_open(temp_file, dir_fd, temp_file_max_bytes, error);
    temp_file->token = token;
    if (status == BUGPACK_OK) {
        status = bp_ring_copy(ring, until_ns, bp_temp_file_sink, temp_file, ret_view, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_temp_file_flush(temp_file, error);
    }
    return status;
}

bugpack_status bp_traffic_take_snapshot(bp_traffic *traffic, uint64_t until_ns,
                                        uint64_t wall_offset_ns, int dir_fd,
                                        const bp_cancel_token *token,
                                        bp_traffic_snapshot *ret_snapshot, bugpack_error *error) {
    bp_traffic_snapshot snapshot = {.identity = traffic->identity,
                                    .messages = BP_TEMP_FILE_INIT,
                                    .pins = BP_TEMP_FILE_INIT,
                                    .wall_offset_ns = wall_offset_ns};
    bugpack_status status = copy(traffic->ring, until_ns, dir_fd, token, &snapshot.messages,
                                 &snapshot.messages_view, error);
    if (status == BUGPACK_OK && traffic->pins != NULL) {
        status = copy(traffic->pins, until_ns, dir_fd, token, &snapshot.pins, &snapshot.pins_view,
                      error);
    }
    if (status != BUGPACK_OK) {
        bp_traffic_snapshot_release(&snapshot);
        return status;
    }
    *ret_snapshot = snapshot;
    return BUGPACK_OK;
}

void bp_traffic_snapshot_release(bp_traffic_snapshot *snapshot) {
    bp_temp_file_release(&snapshot->messages);
    bp_temp_file_release(&snapshot->pins);
}
