#include "support/traffic_pcap.h"

#include <stdlib.h>
#include <string.h>

static uint32_t le32(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t be32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool read_all(const bp_temp_file *temp_file, bp_buffer *out) {
    char *to = bp_buffer_reserve(out, (size_t)temp_file->size);
    if (to == NULL) {
        return false;
    }
    while (out->size < temp_file->size) {
        int64_t got = bp_temp_file_read(temp_file, out->size, to + out->size,
                                        (size_t)temp_file->size - out->size);
        if (got <= 0) {
            return false;
        }
        bp_buffer_commit(out, (size_t)got);
        to = out->data;
    }
    return true;
}

static traffic_frame parse(const unsigned char *at, size_t offset) {
    const unsigned char *ip = at + 30;
    const unsigned char *tcp = ip + 20;
    const unsigned char *source = ip + 12;
    size_t heads = (size_t)(tcp - at) - 16 + (size_t)(tcp[12] >> 4) * 4;
    return (traffic_frame){.wall_ns = le32(at) * 1000000000ull + le32(at + 4),
                           .number = source[2],
                           .direction = source[3] == 1 ? 0 : 1,
                           .sequence = be32(tcp + 4),
                           .acknowledgement = be32(tcp + 8),
                           .flags = tcp[13],
                           .payload_offset = offset + 16 + heads,
                           .payload_captured = le32(at + 8) - heads,
                           .payload_real = le32(at + 12) - heads};
}

bool traffic_pcap_read(const bp_temp_file *temp_file, traffic_pcap *ret_pcap) {
    traffic_pcap pcap = {0};
    bp_buffer_init(&pcap.bytes, (size_t)1 << 30);
    if (!read_all(temp_file, &pcap.bytes) || pcap.bytes.size < 24) {
        traffic_pcap_release(&pcap);
        return false;
    }
    const unsigned char *data = (const unsigned char *)pcap.bytes.data;
    pcap.frames = calloc(pcap.bytes.size / 70 + 1, sizeof *pcap.frames);
    size_t offset = 24;
    while (pcap.frames != NULL && offset + 70 <= pcap.bytes.size) {
        pcap.frames[pcap.frame_count++] = parse(data + offset, offset);
        offset += 16 + le32(data + offset + 8);
    }
    if (pcap.frames == NULL || offset != pcap.bytes.size) {
        traffic_pcap_release(&pcap);
        return false;
    }
    if (pcap.frame_count > 0) {
        pcap.first_wall_ns = pcap.frames[0].wall_ns;
        pcap.last_wall_ns = pcap.frames[pcap.frame_count - 1].wall_ns;
    }
    *ret_pcap = pcap;
    return true;
}

void traffic_pcap_release(traffic_pcap *pcap) {
    bp_buffer_release(&pcap->bytes);
    free(pcap->frames);
    pcap->frames = NULL;
}

void traffic_pcap_stream(const traffic_pcap *pcap, unsigned number, unsigned direction,
                         bp_buffer *ret_bytes) {
    bp_buffer_init(ret_bytes, (size_t)1 << 30);
    for (size_t i = 0; i < pcap->frame_count; i++) {
        const traffic_frame *frame = &pcap->frames[i];
        if (frame->number == number && frame->direction == direction) {
            (void)bp_buffer_append(ret_bytes, pcap->bytes.data + frame->payload_offset,
                                   frame->payload_captured);
        }
    }
}

bool traffic_pcap_is_gapless(const traffic_pcap *pcap) {
    uint32_t next[256][2] = {{0}};
    for (size_t i = 0; i < pcap->frame_count; i++) {
        const traffic_frame *frame = &pcap->frames[i];
        uint32_t *end = &next[frame->number][frame->direction];
        bool is_syn = (frame->flags & 2) != 0;
        if (!is_syn && frame->sequence != *end) {
            return false;
        }
        *end = frame->sequence + (uint32_t)frame->payload_real + (is_syn ? 1 : 0);
    }
    return true;
}

bool traffic_pcap_is_in_order(const traffic_pcap *pcap) {
    for (size_t i = 1; i < pcap->frame_count; i++) {
        if (pcap->frames[i].wall_ns < pcap->frames[i - 1].wall_ns) {
            return false;
        }
    }
    return true;
}
