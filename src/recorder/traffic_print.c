#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/status.h"
#include "recorder/traffic_lane.h"
#include "json/json.h"

static const size_t line_max_bytes = 64 * 1024;

/* What is printed, and where to: one of the two. */
typedef struct choice {
    bp_sink *pcap_sink; /* NULL: frames are only counted */
    bp_sink *index_sink;
    void *context;
} choice;

typedef struct printer {
    choice how;
    bp_traffic_lane *lanes;
    size_t lane_count;
    bp_buffer line; /* of the index */
    uint64_t frame_count;
    bp_traffic_extent extent;
    bp_traffic_lane *source; /* whose bytes are being fetched */
    unsigned char segment[BP_PCAP_SEGMENT_BYTES];
} printer;

/* What the frames of a pcap cannot say: the cuts of a message, as part of its index line. */
static void print_cuts(unsigned cuts, bp_buffer *out) {
    static const char *const names[BP_TRAFFIC_CUT_COUNT] = {
        [BP_TRAFFIC_CUT_SNAP] = "snap_length", [BP_TRAFFIC_CUT_FILTER] = "filter",
        [BP_TRAFFIC_CUT_LIMIT] = "size_limit", [BP_TRAFFIC_CUT_ABSENT] = "no_bytes",
        [BP_TRAFFIC_CUT_PIN] = "pin",
    };
    const char *before = ",\"cut_by\":[";
    bool has_any = false;
    for (unsigned cut = 0; cut < BP_TRAFFIC_CUT_COUNT; cut++) {
        if ((cuts >> cut & 1) != 0) {
            (void)bp_buffer_printf(out, "%s\"%s\"", before, names[cut]);
            before = ",";
            has_any = true;
        }
    }
    if (has_any) {
        (void)bp_buffer_append_char(out, ']');
    }
}

/* A line of traffic-index.jsonl for the current message of a lane. `frame`: its first frame in the
 * pcap, from 1 as Wireshark counts. */
