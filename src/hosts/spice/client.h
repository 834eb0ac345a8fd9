/*
 * The client: its channels, and what the threads share. docs/man/bugpack-spice.1 describes the
 * program.
 *
 * One thread a channel does all input and output of its connection. The first thread of the
 * program draws, reads keys, and starts and ends connections (main.c). Providers of reports read
 * the state of the channels on threads of the library.
 */
#ifndef HOSTS_SPICE_CLIENT_H
#define HOSTS_SPICE_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include <bugpack/bugpack.h>

#include "hosts/spice/display.h"
#include "hosts/spice/options.h"
#include "hosts/spice/states.h"
#include "hosts/spice/stream.h"

enum {
    SPICE_CHANNEL_KINDS = 5, /* main, display, inputs, cursor, playback */
    SPICE_RESULTS_KEPT = 16,
    SPICE_SECONDS_KEPT = 60,
    SPICE_HANG_MS = 3000,
    SPICE_SEND_MS = 10000
};

/* The place of an opcode in counters: those that all channels have come first. */
typedef struct spice_counter {
    uint64_t bytes;
    uint64_t messages[SPICE_OPCODES_MAX + 1]; /* the last: opcodes that have no name */
} spice_counter;

typedef struct spice_result {
    int64_t at_ms;
    const char *opcode, *gap; /* gap: NULL for a message that was carried out */
    size_t bytes;
} spice_result;

struct spice_channel;

/* What a kind of channel is. */
typedef struct spice_kind {
    uint8_t type;
    const char *name, *thread_name;
    uint32_t weight, message_max_bytes;
    uint64_t traffic_flags;
    const spice_opcodes *received, *sent;
    /* Called on its thread when the link is made, and after each message; NULL: nothing to do. */
    bool (*on_up)(struct spice_channel *channel, spice_failure *failure);
    bool (*on_message)(struct spice_channel *channel, spice_failure *failure);
} spice_kind;

/* The state of a channel as it was when it was lost stays until the next connection has it. */
typedef struct spice_channel {
    const spice_kind *kind;
    struct spice_client *client;
    pthread_t thread; /* with is_started: of the first thread, and of main's while that runs */
    bool is_started;

    /* Of its own thread. */
    spice_stream stream;
    bugpack_channel *traffic;
    bugpack_watchdog *watchdog;
    uint8_t *buffer; /* a message with its header */
    size_t buffer_bytes;
    bool has_drawn; /* since it last waited */

    pthread_mutex_t lock; /* for what follows */
    int socket;           /* that of the stream while it is up, for others to end; or -1 */
    const char *phase;    /* "closed", "connecting", "up", "lost" */
    int64_t up_at_ms;
    spice_counter received, sent;
    uint32_t ack_generation, ack_window, ack_left;
    uint64_t ping_count;
    size_t ping_bytes;
    int64_t ping_at_ms;
    uint32_t rtt_us; /* as of the last second; 0: not known */
    uint64_t gap_count, frame_count;
    size_t result_count; /* of all; the ring has the newest */
    spice_result results[SPICE_RESULTS_KEPT];
    spice_failure failure; /* why it was lost */
    union {
        spice_main_state main;
        spice_display display;
        spice_inputs_state inputs;
        spice_cursor_state cursor;
        spice_playback_state playback;
    } state;
} spice_channel;

typedef struct spice_second {
    uint64_t received_bytes, sent_bytes, frames, draws;
} spice_second;

typedef struct spice_client {
    const spice_options *options;
    bugpack *session;
    int wake_fd;           /* an eventfd: something is to be looked at by the first thread */
    int keys_fds[2];       /* a pipe of scan codes for the thread of inputs */
    atomic_bool is_ending; /* the connection is taken down: what fails now is no disconnect */
    atomic_bool is_lost;   /* a channel of the connection has ended */
    atomic_uint connection_count;

    pthread_mutex_t lock; /* for what follows */
    size_t second_count;  /* of all; the ring has the newest */
    spice_second seconds[SPICE_SECONDS_KEPT];

    spice_channel channels[SPICE_CHANNEL_KINDS]; /* main first, display second */
} spice_client;

enum { SPICE_MAIN = 0, SPICE_DISPLAY = 1, SPICE_INPUTS = 2, SPICE_CURSOR = 3, SPICE_PLAYBACK = 4 };

#endif
