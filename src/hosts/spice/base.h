/*
 * The messages that all channels have: acknowledgements, pings, notices.
 */
#ifndef HOSTS_SPICE_BASE_H
#define HOSTS_SPICE_BASE_H

#include "hosts/spice/client.h"

/* The state of those that are received is the spice_channel, whose lock is held. */
extern const spice_opcodes spice_base_received, spice_base_sent;

/* The row of an opcode, in `base` or in the channel's `own`; NULL: not known. Its place in a
 * spice_counter is `ret_place`. */
const spice_opcode *spice_opcode_row(const spice_opcodes *base, const spice_opcodes *own,
                                     uint16_t type, size_t *ret_place);

#endif
