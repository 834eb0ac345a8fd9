/*
 * The link handshake of a channel: header, capabilities, the ticket, and the server's verdict.
 */
#ifndef HOSTS_SPICE_LINK_H
#define HOSTS_SPICE_LINK_H

#include "hosts/spice/stream.h"

#include <bugpack/traffic.h>

/* The server's word for a link error; literals. */
const char *spice_link_error_text(uint32_t error);

/*
 * Makes a channel of a connection: `connection_id` is 0 for the main channel. Each message is
 * recorded in `traffic`, the ticket as zeros. Within SPICE_LINK_MS.
 */
bool spice_link(spice_stream *stream, uint8_t channel_type, uint32_t connection_id,
                const char *password, bugpack_channel *traffic, spice_failure *failure);

#endif
