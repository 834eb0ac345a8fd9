/*
 * The client: its channels, and what the threads share. docs/man/bugpack-spice.1 describes the
 * program, its lines and its reports.
 *
 * One thread a channel does all input and output of its connection. The first thread of the
 * program prints, reads keys, and starts and ends connections (main.c). Providers of reports read
 * the state of the channels on threads of the library.
 */
#ifndef HOSTS_SPICE_CLIENT_H
#define HOSTS_SPICE_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include <bugpack/bugpack.h>

#include "hosts/spice/display.h"
#include "hosts/spice/states.h"
#include "hosts/spice/stream.h"

/* The channels: main first. */
enum { SPICE_MAIN, SPICE_DISPLAY, SPICE_INPUTS, SPICE_CHANNEL_KINDS };

enum {
    SPICE_PASSWORD_MAX_BYTES = 59, /* and a NUL, SPICE_MAX_PASSWORD_LENGTH */
    SPICE_RESULTS_KEPT = 16,
    SPICE_HANG_MS = 3000,
    SPICE_SEND_MS = 10000
};

typedef struct spice_counter {
    uint64_t bytes;
    uint64_t messages[SPICE_OPCODE_TYPES]; /* of known opcodes by type; [0]: of all others */
} spice_counter;

typedef struct spice_result {
    int64_t at_ms;
    const char *opcode, *gap; /* gap: NULL for a message that was carried out */
    size_t bytes;
} spice_result;

struct spice_channel;

/* A kind of channel. */
typedef struct spice_kind {
    uint8_t type;
    const char *name, *thread_name;
    uint32_t weight, message_max_bytes;
    bugpack_payload payload;
    const spice_opcode *opcodes[2]; /* its own, by bugpack_direction */
    /* Called on its thread when the link is made, and after each message; NULL: nothing to do. */
    bool (*on_up)(struct spice_channel *channel, spice_failure *failure);
    bool (*on_message)(struct spice_channel *channel, spice_failure *failure);
} spice_kind;

typedef struct spice_channel {
    const spice_kind *kind;
    /* The opcodes that all channels have. The state of those that are received is the channel. */
    const spice_opcode *const *base_opcodes;
    struct spice_client *client;
    pthread_t thread; /* with is_started: of the first thread, and of main's while that runs */
    bool is_started;

    /* Of its own thread. */
    bugpack_channel *traffic;
    bugpack_watchdog *watchdog;
    uint8_t *buffer; /* a message with its header */
    size_t buffer_bytes;

    pthread_mutex_t lock; /* for what follows */
    int socket;           /* which only its thread opens and closes; -1: none */
    const char *phase;    /* "closed", "connecting", "up", "lost" */

    /* Of a connection: when it is lost it stays until the next one. */
    spice_counter counters[2]; /* by bugpack_direction */
    uint32_t ack_generation, ack_window, ack_left;
    uint64_t ping_count;
    size_t ping_bytes;
    int64_t ping_at_ms;
    uint64_t gap_count;
    size_t result_count; /* of all; the ring has the newest */
    spice_result results[SPICE_RESULTS_KEPT];
    spice_failure failure; /* why it was lost */
    union {
        spice_main_state main;
        spice_display display;
    } state;
} spice_channel;

typedef struct spice_client {
    char host[256];
    const char *port;
    char password[SPICE_PASSWORD_MAX_BYTES + 1];
    bugpack_session *session;
    atomic_bool is_ending; /* the connection is taken down: what fails now is no disconnect */
    atomic_bool is_lost;   /* a channel of the connection has ended */
    atomic_uint connection_count;

    spice_channel channels[SPICE_CHANNEL_KINDS];
} spice_client;

/* --- channel.c: the threads of channels --- */

/* Sets up all channels as closed. */
void spice_channels_init(spice_client *client);

/* Starts a connection: the thread of main, which starts the others. False: no thread. */
bool spice_connection_start(spice_client *client);

/* Ends it and waits for its threads. */
void spice_connection_end(spice_client *client);

/* --- channel_json.c: providers of session.json and channel-state.json --- */

/* The context is the client. channel-state.json has the channel that the report is about, else a
 * list of all. */
bugpack_provider_callback spice_session_json, spice_channels_json;

/* One channel: the context is a spice_channel. */
bugpack_provider_callback spice_channel_json;

/* --- report.c: what bugpack and the user are told --- */

/* Opens the session, with its providers and the crash handler. NULL: the library's directory, and
 * `report_dir` for pedantic reports. Prints what is wrong on failure. */
bool spice_report_open(spice_client *client, const char *report_dir, bool is_pedantic,
                       const char *pedantic_dir);

/* A report with a screenshot, if there is a surface. Any thread. */
void spice_report_take(spice_client *client);

/* A gap of a channel, on its thread: "<channel>:<gap>". channel-state.json is that of this instant.
 * `opcode` is for SPICE_MALFORMED and SPICE_UNIMPLEMENTED. */
void spice_report_gap(spice_channel *channel, const char *opcode, const char *gap);

/* A channel is lost, on its thread: a disconnect report, if it was up. */
void spice_report_lost(spice_channel *channel, const spice_failure *failure, bool was_up);

#endif
