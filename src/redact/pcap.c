#include "redact/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

/* https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-03.html */
enum { file_header_bytes = 24, record_header_bytes = 16, captured_max = 262144 };

enum {
    record_max = record_header_bytes + captured_max,
    block_bytes = 256 * 1024, /* searched at a time */
    hold_bytes = 64 * 1024,   /* of these are searched again, with what follows them */
    held_max = block_bytes + 2 * record_max,
    tail_bytes = 4 * 1024,
    frame_max_count = 16 * 1024, /* of a block */
    way_count = 8,
    stream_count = 64 * way_count,
    raw_bytes = 32 * 1024, /* of what is no pcap */
    padding_max = 46 + 4   /* to the smallest frame, with its checksum */
};

static const size_t no_frame = SIZE_MAX;

/* What one side of a connection sends. */
typedef struct stream {
    uint64_t key; /* 0: not used */
    uint64_t used_at;
    bool is_exempt;
    bool is_continuous;  /* `sequence` says how the next segment continues it */
    bool is_ended;       /* its newest frame ends with a secret */
    uint32_t sequence;   /* of the next byte */
    uint32_t answers;    /* what the newest frame acknowledges of the other side */
    size_t first, last;  /* its frames in the block, from no_frame */
    unsigned char *tail; /* what precedes them, as it was before it was overwritten */
    size_t tail_size;
} stream;

/* A packet in the block. All offsets are of `held`. */
typedef struct frame {
    size_t to;
    size_t payload, payload_to;
    size_t checksum; /* 0: there is none to adjust */
    bool is_udp;     /* 0 is no checksum then */
    bool joins;      /* its payload continues that of the frame before it in the stream */
    bool has_secret; /* found in it alone */
    stream *stream;  /* NULL: searched by itself alone */
    size_t next;     /* of its stream */
} frame;

struct bp_pcap_search {
    bp_redactor *redactor;
    bp_sink *pass_on;
    void *context;
    bool has_header, is_big_endian, is_raw;
    uint32_t link_type;
    uint64_t tick;
    uint64_t *exempt; /* keys */
    size_t exempt_count, exempt_capacity;
    frame *frames;
    size_t frame_count, frame_capacity;
    size_t size, parsed; /* of `held` */
    stream streams[stream_count];
    unsigned char held[held_max];
    unsigned char alone[held_max]; /* each payload of it, overwritten where it was searched alone */
    unsigned char found[held_max]; /* all that is to be passed on */
    unsigned char text[tail_bytes + held_max];
};

bp_pcap_search *bp_pcap_search_new(bp_redactor *redactor) {
    bp_pcap_search *search = calloc(1, sizeof *search);
    if (search != NULL) {
        search->redactor = redactor;
    }
    return search;
}

void bp_pcap_search_free(bp_pcap_search *search) {
    if (search != NULL) {
        for (size_t i = 0; i < stream_count; i++) {
            free(search->streams[i].tail);
        }
        free(search->frames);
        free(search->exempt);
        free(search);
    }
}

