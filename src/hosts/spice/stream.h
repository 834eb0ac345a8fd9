/*
 * A TCP connection to the server. All waits have a limit. A failure says what failed, for a person
 * and for a disconnect report.
 */
#ifndef HOSTS_SPICE_STREAM_H
#define HOSTS_SPICE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/traffic.h>

typedef struct spice_failure {
    int error_number; /* errno, or 0 */
    const char *kind; /* "io", "closed", "timeout", "link", "protocol" */
    char text[256];
} spice_failure;

/* Fills a failure; returns false, for the caller to return. */
bool spice_fail(spice_failure *failure, const char *kind, int error_number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Connects within SPICE_CONNECT_MS for each address of the name. */
bool spice_connect(const char *host, const char *port, int *ret_fd, spice_failure *failure);

/* All of the bytes within `limit_ms`. */
bool spice_read(int fd, void *bytes, size_t byte_count, int64_t limit_ms, spice_failure *failure);
bool spice_write(int fd, const void *bytes, size_t byte_count, int64_t limit_ms,
                 spice_failure *failure);

/*
 * The link handshake of a channel: header, capabilities, the ticket, and the server's verdict.
 * `channel_type` is one that the client has, `connection_id` 0 for the main channel. Each message
 * is recorded in `traffic`, the ticket as zeros. Within SPICE_LINK_MS. In link.c.
 */
bool spice_link(int fd, uint8_t channel_type, uint32_t connection_id, const char *password,
                bugpack_channel *traffic, spice_failure *failure);

int64_t spice_now_ms(void);

enum { SPICE_CONNECT_MS = 5000, SPICE_LINK_MS = 10000, SPICE_MESSAGE_MS = 60000 };

#endif
