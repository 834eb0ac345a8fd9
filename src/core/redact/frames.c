/*
 * traffic.pcap of a report that was taken before, a record at a time, in the one form that
 * recorder/pcap.h writes: Ethernet, IPv4 without options, TCP. From where it has another
 * one, it is passed on as it is, and counts as not searched.
 */
#include "redact/record.h"

#include <string.h>

enum {
    record_header_bytes = 16,
    ethernet_bytes = 14,
    ipv4_bytes = 20,
    tcp_bytes = 20,
    checksum_at = 16, /* in the header of TCP */
    captured_min = ethernet_bytes + ipv4_bytes + tcp_bytes,
    captured_max = ethernet_bytes + 65535
};

/* Adds the words of a payload to a sum of the Internet checksum (RFC 1071). */
static uint32_t add_words(uint32_t sum, const unsigned char *bytes, size_t byte_count,
                          unsigned flip) {
    for (size_t i = 0; i < byte_count; i++) {
        sum += (uint32_t)(bytes[i] ^ flip) << (i % 2 == 0 ? 8 : 0);
    }
    sum += byte_count % 2 != 0 ? flip : 0;
    sum = (sum & 0xFFFF) + (sum >> 16);
    return (sum & 0xFFFF) + (sum >> 16);
}

/* Where TCP begins in a record; 0 where it is framed in another way. */
static size_t find_tcp(const unsigned char *record, size_t size) {
    const unsigned char *ip = record + record_header_bytes + ethernet_bytes;
    bool is_known = ip[0] == 0x45 && ip[9] == 6;
    const size_t tcp = record_header_bytes + ethernet_bytes + ipv4_bytes;
    return is_known && tcp + tcp_bytes <= size ? tcp : 0;
}

/* The checksum stays right if it was, and wrong if it was wrong (RFC 1624, equation 3). */
static bugpack_status search_record(bp_redactor *redactor, unsigned char *record, size_t size,
                                    bool *ret_is_known) {
    size_t tcp = find_tcp(record, size);
    size_t payload = tcp == 0 ? SIZE_MAX : tcp + (size_t)(record[tcp + 12] >> 4) * 4;
    *ret_is_known = payload <= size;
    if (payload >= size) {
        return BUGPACK_OK;
    }
    unsigned char *checksum = record + tcp + checksum_at;
    uint32_t sum = add_words(0, checksum, 2, 0xFF);
    sum = add_words(sum, record + payload, size - payload, 0xFF);
    bugpack_status status =
        bp_redactor_overwrite(redactor, record + payload, size - payload, 0, size - payload);
    sum = ~add_words(sum, record + payload, size - payload, 0);
    checksum[0] = (unsigned char)(sum >> 8);
    checksum[1] = (unsigned char)sum;
    return status;
}

bugpack_status bp_redact_frames(bp_redactor *redactor) {
    static const unsigned char header[BP_REDACT_FRAMES_BEGIN] = {
        0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, [18] = 4, [20] = 1};
    struct bp_redact_entry *entry = &redactor->entry;
    unsigned char *bytes = (unsigned char *)entry->held.data;
    size_t size = entry->held.size;
    bugpack_status status = BUGPACK_OK;
    bool is_known = false;
    if (size < entry->aim) { /* the entry ends */
        is_known = size == 0 && entry->aim == record_header_bytes;
    } else if (size == sizeof header) {
        is_known = memcmp(bytes, header, sizeof header) == 0;
    } else if (size == record_header_bytes) {
        size_t captured = bytes[8] | (size_t)bytes[9] << 8 | (size_t)bytes[10] << 16;
        is_known = bytes[11] == 0 && captured >= captured_min && captured <= captured_max;
        entry->aim = size + captured;
    } else {
        status = search_record(redactor, bytes, size, &is_known);
    }
    if (!is_known) {
        entry->form = BP_REDACT_BINARY;
    } else if (size == record_header_bytes) {
        return BUGPACK_OK; /* with the bytes of its record */
    }
    entry->aim = record_header_bytes;
    bp_buffer_clear(&entry->held);
    return status == BUGPACK_OK && size > 0 ? entry->pass_on(entry->context, bytes, size) : status;
}