static uint32_t read_be16(const unsigned char *at) {
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t read_be32(const unsigned char *at) {
    return read_be16(at) << 16 | read_be16(at + 2);
}

static uint32_t read_u32(const bp_pcap_search *search, const unsigned char *at) {
    return search->is_big_endian
               ? read_be32(at)
               : at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* A packet as its headers have it. */
typedef struct packet {
    const unsigned char *bytes;
    size_t size, ip_end; /* the end of the datagram, which may not have been captured */
    size_t transport;
    uint8_t protocol;
    uint64_t key; /* of the two addresses, and then of the ports too */
    size_t payload, checksum;
} packet;

/* Where the IP header begins; SIZE_MAX where there is none. */
static size_t find_ip(uint32_t link_type, const unsigned char *bytes, size_t size) {
    /* https://www.tcpdump.org/linktypes.html */
    static const struct {
        uint32_t link_type;
        uint8_t header_bytes, type_at;
    } links[] = {{1, 14, 12}, {113, 16, 14}, {276, 20, 0}, {0, 4, 4},   {108, 4, 4},
                 {12, 0, 0},  {14, 0, 0},    {101, 0, 0},  {228, 0, 0}, {229, 0, 0}};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        size_t at = links[i].header_bytes, type = links[i].type_at;
        if (links[i].link_type != link_type) {
            continue;
        }
        for (int tag = 0; tag < 2 && at > 4 && at + 4 <= size; tag++) { /* IEEE 802.1Q */
            uint32_t value = read_be16(bytes + type);
            bool is_tagged = value == 0x8100 || value == 0x88A8;
            type = is_tagged ? at + 2 : type;
            at += is_tagged ? 4 : 0;
        }
        bool is_ip = at <= 4 || (type + 2 <= size && (read_be16(bytes + type) == 0x0800 ||
                                                      read_be16(bytes + type) == 0x86DD));
        return is_ip && at < size ? at : SIZE_MAX;
    }
    return SIZE_MAX;
}

/* RFC 791. A fragment has no whole segment, and no checksum of its own. */
static bool read_ipv4(packet *read, size_t at) {
    const unsigned char *header = read->bytes + at;
    size_t header_bytes = (size_t)(header[0] & 15) * 4;
    if (read->size - at < 20 || header_bytes < 20 || (read_be16(header + 6) & 0x3FFF) != 0) {
        return false;
    }
    size_t total_bytes = read_be16(header + 2);
    read->ip_end = total_bytes == 0 ? read->size : at + total_bytes; /* left to the adapter */
    read->protocol = header[9];
    read->key = XXH3_64bits(header + 12, 8);
    read->transport = at + header_bytes;
    return true;
}

/* RFC 8200, behind the extension headers that may precede a segment. */
static bool read_ipv6(packet *read, size_t at) {
    enum { hop_by_hop = 0, routing = 43, destination = 60, header_bytes = 40, extension_max = 8 };
    const unsigned char *header = read->bytes + at;
    if (read->size - at < header_bytes) {
        return false;
    }
    size_t payload_bytes = read_be16(header + 4);
    read->ip_end = payload_bytes == 0 ? read->size : at + header_bytes + payload_bytes;
    read->protocol = header[6];
    read->key = XXH3_64bits(header + 8, 32);
    at += header_bytes;
    for (int i = 0; i < extension_max && at + 2 <= read->size; i++) {
        if (read->protocol != hop_by_hop && read->protocol != routing &&
            read->protocol != destination) {
            break;
        }
        read->protocol = read->bytes[at];
        at += ((size_t)read->bytes[at + 1] + 1) * 8;
    }
    read->transport = at;
    return true;
}

enum { protocol_tcp = 6, protocol_udp = 17 };

/* RFC 9293 and RFC 768. False: it has no payload that is known. */
static bool read_transport(packet *read) {
    size_t header_bytes = read->protocol == protocol_tcp ? 20 : 8;
    bool is_known = read->protocol == protocol_tcp || read->protocol == protocol_udp;
    if (!is_known || read->transport > read->size || read->size - read->transport < header_bytes) {
        return false;
    }
    const unsigned char *header = read->bytes + read->transport;
    if (read->protocol == protocol_tcp) {
        header_bytes = (size_t)(header[12] >> 4) * 4;
        read->checksum = read->transport + 16;
    } else {
        read->checksum = read->transport + 6;
    }
    read->payload = read->transport + header_bytes;
    /* Who makes the keys of two streams alike has them searched as one. */
    read->key = XXH3_64bits_withSeed(header, 4, read->key);
    read->key += read->key == 0;
    return header_bytes >= 8 && read->payload <= read->size && read->payload <= read->ip_end;
}

static bool read_packet(uint32_t link_type, const unsigned char *bytes, size_t size,
                        packet *ret_packet) {
    packet read = {.bytes = bytes, .size = size};
    size_t at = find_ip(link_type, bytes, size);
    if (at == SIZE_MAX) {
        return false;
    }
    bool is_ip = (bytes[at] >> 4 == 4 && read_ipv4(&read, at)) ||
                 (bytes[at] >> 4 == 6 && read_ipv6(&read, at));
    if (!is_ip || !read_transport(&read)) {
        return false;
    }
    /* Of what follows the datagram nothing is payload, so it has to be the padding of Ethernet. */
    *ret_packet = read;
    return read.size <= read.ip_end || read.size - read.ip_end <= padding_max;
}

static bool is_exempt(const bp_pcap_search *search, uint64_t key) {
    size_t i = 0;
    while (i < search->exempt_count && search->exempt[i] != key) {
        i++;
    }
    return i < search->exempt_count;
}

/* The stream of a key, which takes the place of the one that was not used for the longest time.
 * NULL where all places have frames in the block. */
static stream *find_stream(bp_pcap_search *search, uint64_t key) {
    stream *set = search->streams + key % (stream_count / way_count) * way_count;
    stream *oldest = NULL;
    for (size_t i = 0; i < way_count; i++) {
        if (set[i].key == key) {
            set[i].used_at = ++search->tick;
            return &set[i];
        }
        bool is_free = set[i].key == 0 || set[i].first == no_frame;
        if (is_free && (oldest == NULL || set[i].used_at < oldest->used_at)) {
            oldest = &set[i];
        }
    }
    if (oldest != NULL) {
        *oldest = (stream){.key = key,
                           .used_at = ++search->tick,
                           .is_exempt = is_exempt(search, key),
                           .first = no_frame,
                           .last = no_frame,
                           .tail = oldest->tail};
    }
    return oldest;
}

/* Puts a frame behind those of its stream. */
static void link_frame(bp_pcap_search *search, size_t index) {
    frame *added = &search->frames[index];
    stream *of = added->stream;
    added->next = no_frame;
    if (of == NULL || added->payload == added->payload_to) {
        return;
    }
    if (of->first == no_frame) {
        of->first = index;
    } else {
        search->frames[of->last].next = index;
    }
    of->last = index;
}

/* Whose a segment is, and whether it is the next one. `is_whole`: nothing of it is missing. */
static void join_stream(bp_pcap_search *search, frame *added, const packet *read, bool is_whole) {
    const unsigned char *header = read->bytes + read->transport;
    const unsigned syn_fin = 3;
    uint32_t sequence = read_be32(header + 4);
    stream *of = find_stream(search, read->key);
    if (of == NULL) {
        return;
    }
    /* A secret that seems to go on in the next segment does not, if the other side has answered in
     * between: then that is another message. */
    bool is_answered = of->answers != read_be32(header + 8);
    added->stream = of;
    added->joins = of->is_continuous && sequence == of->sequence && !(is_answered && of->is_ended);
    of->sequence =
        sequence + (uint32_t)(read->ip_end - read->payload) + ((header[13] & syn_fin) != 0 ? 1 : 0);
    of->is_continuous = is_whole;
    of->answers = read_be32(header + 8);
}

/* A packet of the block: where its payload is. */
static void read_frame(bp_pcap_search *search, frame *added, size_t from) {
    packet read;
    const unsigned char *bytes = search->held + from;
    added->payload = from;
    if (!read_packet(search->link_type, bytes, search->parsed - from, &read)) {
        return; /* searched as it is */
    }
    size_t end = read.ip_end < read.size ? read.ip_end : read.size;
    added->payload = from + read.payload;
    added->payload_to = from + end;
    added->checksum = from + read.checksum;
    added->is_udp = read.protocol == protocol_udp;
    bool is_left_out = false;
    if (read.protocol == protocol_tcp) {
        join_stream(search, added, &read, end == read.ip_end);
    }
    if (added->stream != NULL) {
        is_left_out = added->stream->is_exempt;
    } else {
        is_left_out = search->exempt_count > 0 && is_exempt(search, read.key);
    }
    added->payload_to = is_left_out ? added->payload : added->payload_to;
}

static uint32_t add_words(const unsigned char *bytes, size_t byte_count) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 1 < byte_count; i += 2) {
        sum += read_be16(bytes + i);
    }
    sum += byte_count % 2 != 0 ? (uint64_t)bytes[byte_count - 1] << 8 : 0;
    while (sum >> 16 != 0) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return (uint32_t)sum;
}

