#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/status.h"
#include "model/fields.h"
#include "recorder/pcap.h"
#include "recorder/traffic.h"

static const size_t line_max_bytes = 64 * 1024;

/* A message in a temporary file. */
typedef struct traffic_record {
    uint64_t sequence;       /* in its own ring; of use for one that is not pinned */
    uint64_t monotonic_ns;   /* its stamp in the ring of messages, also for a pinned one */
    uint64_t original_bytes; /* at least byte_count */
    unsigned direction;
    uint32_t type;
    unsigned cuts; /* as in bp_traffic_header */
    size_t name_bytes;
    char name[BP_TRAFFIC_NAME_MAX_BYTES]; /* of the type; any bytes */
    uint64_t bytes_offset;                /* of the kept bytes in the file */
    uint64_t byte_count;
} traffic_record;

enum { traffic_window_bytes = 16384 };

/* A piece of the file in memory: no whole message is held. */
typedef struct traffic_window {
    const bp_temp_file *temp_file; /* borrowed, flushed */
    uint64_t start;
    size_t size;
    int system_errno; /* the first failed read; 0: none */
    unsigned char bytes[traffic_window_bytes];
} traffic_window;

/* `byte_count` bytes at `offset`, valid until the next call; NULL past the end. */
static const void *see(traffic_window *window, uint64_t offset, size_t byte_count) {
    uint64_t skipped = offset - window->start;
    if (offset < window->start || skipped > window->size || byte_count > window->size - skipped) {
        window->start = offset;
        window->size = 0;
        skipped = 0;
        while (window->size < byte_count && byte_count <= sizeof window->bytes) {
            int64_t got = bp_temp_file_read(window->temp_file, offset + window->size,
                                            window->bytes + window->size,
                                            sizeof window->bytes - window->size);
            if (got < 0 && window->system_errno == 0) {
                window->system_errno = errno;
            }
            if (got <= 0) {
                break;
            }
            window->size += (size_t)got;
        }
        if (window->size < byte_count) {
            return NULL;
        }
    }
    return window->bytes + skipped;
}

/*
 * Validates everything: the record may come from anybody's file. `payload` is all of it, or as many
 * bytes as a header with the longest name has.
 */
static bool parse(const bp_ring_record *record, const unsigned char *payload, uint64_t offset,
                  traffic_record *ret_record) {
    bp_traffic_header header;
    bool is_pin = record->tag == BP_TRAFFIC_TAG_PIN;
    size_t prefix_bytes = is_pin ? sizeof(uint64_t) : 0;
    uint64_t stamp_ns = record->monotonic_ns;
    if ((!is_pin && record->tag != BP_TRAFFIC_TAG_MESSAGE) ||
        record->payload_bytes < prefix_bytes + sizeof header) {
        return false;
    }
    if (is_pin) {
        memcpy(&stamp_ns, payload, sizeof stamp_ns);
    }
    memcpy(&header, payload + prefix_bytes, sizeof header);
    size_t before_bytes = prefix_bytes + sizeof header + header.name_bytes;
    if (header.direction > 1 || header.name_bytes > BP_TRAFFIC_NAME_MAX_BYTES ||
        record->payload_bytes < before_bytes) {
        return false;
    }
    uint64_t byte_count = record->payload_bytes - before_bytes;
    *ret_record = (traffic_record){
        .sequence = record->sequence,
        .monotonic_ns = stamp_ns,
        .original_bytes = header.original_bytes > byte_count ? header.original_bytes : byte_count,
        .direction = header.direction,
        .type = header.type,
        .cuts = byte_count < header.original_bytes ? header.cuts : 0,
        .name_bytes = header.name_bytes,
        .bytes_offset = offset + sizeof *record + before_bytes,
        .byte_count = byte_count};
    memcpy(ret_record->name, payload + prefix_bytes + sizeof header, header.name_bytes);
    return true;
}

/* Reads the first valid message of this part, and moves `from` past it. False at the end and where
 * the file cannot be read (system_errno). */
