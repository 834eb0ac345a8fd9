/*
 * What bugpack is told, and what the client writes into reports: docs/man/bugpack-spice.1 describes
 * session.json and channel-state.json.
 */
#ifndef HOSTS_SPICE_REPORT_H
#define HOSTS_SPICE_REPORT_H

#include "hosts/spice/client.h"

/* Opens the session, with its providers and the crash handler. Says what is wrong on failure. */
bool spice_report_open(spice_client *client);

/* A report with a screenshot, if there is a surface. Any thread. */
void spice_report_take(spice_client *client, const char *description);

/* A gap of a channel, on its thread: "<channel>:<gap>", where SPICE_MALFORMED and "unimpl" stand
 * for "decode:<opcode>" and "unimpl:<opcode>". channel-state.json is that of this instant. */
void spice_report_gap(spice_channel *channel, const char *opcode, const char *gap);

/* A channel is lost, on its thread: a disconnect report, if it was up. */
void spice_report_lost(spice_channel *channel, const spice_failure *failure, bool was_up);

#endif
