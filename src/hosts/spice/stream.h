/*
 * A connection to the server: TCP, with TLS on it or not. All waits have a limit. A failure says
 * what failed, for a person and for a disconnect report.
 */
#ifndef HOSTS_SPICE_STREAM_H
#define HOSTS_SPICE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/traffic.h>

#include "hosts/spice/options.h"

typedef struct spice_failure {
    int error_number; /* errno, or 0 */
    const char *kind; /* "io", "closed", "timeout", "tls", "link", "protocol" */
    char text[256];
} spice_failure;

/* Fills a failure; returns false, for the caller to return. */
bool spice_fail(spice_failure *failure, const char *kind, int error_number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

typedef struct spice_stream {
    int fd;             /* -1: none */
    struct bio_st *bio; /* of OpenSSL, which closes the descriptor */
} spice_stream;

/* Connects within SPICE_CONNECT_MS for each address of the name, and checks the certificate where
 * the options ask for TLS. On failure nothing is left open. */
bool spice_stream_open(spice_stream *ret_stream, const spice_options *options,
                       spice_failure *failure);
void spice_stream_close(spice_stream *stream);

/* All of the bytes within `limit_ms`. */
bool spice_stream_read(spice_stream *stream, void *bytes, size_t byte_count, int64_t limit_ms,
                       spice_failure *failure);
bool spice_stream_write(spice_stream *stream, const void *bytes, size_t byte_count,
                        int64_t limit_ms, spice_failure *failure);

/* Whether there is something to read now. */
bool spice_stream_has_input(const spice_stream *stream);
/* Waits, without a limit, until there is something to read here or at `other_fd` (-1: none). */
void spice_stream_wait(const spice_stream *stream, int other_fd);

/* The round trip that TCP measures, in microseconds; 0: not known. */
uint32_t spice_stream_rtt_us(const spice_stream *stream);

/*
 * The link handshake of a channel: header, capabilities, the ticket, and the server's verdict.
 * `channel_type` is one that the client has, `connection_id` 0 for the main channel. Each message
 * is recorded in `traffic`, the ticket as zeros. Within SPICE_LINK_MS. In link.c.
 */
bool spice_link(spice_stream *stream, uint8_t channel_type, uint32_t connection_id,
                const char *password, bugpack_channel *traffic, spice_failure *failure);

int64_t spice_now_ms(void);

enum { SPICE_CONNECT_MS = 5000, SPICE_LINK_MS = 10000, SPICE_MESSAGE_MS = 60000 };

#endif
