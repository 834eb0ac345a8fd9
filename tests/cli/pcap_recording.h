/*
 * Records traffic and writes it to DIR/NAME.pcap with its index, and what was recorded of stream N
 * to DIR/NAME.N.sent and DIR/NAME.N.received.
 */
#ifndef TESTS_CLI_PCAP_RECORDING_H
#define TESTS_CLI_PCAP_RECORDING_H

#include <stdio.h>

#include "recorder/traffic.h"

extern const char *directory;

typedef struct recorded {
    bp_traffic *traffic;
    FILE *expected[2]; /* by direction; NULL: not compared */
} recorded;

/* A file DIR/NAME and ENDING. */
FILE *create(const char *name, const char *ending);

/* Opens a channel. */
recorded record(const char *name, unsigned number, size_t ring_bytes,
                const bugpack_channel_options *options);

void add(recorded *channel, bugpack_direction direction, const void *bytes, size_t byte_count);
void add_text(recorded *channel, bugpack_direction direction, const char *text);

/* Bytes that follow from `seed`, to be freed. */
unsigned char *bytes_of(size_t byte_count, uint32_t seed);

/* Writes the files, and DIR/NAME.extent with what the ledger would say. Ends the channels. */
bp_traffic_extent finish(const char *name, recorded *channels, size_t channel_count);

#endif