static bool next_record(traffic_window *window, bp_traffic_part *left, traffic_record *ret_record) {
    const size_t header_max =
        sizeof(uint64_t) + sizeof(bp_traffic_header) + BP_TRAFFIC_NAME_MAX_BYTES;
    bp_ring_record record;
    while (left->to - left->from >= sizeof record) {
        uint64_t at = left->from;
        const void *seen = see(window, at, sizeof record);
        if (seen == NULL) {
            return false;
        }
        memcpy(&record, seen, sizeof record);
        uint64_t padded = ((uint64_t)record.payload_bytes + 7) & ~(uint64_t)7;
        if (padded > left->to - at - sizeof record) {
            return false;
        }
        size_t wanted = padded < header_max ? (size_t)padded : header_max;
        seen = see(window, at, sizeof record + wanted);
        if (seen == NULL) {
            return false;
        }
        left->from = at + sizeof record + padded;
        if (parse(&record, (const unsigned char *)seen + sizeof record, at, ret_record)) {
            return true;
        }
    }
    return false;
}

/* A pinned message, and the offset of its record. */
typedef struct traffic_pin {
    uint64_t stamp_ns, offset;
} traffic_pin;

/* Around a segment, so that a secret that is divided between two of them is found. */
enum { margin_bytes = 4 * 1024 };

/* The last message of one side, as it was printed: a name there may say what the next message has.
 */
typedef struct traffic_side {
    size_t size;
    unsigned char bytes[margin_bytes];
} traffic_side;

/*
 * The messages of one channel, one by one in the order of the ring; first those that only the pins
 * still have. All zero before it is opened.
 */
typedef struct traffic_lane {
    const bp_traffic_snapshot *snapshot;
    bp_pcap_stream stream;
    /* Allocated from its first message to its last: there may be thousands of channels, of which
     * few were open at one time. */
    traffic_window *window;
    traffic_side *sides; /* by direction, as long as the window; NULL: secrets stay */
    traffic_pin *pins;   /* ascending by stamp */
    size_t pin_count, next_pin;
    bp_traffic_part messages_left;
    traffic_record message; /* the next one of the ring */
    traffic_record current; /* the next one of this lane */
    bool has_pin;           /* `message` is among the pins as well, before next_pin */
    bool has_message, has_current, is_pinned;
    uint64_t current_wall_ns;
    uint64_t printed_count, last_sequence; /* the latter is of the newest from the ring */
    uint64_t seq;                          /* the last one printed */
} traffic_lane;

static int compare_pins(const void *left, const void *right) {
    uint64_t a = ((const traffic_pin *)left)->stamp_ns, b = ((const traffic_pin *)right)->stamp_ns;
    return a < b ? -1 : a > b;
}

/* More than bp_traffic_pins_ring_bytes allows; a file may claim any number. */
static const size_t pin_count_max = 128 * 1024;

/* Threads may pin in another order than they record, so pins are sorted. */
static bugpack_status index_pins(traffic_lane *at, bugpack_error *error) {
    size_t capacity = 0;
    bp_traffic_part left = at->snapshot->pins;
    uint64_t begin = left.from;
    traffic_record record;
    while (at->pin_count < pin_count_max && next_record(at->window, &left, &record)) {
        if (!bp_array_reserve(&at->pins, at->pin_count, &capacity)) {
            return bp_fail_memory(error, "write the traffic");
        }
        at->pins[at->pin_count++] = (traffic_pin){.stamp_ns = record.monotonic_ns, .offset = begin};
        begin = left.from;
    }
    if (at->pin_count > 1) {
        qsort(at->pins, at->pin_count, sizeof *at->pins, compare_pins);
    }
    return BUGPACK_OK;
}

static void read_message(traffic_lane *at) {
    at->has_message = next_record(at->window, &at->messages_left, &at->message);
    at->has_pin = false;
}

/* Reads the next pinned message, if it is older than the ring's next one. Of two messages with one
 * stamp, one may be in the ring. */
