#include "inspect/check_pcap.h"

#include <string.h>

/* https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-03.html, little-endian, in nanoseconds. */
enum { file_header_bytes = 24, record_header_bytes = 16 };
static const uint32_t magic_nanoseconds = 0xa1b23c4d;
static const uint32_t version = 2 | 4 << 16;
static const uint32_t snap_bytes = 262144;
static const uint32_t link_ethernet = 1;

static uint32_t read_u32(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static const char *check_file_header(const unsigned char *header) {
    if (read_u32(header) != magic_nanoseconds || read_u32(header + 4) != version) {
        return "it is no pcap as bugpack writes it";
    }
    if (read_u32(header + 16) != snap_bytes || read_u32(header + 20) != link_ethernet) {
        return "it has another snap length or link type";
    }
    return NULL;
}

static const char *check_record(bp_pcap_check *check) {
    const unsigned char *header = check->header;
    uint32_t kept_bytes = read_u32(header + 8), original_bytes = read_u32(header + 12);
    if (read_u32(header + 4) >= 1000000000) {
        return "a time has over a second of nanoseconds";
    }
    if (kept_bytes > snap_bytes || kept_bytes > original_bytes) {
        return "a record has more bytes than it may";
    }
    check->record_count++;
    check->payload_left = kept_bytes;
    return NULL;
}

const char *bp_pcap_check_write(bp_pcap_check *check, const void *bytes, size_t byte_count) {
    const unsigned char *at = bytes;
    const char *wrong = NULL;
    while (byte_count > 0 && wrong == NULL) {
        size_t needed = (size_t)(check->has_file_header ? record_header_bytes : file_header_bytes);
        uint64_t wanted =
            check->payload_left > 0 ? check->payload_left : needed - check->header_bytes;
        size_t taken = wanted < byte_count ? (size_t)wanted : byte_count;
        if (check->payload_left > 0) {
            check->payload_left -= taken;
        } else {
            memcpy(check->header + check->header_bytes, at, taken);
            check->header_bytes += taken;
            if (check->header_bytes == needed) {
                wrong =
                    check->has_file_header ? check_record(check) : check_file_header(check->header);
                check->has_file_header = true;
                check->header_bytes = 0;
            }
        }
        at += taken;
        byte_count -= taken;
    }
    return wrong;
}

const char *bp_pcap_check_end(const bp_pcap_check *check) {
    if (!check->has_file_header) {
        return "it has no header";
    }
    return check->header_bytes > 0 || check->payload_left > 0 ? "its last record is cut" : NULL;
}
