/*
 * What the two halves of the relay share: relay.c moves bytes, relay_control.c answers signals, the
 * monitor and the terminal.
 */
#ifndef BP_RUN_RELAY_PRIVATE_H
#define BP_RUN_RELAY_PRIVATE_H

#include "run/keyboard.h"
#include "run/pump.h"
#include "run/relay.h"

/* What may lie in a pipe when the command ends; the kernel gives nobody a larger one by default. */
#define BP_RUN_REMAINS_MAX_BYTES ((size_t)4 << 20)

struct relay;

/* One output of the command. */
struct lane {
    struct relay *relay;
    bp_run_stream stream;
    bp_run_pump pump;
    size_t remains_bytes; /* what may still be read once the command has ended */
};

struct relay {
    bp_run_child *child;
    const bp_run_calls *calls;
    bp_run_keyboard keyboard;
    struct lane lanes[2];
    bool has_ended;
    bool is_given_up; /* told to end once more, after the command's end */
    bp_run_result result;
};

/* The command owns the terminal as long as our group may use it. */
void bp_relay_take_terminal(struct relay *relay);

/* Where an end of the terminal answers no more: closes the command's, if ours is gone. */
void bp_relay_follow_hangup(struct relay *relay);

/* Reads what the monitor tells; there is something. */
void bp_relay_read_news(struct relay *relay);

/* Answers every signal that waits. */
void bp_relay_answer_signals(struct relay *relay);

#endif
