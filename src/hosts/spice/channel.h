/*
 * A channel's thread: it connects, links, and then reads messages, one after the other, until the
 * connection ends.
 */
#ifndef HOSTS_SPICE_CHANNEL_H
#define HOSTS_SPICE_CHANNEL_H

#include "hosts/spice/client.h"

/* Sets up all channels as closed. */
void spice_channels_init(spice_client *client);

/* Starts a connection: the thread of main, which starts the others. False: no thread. */
bool spice_connection_start(spice_client *client);

/* Ends it and waits for its threads. */
void spice_connection_end(spice_client *client);

#endif