/* Puts the payload back as it was overwritten. The checksum stays right if it was, and wrong if it
 * was wrong (RFC 1624, equation 3). */
static void put_back(bp_pcap_search *search, const frame *of) {
    const unsigned char *bytes = search->found + of->payload;
    unsigned char *payload = search->held + of->payload;
    size_t byte_count = of->payload_to - of->payload;
    if (memcmp(payload, bytes, byte_count) == 0) {
        return;
    }
    unsigned char *checksum = search->held + of->checksum;
    bool has_checksum = of->checksum != 0 && !(of->is_udp && read_be16(checksum) == 0);
    if (has_checksum) {
        uint32_t sum = (~read_be16(checksum) & 0xFFFF) +
                       (~add_words(payload, byte_count) & 0xFFFF) + add_words(bytes, byte_count);
        sum = (sum & 0xFFFF) + (sum >> 16);
        sum = ~((sum & 0xFFFF) + (sum >> 16)) & 0xFFFF;
        sum = of->is_udp && sum == 0 ? 0xFFFF : sum;
        checksum[0] = (unsigned char)(sum >> 8);
        checksum[1] = (unsigned char)sum;
    }
    memcpy(payload, bytes, byte_count);
}

/* What is to be remembered of a stream: the end of its text, of which `size` bytes are passed on.
 */