static bool read_pin(traffic_lane *at) {
    while (at->next_pin < at->pin_count) {
        const traffic_pin *next = &at->pins[at->next_pin];
        bool is_same = at->has_message && next->stamp_ns == at->message.monotonic_ns;
        if (at->has_message &&
            (next->stamp_ns > at->message.monotonic_ns || (is_same && at->has_pin))) {
            return false;
        }
        at->next_pin++;
        at->has_pin = at->has_pin || is_same;
        bp_traffic_part left = {next->offset, at->snapshot->pins.to};
        if (!is_same && next_record(at->window, &left, &at->current)) {
            return true;
        }
    }
    return false;
}

/* Moves to the next message. Times never run backwards. */
static void lane_advance(traffic_lane *at) {
    if (at->has_current && !at->is_pinned) {
        read_message(at); /* only now: the last one's bytes were fetched from the same window */
    }
    at->is_pinned = read_pin(at);
    at->has_current = at->is_pinned;
    if (!at->is_pinned && at->has_message) {
        at->current = at->message;
        at->has_current = true;
    }
    if (at->has_current) {
        uint64_t wall_ns = at->current.monotonic_ns + at->snapshot->wall_offset_ns;
        at->current_wall_ns = wall_ns > at->current_wall_ns ? wall_ns : at->current_wall_ns;
    }
}

/* Borrows the channel and moves to its first message; `window` is for this call alone. NO_MEMORY.
 */
static bugpack_status lane_open(traffic_lane *at, const bp_traffic_snapshot *snapshot,
                                traffic_window *window, bugpack_error *error) {
    const bp_traffic_identity *identity = &snapshot->identity;
    at->snapshot = snapshot;
    at->messages_left = snapshot->messages;
    at->stream = (bp_pcap_stream){.host_is_server = identity->host_is_server != 0,
                                  .host_port = identity->host_port,
                                  .peer_port = identity->peer_port,
                                  .number = identity->number};
    at->window = window;
    bugpack_status status = index_pins(at, error);
    if (status == BUGPACK_OK) {
        read_message(at);
        lane_advance(at);
    }
    at->window = NULL;
    return status;
}

static void lane_release(traffic_lane *at) {
    free(at->pins);
    free(at->window);
    free(at->sides);
    at->pins = NULL;
    at->window = NULL;
    at->sides = NULL;
}

/* Prints either the pcap or the index. */
typedef struct printer {
    bp_sink *pcap_sink; /* NULL: frames are only counted */
    bp_sink *index_sink;
    void *context;
    bp_temp_file *records;
    bp_redactor *redactor; /* NULL: secrets stay */
    traffic_lane *lanes;
    traffic_lane **queue; /* a heap of those that have messages left; the earliest is the first */
    size_t queue_count;
    int system_errno; /* of the first failed read; 0: none */
    bp_buffer line;   /* of the index */
    uint64_t frame_count;
    bp_traffic_extent extent;
    traffic_lane *source; /* whose bytes are being fetched */
    size_t ahead_bytes;   /* behind its newest segment, searched with it */
    bugpack_status search_status;
    unsigned char text[margin_bytes + BP_PCAP_SEGMENT_BYTES + margin_bytes];
} printer;

/* A line of traffic-index.jsonl for the current message of a lane. `frame`: its first frame in the
 * pcap, from 1 as Wireshark counts. */
