/*
 * What the link reply and the messages of main, inputs, cursor and playback say, as far as the
 * client keeps it.
 */
#ifndef HOSTS_SPICE_STATES_H
#define HOSTS_SPICE_STATES_H

#include "hosts/spice/wire.h"

enum { SPICE_PUBLIC_KEY_BYTES = 162, SPICE_LINK_REPLY_MAX_BYTES = 4096 };

/* What a server answered. */
typedef struct spice_link_reply {
    uint32_t error;
    const uint8_t *public_key; /* SPICE_PUBLIC_KEY_BYTES, in the reply */
    uint32_t common_caps;      /* the first 32 of them */
} spice_link_reply;

/* Reads the body of a link reply. Pure; false if it is malformed. */
bool spice_link_reply_read(const uint8_t *body, size_t size, spice_link_reply *ret_reply);

enum { SPICE_NAME_MAX_BYTES = 64, SPICE_LISTED_MAX = 64 };

typedef struct spice_main_state {
    bool has_init, has_list, has_agent;
    uint32_t session_id; /* the connection id of the other channels */
    uint32_t mouse_mode;
    char server_name[SPICE_NAME_MAX_BYTES + 1]; /* any bytes but NUL; "" unknown */
    size_t listed_count;
    struct {
        uint8_t type, id;
    } listed[SPICE_LISTED_MAX]; /* the channels that the server offers */
} spice_main_state;

typedef struct spice_cursor_state {
    int32_t x, y;
    bool is_visible;
    uint16_t width, height;
    const char *shape; /* the word for its type; NULL: it has none */
} spice_cursor_state;

typedef struct spice_playback_state {
    bool is_playing;
    uint32_t channel_count, frequency;
    uint16_t mode;
    uint64_t data_bytes; /* of raw samples */
} spice_playback_state;

extern const spice_opcode spice_main_opcodes[];     /* a spice_main_state is their state */
extern const spice_opcode spice_inputs_opcodes[];   /* they have none */
extern const spice_opcode spice_cursor_opcodes[];   /* a spice_cursor_state */
extern const spice_opcode spice_playback_opcodes[]; /* a spice_playback_state */

#endif
