/*
 * Facts from the link reply and the messages of main and inputs that the client keeps.
 */
#ifndef HOSTS_SPICE_STATES_H
#define HOSTS_SPICE_STATES_H

#include "hosts/spice/wire.h"

enum { SPICE_PUBLIC_KEY_BYTES = 162, SPICE_LINK_REPLY_MAX_BYTES = 4096, SPICE_LISTED_MAX = 64 };

/* A server's answer. */
typedef struct spice_link_reply {
    uint32_t error;
    const uint8_t *public_key; /* SPICE_PUBLIC_KEY_BYTES, in the reply */
    uint32_t common_caps;      /* the first 32 of them */
} spice_link_reply;

/* Reads the body of a link reply. Pure; false if it is malformed. */
bool spice_link_reply_read(const uint8_t *body, size_t size, spice_link_reply *ret_reply);

typedef struct spice_main_state {
    bool has_init, has_list;
    uint32_t session_id; /* the connection id of the other channels */
    size_t listed_count;
    struct {
        uint8_t type, id;
    } listed[SPICE_LISTED_MAX]; /* the channels that the server offers */
} spice_main_state;

extern const spice_opcode spice_main_opcodes[];   /* a spice_main_state is their state */
extern const spice_opcode spice_inputs_opcodes[]; /* they have none */

#endif