static void append_index_line(const traffic_lane *at, uint64_t frame, bp_buffer *out) {
    static const char *const cut_names[BP_TRAFFIC_CUT_COUNT] = {
        [BP_TRAFFIC_CUT_SNAP] = "snap_length", [BP_TRAFFIC_CUT_FILTER] = "filter",
        [BP_TRAFFIC_CUT_LIMIT] = "size_limit", [BP_TRAFFIC_CUT_ABSENT] = "no_bytes",
        [BP_TRAFFIC_CUT_PIN] = "pin",          [BP_TRAFFIC_CUT_FLAG] = "no_payload",
    };
    const traffic_record *message = &at->current;
    const char *channel = at->snapshot->identity.name;
    bool is_cut = (message->cuts & ((1u << BP_TRAFFIC_CUT_COUNT) - 1)) != 0;
    bp_json json;
    bp_json_begin_as(&json, BP_JSON_RECORD, out);
    bp_json_add_uint(&json, "frame", frame);
    bp_model_add_time(&json, "time", at->current_wall_ns);
    bp_json_add_uint(&json, "monotonic_ns", message->monotonic_ns);
    bp_model_add_name(&json, "channel", channel, sizeof at->snapshot->identity.name);
    bp_json_add_uint(&json, "connection", at->snapshot->identity.number);
    bp_json_add_uint(&json, "seq", at->seq);
    bp_json_add_text(&json, "direction", message->direction == BUGPACK_SENT ? "sent" : "received");
    bp_json_add_uint(&json, "type", message->type);
    if (message->name_bytes > 0) {
        bp_json_add_bytes(&json, "type_name", message->name, message->name_bytes);
    }
    bp_json_add_uint(&json, "bytes", message->original_bytes);
    bp_json_add_uint(&json, "kept_bytes", message->byte_count);
    if (is_cut) {
        bp_json_array_begin(&json, "cut_by");
        for (unsigned cut = 0; cut < BP_TRAFFIC_CUT_COUNT; cut++) {
            bp_json_add_text(&json, NULL, (message->cuts >> cut & 1) != 0 ? cut_names[cut] : NULL);
        }
        bp_json_array_end(&json);
    }
    bp_model_add_flag(&json, "pinned", at->is_pinned);
    (void)bp_json_finish(&json, NULL); /* what may fail is the buffer */
}

/* Copies bytes of the current message, those that the window cannot hold straight from the file.
 * False where they cannot be read. */