static bugpack_status keep_tail(stream *of, const unsigned char *text, size_t size) {
    if (of->tail == NULL && (of->tail = malloc(tail_bytes)) == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    of->tail_size = size < tail_bytes ? size : tail_bytes;
    memcpy(of->tail, text + size - of->tail_size, of->tail_size);
    return BUGPACK_OK;
}

/*
 * Searches a text that begins with this frame and consists of all that follow it without a gap.
 * Those before `end` are overwritten. The others are only looked at: they are searched again, when
 * more follows them.
 */
static bugpack_status search_joined(bp_pcap_search *search, size_t first, size_t end) {
    stream *of = search->frames[first].stream;
    bool has_tail = first == of->first && search->frames[first].joins;
    size_t before = has_tail ? of->tail_size : 0, size = before, passed = before;
    if (before > 0) {
        memcpy(search->text, of->tail, before);
    }
    for (size_t i = first; i != no_frame && (i == first || search->frames[i].joins);
         i = search->frames[i].next) {
        const frame *at = &search->frames[i];
        memcpy(search->text + size, search->held + at->payload, at->payload_to - at->payload);
        size += at->payload_to - at->payload;
        passed = i < end ? size : passed;
    }
    bugpack_status status = keep_tail(of, search->text, passed);
    if (status == BUGPACK_OK) {
        status = bp_redactor_overwrite(search->redactor, search->text, size, before, passed);
    }
    size = before;
    for (size_t i = first; status == BUGPACK_OK && size < passed; i = search->frames[i].next) {
        const frame *at = &search->frames[i];
        memcpy(search->found + at->payload, search->text + size, at->payload_to - at->payload);
        size += at->payload_to - at->payload;
    }
    return status;
}

/* Whether a payload ends with a secret, or with what a rule may take for the rest of one. */
static bool ends_secret(const bp_pcap_search *search, const frame *of, bool goes_on) {
    size_t at = of->payload_to;
    while (at > of->payload && search->held[at - 1] > ' ' &&
           memchr("\"'`<>", search->held[at - 1], 5) == NULL) {
        at--;
        if (search->held[at] != search->alone[at]) {
            return true;
        }
    }
    return goes_on && at == of->payload;
}

/* Searches a payload by itself: what precedes it may hide what begins it from a rule, and a secret
 * that seems to go on in it may hide its own. */
static bugpack_status search_alone(bp_pcap_search *search, frame *of) {
    const unsigned char *payload = search->held + of->payload;
    unsigned char *alone = search->alone + of->payload;
    size_t size = of->payload_to - of->payload;
    if (size == 0) {
        return BUGPACK_OK;
    }
    memcpy(alone, payload, size);
    bugpack_status status = bp_redactor_overwrite(search->redactor, alone, size, 0, 0);
    of->has_secret = memcmp(alone, payload, size) != 0;
    if (of->stream != NULL) {
        bool was_ended = of->joins && of->stream->is_ended;
        of->stream->is_ended = (was_ended || of->has_secret) && ends_secret(search, of, was_ended);
    }
    return status;
}

/* Adds what was found in a payload alone, and was not found in what it is joined to. */
static bugpack_status add_alone(bp_pcap_search *search, const frame *of) {
    const unsigned char *payload = search->held + of->payload;
    const unsigned char *alone = search->alone + of->payload;
    unsigned char *found = search->found + of->payload;
    size_t size = of->payload_to - of->payload, from = size, to = 0;
    for (size_t i = 0; of->has_secret && i < size; i++) {
        if (alone[i] != payload[i] && found[i] == payload[i]) {
            found[i] = alone[i];
            from = i < from ? i : from;
            to = i + 1;
        }
    }
    if (from >= to) {
        return BUGPACK_OK;
    }
    memcpy(search->text, payload, size); /* once more, to count */
    return bp_redactor_overwrite(search->redactor, search->text, size, from, to);
}

/* Whether a text of several frames begins with this one, or goes on from frames that are gone. */
static bool begins_joined(const bp_pcap_search *search, size_t index) {
    const frame *of = &search->frames[index];
    if (of->payload == of->payload_to || of->stream == NULL) {
        return false;
    }
    bool goes_on = of->next != no_frame && search->frames[of->next].joins;
    return of->joins ? of->stream->first == index : goes_on;
}

/* How many frames of the block may go: the last one, and what is near it, are still needed. */
static size_t count_passed(const bp_pcap_search *search, bool is_last) {
    size_t count = search->frame_count;
    if (is_last || count == 0) {
        return count;
    }
    count--;
    while (count > 0 && search->frames[count - 1].to + hold_bytes > search->parsed &&
           search->frame_count < frame_max_count) {
        count--;
    }
    return count;
}

/* Drops the frames that were passed on, and links the others anew. */
static void drop_frames(bp_pcap_search *search, size_t count) {
    size_t done = count > 0 ? search->frames[count - 1].to : 0;
    for (size_t i = 0; i < search->frame_count; i++) {
        if (search->frames[i].stream != NULL) {
            search->frames[i].stream->first = search->frames[i].stream->last = no_frame;
        }
    }
    memmove(search->held, search->held + done, search->size - done);
    memmove(search->alone, search->alone + done, search->parsed - done);
    search->size -= done;
    search->parsed -= done;
    search->frame_count -= count;
    memmove(search->frames, search->frames + count, search->frame_count * sizeof(frame));
    for (size_t i = 0; i < search->frame_count; i++) {
        frame *at = &search->frames[i];
        at->to -= done;
        at->payload -= done;
        at->payload_to -= done;
        at->checksum -= at->checksum != 0 ? done : 0;
        link_frame(search, i);
    }
}

static bugpack_status search_block(bp_pcap_search *search, bool is_last) {
    size_t count = count_passed(search, is_last);
    bugpack_status status = BUGPACK_OK;
    memcpy(search->found, search->held, count > 0 ? search->frames[count - 1].to : 0);
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        const frame *at = &search->frames[i];
        if (begins_joined(search, i)) {
            status = search_joined(search, i, count);
        } else if (at->stream != NULL && !at->joins && at->payload < at->payload_to) {
            status =
                keep_tail(at->stream, search->held + at->payload, at->payload_to - at->payload);
        }
    }
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        status = add_alone(search, &search->frames[i]);
        put_back(search, &search->frames[i]);
    }
    if (status == BUGPACK_OK && count > 0) {
        status = search->pass_on(search->context, search->held, search->frames[count - 1].to);
    }
    if (status == BUGPACK_OK) {
        drop_frames(search, count);
    }
    return status;
}

