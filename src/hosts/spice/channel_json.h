/*
 * session.json and channel-state.json: providers, on threads of the library.
 */
#ifndef HOSTS_SPICE_CHANNEL_JSON_H
#define HOSTS_SPICE_CHANNEL_JSON_H

#include "hosts/spice/client.h"

/* The context is the client. channel-state.json has the channel that the report is about, else a
 * list of all. */
bugpack_provider_callback spice_session_json, spice_channels_json;

/* One channel: the context is a spice_channel. */
bugpack_provider_callback spice_channel_json;

#endif
