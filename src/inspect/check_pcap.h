/*
 * Checks the structure of traffic.pcap while it is read: the header that bugpack writes, and
 * records that end where the file ends.
 */
#ifndef BP_INSPECT_CHECK_PCAP_H
#define BP_INSPECT_CHECK_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is the begin of a file. */
typedef struct bp_pcap_check {
    unsigned char header[24]; /* of the file or a record, as far as it is there */
    size_t header_bytes;
    uint64_t payload_left;
    uint64_t record_count; /* begun */
    bool has_file_header;
} bp_pcap_check;

/* NULL, or what is wrong; then it is final. */
const char *bp_pcap_check_write(bp_pcap_check *check, const void *bytes, size_t byte_count);
/* The same for the end of the file. */
const char *bp_pcap_check_end(const bp_pcap_check *check);

#endif