static bool read_bytes(printer *print, uint64_t offset, unsigned char *to, size_t byte_count) {
    traffic_lane *at = print->source;
    offset += at->current.bytes_offset;
    if (byte_count <= traffic_window_bytes) {
        const void *seen = see(at->window, offset, byte_count);
        if (seen != NULL) {
            memcpy(to, seen, byte_count);
        }
        return seen != NULL;
    }
    for (size_t done = 0; done < byte_count;) {
        int64_t got =
            bp_temp_file_read(print->records, offset + done, to + done, byte_count - done);
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

/*
 * Overwrites the secrets that begin in a segment of `size` bytes, behind which are `ahead_bytes`
 * more of its message. A message is searched by itself first, because a rule may want to see that
 * nothing precedes what it finds.
 */
static bugpack_status search_segment(printer *print, traffic_side *side, unsigned char *segment,
                                     size_t size, bool is_first) {
    size_t before = side->size, seen = size + print->ahead_bytes;
    bugpack_status status = BUGPACK_OK;
    if (is_first) {
        status = bp_redactor_overwrite(print->redactor, segment, seen, 0, size);
    }
    if (before > 0 && status == BUGPACK_OK) {
        memcpy(segment - before, side->bytes, before);
        status = bp_redactor_overwrite(print->redactor, segment - before, before + seen, before,
                                       before + size);
    }
    side->size = before + size < margin_bytes ? before + size : margin_bytes;
    memcpy(side->bytes, segment + size - side->size, side->size);
    return status;
}

/* A bp_pcap_fetch: a segment, without its secrets. */
static const void *fetch(void *context, uint64_t offset, size_t byte_count) {
    printer *print = context;
    const traffic_lane *at = print->source;
    unsigned char *segment = print->text + margin_bytes;
    uint64_t ahead = at->current.byte_count - offset - byte_count;
    size_t have = offset > 0 ? print->ahead_bytes : 0; /* searched already */
    ahead = at->sides == NULL ? 0 : ahead;
    print->ahead_bytes = ahead < margin_bytes ? (size_t)ahead : margin_bytes;
    memmove(segment, segment + BP_PCAP_SEGMENT_BYTES, have);
    if (!read_bytes(print, offset + have, segment + have, byte_count + print->ahead_bytes - have)) {
        return NULL;
    }
    if (at->sides != NULL) {
        print->search_status = search_segment(print, &at->sides[at->current.direction], segment,
                                              byte_count, offset == 0);
    }
    return print->search_status == BUGPACK_OK ? segment : NULL;
}

static void count(bp_traffic_extent *extent, traffic_lane *at) {
    const traffic_record *current = &at->current;
    at->printed_count++;
    at->last_sequence = at->is_pinned ? at->last_sequence : current->sequence;
    extent->message_count++;
    extent->pinned_count += at->is_pinned;
    extent->cut_count += current->byte_count < current->original_bytes;
    for (unsigned cut = 0; cut < BP_TRAFFIC_CUT_COUNT; cut++) {
        extent->cut_counts[cut] += current->cuts >> cut & 1;
    }
    extent->from_wall_ns = extent->message_count == 1 ? at->current_wall_ns : extent->from_wall_ns;
    extent->to_wall_ns = at->current_wall_ns;
}

/* The number of the current message: what the ring has overwritten is counted before it, without
 * the pins that are still to come. With several threads those are not exactly the first. */
static void number_current(traffic_lane *at) {
    uint64_t later = at->pin_count - at->next_pin, own = at->current.sequence;
    own = at->is_pinned || own <= later ? 0 : own - later;
    at->seq = own > at->seq ? own : at->seq + 1;
}

static bugpack_status print_current(printer *print, traffic_lane *at) {
    bugpack_status status = BUGPACK_OK;
    uint64_t frames_before = at->stream.frame_count;
    if (!at->stream.is_open) {
        status =
            bp_pcap_write_open(&at->stream, at->current_wall_ns, print->pcap_sink, print->context);
    }
    if (status == BUGPACK_OK) {
        bp_pcap_message message = {.direction = at->current.direction,
                                   .wall_ns = at->current_wall_ns,
                                   .byte_count = at->current.byte_count,
                                   .original_bytes = at->current.original_bytes,
                                   .fetch = fetch,
                                   .source = print};
        print->source = at;
        status = bp_pcap_write_message(&at->stream, &message, print->pcap_sink, print->context);
        status = print->search_status != BUGPACK_OK ? print->search_status : status;
    }
    number_current(at);
    if (status == BUGPACK_OK && print->index_sink != NULL) {
        bp_buffer_clear(&print->line);
        append_index_line(at, print->frame_count + at->stream.message_frame - frames_before,
                          &print->line);
        status = print->line.status != BUGPACK_OK
                     ? print->line.status
                     : print->index_sink(print->context, print->line.data, print->line.size);
    }
    print->frame_count += at->stream.frame_count - frames_before;
    count(&print->extent, at);
    return status;
}

static bool is_earlier(const traffic_lane *left, const traffic_lane *right) {
    return left->current_wall_ns != right->current_wall_ns
               ? left->current_wall_ns < right->current_wall_ns
               : left < right; /* in the order of their opening */
}

/* Moves the lane at this place down until those below it are later. */
static void sift(printer *print, size_t place) {
    traffic_lane **queue = print->queue;
    for (size_t below; (below = 2 * place + 1) < print->queue_count; place = below) {
        below += below + 1 < print->queue_count && is_earlier(queue[below + 1], queue[below]);
        if (!is_earlier(queue[below], queue[place])) {
            break;
        }
        traffic_lane *lane = queue[place];
        queue[place] = queue[below];
        queue[below] = lane;
    }
}

/* Prints the earliest message, which is the first lane's, and moves that lane on. */
static bugpack_status print_first(printer *print) {
    traffic_lane *at = print->queue[0];
    if (at->window == NULL) {
        bool is_searched =
            print->redactor != NULL && at->snapshot->identity.payload != BUGPACK_PAYLOAD_EXACT;
        at->window = calloc(1, sizeof *at->window);
        at->sides = is_searched ? calloc(2, sizeof *at->sides) : NULL;
        if (at->window == NULL || (is_searched && at->sides == NULL)) {
            return BUGPACK_ERR_NO_MEMORY;
        }
        at->window->temp_file = print->records;
    }
    bugpack_status status = print_current(print, at);
    lane_advance(at);
    print->system_errno = print->system_errno == 0 ? at->window->system_errno : print->system_errno;
    if (!at->has_current) {
        if (at->last_sequence > at->printed_count) {
            print->extent.missing_count += at->last_sequence - at->printed_count;
        }
        lane_release(at);
        print->queue[0] = print->queue[--print->queue_count];
    }
    sift(print, 0);
    return status;
}

static bugpack_status print_all(printer *print, bugpack_error *error) {
    bugpack_status status = print->pcap_sink != NULL
                                ? bp_pcap_write_header(print->pcap_sink, print->context)
                                : BUGPACK_OK;
    for (size_t i = print->queue_count / 2; i-- > 0;) {
        sift(print, i);
    }
    while (status == BUGPACK_OK && print->queue_count > 0) {
        status = print_first(print);
    }
    if (print->system_errno != 0) {
        return bp_fail_errno(error, print->system_errno, "cannot read recorded traffic");
    }
    if (status == BUGPACK_ERR_IO) {
        return bp_fail(error, status, "cannot read recorded traffic: it ends too soon");
    }
    return status == BUGPACK_OK ? BUGPACK_OK
                                : bp_fail(error, status, "cannot print recorded traffic: %s",
                                          bugpack_status_name(status));
}

/* Moves all lanes to their first messages. */
static bugpack_status open_lanes(printer *print, const bp_traffic_snapshot *channels,
                                 size_t channel_count, bugpack_error *error) {
    traffic_window *window = calloc(1, sizeof *window);
    bugpack_status status = window == NULL ? bp_fail_memory(error, "write the traffic")
                                           : bp_temp_file_flush(print->records, error);
    for (size_t i = 0; status == BUGPACK_OK && i < channel_count; i++) {
        window->temp_file = print->records;
        status = lane_open(&print->lanes[i], &channels[i], window, error);
        if (print->lanes[i].has_current) {
            print->queue[print->queue_count++] = &print->lanes[i];
        }
    }
    if (window != NULL) {
        print->system_errno = window->system_errno;
    }
    free(window);
    return status;
}

static bugpack_status print_channels(bp_temp_file *records, const bp_traffic_snapshot *channels,
                                     size_t channel_count, bp_redactor *redactor,
                                     bp_sink *pcap_sink, bp_sink *index_sink, void *context,
                                     bp_traffic_extent *ret_extent, bugpack_error *error) {
    printer *print = calloc(1, sizeof *print);
    traffic_lane *lanes = calloc(channel_count + 1, sizeof *lanes);
    traffic_lane **queue = calloc(channel_count + 1, sizeof *queue);
    bugpack_status status = BUGPACK_OK;
    if (print == NULL || lanes == NULL || queue == NULL) {
        status = bp_fail_memory(error, "write the traffic");
        goto out;
    }
    print->pcap_sink = pcap_sink;
    print->index_sink = index_sink;
    print->context = context;
    print->records = records;
    print->redactor = redactor;
    print->lanes = lanes;
    print->queue = queue;
    bp_buffer_init(&print->line, line_max_bytes);
    if (channel_count > 0) {
        status = open_lanes(print, channels, channel_count, error);
    }
    if (status == BUGPACK_OK) {
        status = print_all(print, error);
    }
    if (status == BUGPACK_OK) {
        *ret_extent = print->extent;
    }
    for (size_t i = 0; i < channel_count; i++) {
        lane_release(&lanes[i]);
    }
    bp_buffer_release(&print->line);
out:
    free(queue);
    free(lanes);
    free(print);
    return status;
}

bugpack_status bp_traffic_print_pcap(bp_temp_file *records, const bp_traffic_snapshot *channels,
                                     size_t channel_count, bp_redactor *redactor, bp_sink *sink,
                                     void *context, bp_traffic_extent *ret_extent,
                                     bugpack_error *error) {
    return print_channels(records, channels, channel_count, redactor, sink, NULL, context,
                          ret_extent, error);
}

bugpack_status bp_traffic_print_index(bp_temp_file *records, const bp_traffic_snapshot *channels,
                                      size_t channel_count, bp_sink *sink, void *context,
                                      bugpack_error *error) {
    bp_traffic_extent extent;
    return print_channels(records, channels, channel_count, NULL, NULL, sink, context, &extent,
                          error);
}