static void append_index_line(const bp_traffic_lane *at, uint64_t frame, bp_buffer *out) {
    const bp_traffic_record *message = &at->current;
    const char *channel = at->snapshot->identity.name;
    char time[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(at->current_wall_ns, time);
    (void)bp_buffer_printf(
        out, "{\"frame\":%llu,\"time\":\"%s\",\"monotonic_ns\":%llu,\"channel\":",
        (unsigned long long)frame, time, (unsigned long long)message->monotonic_ns);
    (void)bp_json_append_string(out, channel, strnlen(channel, sizeof at->snapshot->identity.name));
    (void)bp_buffer_printf(out, ",\"seq\":%llu,\"direction\":\"%s\",\"type\":%llu",
                           (unsigned long long)message->sequence,
                           message->direction == BUGPACK_SENT ? "sent" : "received",
                           (unsigned long long)message->type);
    if (message->name_bytes > 0) {
        (void)bp_buffer_append_text(out, ",\"type_name\":");
        (void)bp_json_append_string(out, message->name, message->name_bytes);
    }
    (void)bp_buffer_printf(out, ",\"bytes\":%llu,\"kept_bytes\":%llu",
                           (unsigned long long)message->original_bytes,
                           (unsigned long long)message->byte_count);
    print_cuts(message->cuts, out);
    (void)bp_buffer_append_text(out, at->is_pinned ? ",\"pinned\":true}\n" : "}\n");
}

/* A bp_pcap_fetch: from the window, or for more than it holds straight from the file. */
static const void *fetch(void *context, uint64_t offset, size_t byte_count) {
    printer *print = context;
    bp_traffic_lane *at = print->source;
    const bp_temp_file *temp_file = at->is_pinned ? &at->snapshot->pins : &at->snapshot->messages;
    offset += at->current.bytes_offset;
    if (byte_count <= BP_TRAFFIC_WINDOW_BYTES) {
        bp_traffic_window_move(&at->window, temp_file);
        return bp_traffic_window_see(&at->window, offset, byte_count);
    }
    for (size_t done = 0; done < byte_count;) {
        int64_t got =
            bp_temp_file_read(temp_file, offset + done, print->segment + done, byte_count - done);
        if (got <= 0) {
            return NULL;
        }
        done += (size_t)got;
    }
    return print->segment;
}

static void count(bp_traffic_extent *extent, bp_traffic_lane *at) {
    const bp_traffic_record *current = &at->current;
    if (current->sequence >= at->expected_sequence) {
        extent->missing_count += current->sequence - at->expected_sequence;
        at->expected_sequence = current->sequence + 1;
    }
    extent->message_count++;
    extent->pinned_count += at->is_pinned;
    extent->cut_count += current->byte_count < current->original_bytes;
    for (unsigned cut = 0; cut < BP_TRAFFIC_CUT_COUNT; cut++) {
        extent->cut_counts[cut] += current->cuts >> cut & 1;
    }
    extent->from_wall_ns = extent->message_count == 1 ? at->current_wall_ns : extent->from_wall_ns;
    extent->to_wall_ns = at->current_wall_ns;
}

static bugpack_status index_current(printer *print, const bp_traffic_lane *at, uint64_t frame) {
    bp_buffer_clear(&print->line);
    append_index_line(at, frame, &print->line);
    return print->line.status != BUGPACK_OK
               ? print->line.status
               : print->how.index_sink(print->how.context, print->line.data, print->line.size);
}

static bugpack_status print_current(printer *print, bp_traffic_lane *at) {
    bugpack_status status = BUGPACK_OK;
    uint64_t frames_before = at->stream.frame_count;
    if (!at->stream.is_open) {
        status = bp_pcap_write_open(&at->stream, at->current_wall_ns, print->how.pcap_sink,
                                    print->how.context);
    }
    if (status == BUGPACK_OK) {
        bp_pcap_message message = {.direction = at->current.direction,
                                   .wall_ns = at->current_wall_ns,
                                   .byte_count = at->current.byte_count,
                                   .original_bytes = at->current.original_bytes,
                                   .fetch = fetch,
                                   .source = print};
        print->source = at;
        status =
            bp_pcap_write_message(&at->stream, &message, print->how.pcap_sink, print->how.context);
    }
    if (status == BUGPACK_OK && print->how.index_sink != NULL) {
        status =
            index_current(print, at, print->frame_count + at->stream.message_frame - frames_before);
    }
    print->frame_count += at->stream.frame_count - frames_before;
    count(&print->extent, at);
    return status;
}

/* At most 64 channels: looking at each is cheaper than a heap. */
static bp_traffic_lane *earliest(const printer *print) {
    bp_traffic_lane *found = NULL;
    for (size_t i = 0; i < print->lane_count; i++) {
        bp_traffic_lane *at = &print->lanes[i];
        if (at->has_current && (found == NULL || at->current_wall_ns < found->current_wall_ns)) {
            found = at;
        }
    }
    return found;
}

static bugpack_status print_all(printer *print, bugpack_error *error) {
    bugpack_status status = print->how.pcap_sink != NULL
                                ? bp_pcap_write_header(print->how.pcap_sink, print->how.context)
                                : BUGPACK_OK;
    bp_traffic_lane *at;
    while (status == BUGPACK_OK && (at = earliest(print)) != NULL) {
        status = print_current(print, at);
        bp_traffic_lane_advance(at);
    }
    for (size_t i = 0; i < print->lane_count; i++) {
        if (print->lanes[i].window.system_errno != 0) {
            return bp_fail_errno(error, print->lanes[i].window.system_errno,
                                 "cannot read recorded traffic");
        }
    }
    if (status == BUGPACK_ERR_IO) {
        return bp_fail(error, status, "cannot read recorded traffic: it ends too soon");
    }
    return status == BUGPACK_OK ? BUGPACK_OK
                                : bp_fail(error, status, "cannot print recorded traffic: %s",
                                          bugpack_status_name(status));
}

static bugpack_status print_channels(bp_traffic_snapshot *channels, size_t channel_count,
                                     const choice *how, bp_traffic_extent *ret_extent,
                                     bugpack_error *error) {
    printer *print = calloc(1, sizeof *print);
    bp_traffic_lane *lanes = calloc(channel_count + 1, sizeof *lanes);
    bugpack_status status = BUGPACK_OK;
    if (print == NULL || lanes == NULL) {
        free(print);
        free(lanes);
        return bp_fail_memory(error, "write the traffic");
    }
    print->how = *how;
    print->lanes = lanes;
    print->lane_count = channel_count;
    bp_buffer_init(&print->line, line_max_bytes);
    for (size_t i = 0; status == BUGPACK_OK && i < channel_count; i++) {
        status = bp_traffic_lane_open(&lanes[i], &channels[i], error);
    }
    if (status == BUGPACK_OK) {
        status = print_all(print, error);
    }
    if (status == BUGPACK_OK) {
        *ret_extent = print->extent;
    }
    for (size_t i = 0; i < channel_count; i++) {
        bp_traffic_lane_release(&lanes[i]);
    }
    bp_buffer_release(&print->line);
    free(lanes);
    free(print);
    return status;
}

bugpack_status bp_traffic_print_pcap(bp_traffic_snapshot *channels, size_t channel_count,
                                     bp_sink *sink, void *context, bp_traffic_extent *ret_extent,
                                     bugpack_error *error) {
    const choice how = {.pcap_sink = sink, .context = context};
    return print_channels(channels, channel_count, &how, ret_extent, error);
}

bugpack_status bp_traffic_print_index(bp_traffic_snapshot *channels, size_t channel_count,
                                      bp_sink *sink, void *context, bugpack_error *error) {
    const choice how = {.index_sink = sink, .context = context};
    bp_traffic_extent extent;
    return print_channels(channels, channel_count, &how, &extent, error);
}