/* A frame up to `to`, with all of it as payload. NULL without memory. */
static frame *add_frame(bp_pcap_search *search, size_t to) {
    if (!bp_array_reserve(&search->frames, search->frame_count, &search->frame_capacity)) {
        return NULL;
    }
    frame *added = &search->frames[search->frame_count++];
    *added = (frame){.to = to, .payload = search->parsed, .payload_to = to, .next = no_frame};
    search->parsed = to;
    return added;
}

/* How the file begins, if it is a pcap that is known here. */
static bugpack_status read_header(bp_pcap_search *search) {
    static const uint32_t microseconds = 0xA1B2C3D4, nanoseconds = 0xA1B23C4D;
    search->has_header = true;
    search->is_raw = search->size < file_header_bytes;
    if (search->is_raw) {
        return BUGPACK_OK;
    }
    uint32_t magic = read_be32(search->held);
    search->is_big_endian = magic == microseconds || magic == nanoseconds;
    magic = read_u32(search, search->held);
    search->is_raw = magic != microseconds && magic != nanoseconds;
    search->link_type = read_u32(search, search->held + 20) & 0x0FFFFFFF;
    if (search->is_raw) {
        return BUGPACK_OK;
    }
    frame *header = add_frame(search, file_header_bytes);
    if (header == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    header->payload = header->payload_to;
    return BUGPACK_OK;
}

/* How long the next record is; 0: more of it is needed first. From the first one that is none, the
 * rest is one text. */
static size_t find_record(bp_pcap_search *search, bool is_last) {
    size_t left = search->size - search->parsed, record = SIZE_MAX;
    if (!search->is_raw && left >= record_header_bytes) {
        uint32_t captured = read_u32(search, search->held + search->parsed + 8);
        search->is_raw = captured > captured_max;
        record = record_header_bytes + (size_t)captured;
    }
    if (!search->is_raw && record <= left) {
        return record;
    }
    search->is_raw = search->is_raw || is_last;
    if (search->is_raw && (left >= raw_bytes || is_last)) {
        return left < raw_bytes ? left : raw_bytes;
    }
    return 0;
}

static bugpack_status read_records(bp_pcap_search *search, bool is_last) {
    static const uint64_t raw_key = 1;
    bugpack_status status = BUGPACK_OK;
    size_t bytes;
    while (status == BUGPACK_OK && (bytes = find_record(search, is_last)) > 0) {
        size_t from = search->parsed;
        frame *added = add_frame(search, from + bytes);
        if (added == NULL) {
            return BUGPACK_ERR_NO_MEMORY;
        }
        if (!search->is_raw) {
            read_frame(search, added, from + record_header_bytes);
        } else if ((added->stream = find_stream(search, raw_key)) != NULL) {
            added->joins = added->stream->is_continuous;
            added->stream->is_continuous = true;
        }
        link_frame(search, search->frame_count - 1);
        status = search_alone(search, added);
        if (status == BUGPACK_OK &&
            (search->parsed >= block_bytes || search->frame_count >= frame_max_count)) {
            status = search_block(search, false);
        }
    }
    return status;
}

bugpack_status bp_pcap_search_write(bp_pcap_search *search, const void *bytes, size_t byte_count,
                                    bp_sink *pass_on, void *context) {
    const unsigned char *next = bytes;
    bool is_last = bytes == NULL;
    bugpack_status status = BUGPACK_OK;
    search->pass_on = pass_on;
    search->context = context;
    do {
        size_t room = held_max - search->size, count = byte_count < room ? byte_count : room;
        if (count > 0) {
            memcpy(search->held + search->size, next, count);
        }
        search->size += count;
        next += count;
        byte_count -= count;
        if (!search->has_header && (search->size >= file_header_bytes || is_last)) {
            status = read_header(search);
        }
        if (status == BUGPACK_OK && search->has_header) {
            status = read_records(search, is_last);
        }
    } while (status == BUGPACK_OK && byte_count > 0);
    return status == BUGPACK_OK && is_last ? search_block(search, true) : status;
}

bugpack_status bp_pcap_search_exempt(bp_pcap_search *search, const void *pcap, size_t byte_count) {
    const unsigned char *bytes = pcap;
    packet read;
    for (size_t at = file_header_bytes; at + record_header_bytes <= byte_count;) {
        size_t captured = read_u32(search, bytes + at + 8);
        at += record_header_bytes;
        if (captured > byte_count - at) {
            break;
        }
        if (read_packet(read_u32(search, bytes + 20), bytes + at, captured, &read)) {
            if (!bp_array_reserve(&search->exempt, search->exempt_count,
                                  &search->exempt_capacity)) {
                return BUGPACK_ERR_NO_MEMORY;
            }
            search->exempt[search->exempt_count++] = read.key;
        }
        at += captured;
    }
    return BUGPACK_OK;
}
