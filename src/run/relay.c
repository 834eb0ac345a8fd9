#include "run/relay.h"

#include <poll.h>
#include <unistd.h>

#include "base/status.h"
#include "run/relay_private.h"
#include "run/signals.h"

/* How often a command in the background looks whether it has been brought forward. */
enum { background_look_ms = 200 };

enum { poll_signals, poll_monitor, poll_keyboard, poll_keyboard_to, poll_lanes, poll_max = 8 };

static void observe(void *context, const char *bytes, size_t byte_count) {
    const struct lane *lane = context;
    const bp_run_calls *calls = lane->relay->calls;
    calls->output(calls->context, lane->stream, bytes, byte_count);
}

static short events_of_output(const bp_run_pump *pump) {
    return bp_run_pump_wants_to_write(pump) ? POLLOUT : 0;
}

/* -1 leaves an entry out: a descriptor of which nothing is wanted would still tell of its end. */
static struct pollfd wish(int fd, short events) {
    return (struct pollfd){events != 0 ? fd : -1, events, 0};
}

static size_t fill_wishes(const struct relay *relay, struct pollfd fds[poll_max]) {
    const bp_run_keyboard *keyboard = &relay->keyboard;
    size_t count = poll_lanes;
    fds[poll_signals] = wish(bp_run_signals_fd(), POLLIN);
    fds[poll_monitor] = wish(relay->has_ended ? -1 : relay->child->monitor_fd, POLLIN);
    fds[poll_keyboard] =
        wish(keyboard->from_fd, bp_run_keyboard_wants_to_read(keyboard) ? POLLIN : 0);
    fds[poll_keyboard_to] =
        wish(keyboard->to_fd, bp_run_keyboard_wants_to_write(keyboard) ? POLLOUT : 0);
    for (size_t i = 0; i < relay->child->output_count; i++) {
        const bp_run_pump *pump = &relay->lanes[i].pump;
        bool reads = bp_run_pump_wants_to_read(pump) && !relay->has_ended;
        fds[count++] = wish(pump->from_fd, reads ? POLLIN : 0);
        fds[count++] = wish(pump->to_fd, events_of_output(pump));
    }
    return count;
}

/* A command whose reader is gone is to learn it from its own write. */
static void close_broken(struct relay *relay, size_t index) {
    bp_run_output *output = &relay->child->outputs[index];
    if (relay->lanes[index].pump.is_broken && output->stream != BP_RUN_TERMINAL &&
        output->from_fd >= 0) {
        (void)close(output->from_fd);
        output->from_fd = -1;
        relay->lanes[index].pump.from_fd = -1;
    }
}

static void move_output(struct relay *relay, const struct pollfd *fds) {
    for (size_t i = 0; i < relay->child->output_count; i++) {
        struct lane *lane = &relay->lanes[i];
        bool is_ready = (fds[poll_lanes + 2 * i + 1].revents & (POLLOUT | POLLERR)) != 0;
        if (fds[poll_lanes + 2 * i].revents != 0) {
            (void)bp_run_pump_read(&lane->pump, BP_RUN_PUMP_BYTES);
        }
        if (relay->has_ended && bp_run_pump_wants_to_read(&lane->pump)) {
            size_t count = bp_run_pump_read(&lane->pump, lane->remains_bytes);
            lane->remains_bytes -= count;
            lane->pump.is_drained = count == 0;
        }
        bp_run_pump_write(&lane->pump, is_ready);
        close_broken(relay, i);
    }
}

/* Whether all that the ended command wrote is where it belongs. */
static bool is_done(const struct relay *relay) {
    bool is_done = relay->has_ended;
    for (size_t i = 0; i < relay->child->output_count && is_done; i++) {
        const struct lane *lane = &relay->lanes[i];
        const bp_run_pump *pump = &lane->pump;
        bool is_read =
            pump->from_fd < 0 || pump->is_broken || lane->remains_bytes == 0 || pump->is_drained;
        is_done = is_read && !bp_run_pump_wants_to_write(pump);
    }
    return is_done || relay->is_given_up;
}

/* A command behind a shell's "&" reads a terminal of its own, so that no SIGTTIN stops it; and then
 * a shell's "fg" sends no SIGCONT. Nothing tells that the terminal is ours now, but looking. */
static bool is_in_background(const struct relay *relay) {
    return relay->child->keyboard_to_fd >= 0 && !relay->keyboard.is_ours && !relay->has_ended;
}

/* After the end, what can be read is read without being waited for. */
static int wait_ms(const struct relay *relay) {
    bool is_reading = false;
    for (size_t i = 0; i < relay->child->output_count; i++) {
        const struct lane *lane = &relay->lanes[i];
        is_reading = is_reading || (bp_run_pump_wants_to_read(&lane->pump) &&
                                    lane->remains_bytes > 0 && !lane->pump.is_drained);
    }
    if (relay->has_ended && is_reading) {
        return 0;
    }
    int keyboard_ms = bp_run_keyboard_wait_ms(&relay->keyboard);
    return keyboard_ms < 0 && is_in_background(relay) ? background_look_ms : keyboard_ms;
}

static void loop(struct relay *relay) {
    while (!is_done(relay)) {
        struct pollfd fds[poll_max];
        size_t count = fill_wishes(relay, fds);
        if (poll(fds, (nfds_t)count, wait_ms(relay)) < 0) {
            continue; /* a signal: its note is in the pipe */
        }
        if (is_in_background(relay)) {
            bp_relay_take_terminal(relay);
        }
        if (fds[poll_signals].revents != 0) {
            bp_relay_answer_signals(relay);
        }
        if (fds[poll_monitor].revents != 0 && !relay->has_ended) {
            bp_relay_read_news(relay);
        }
        size_t press_count =
            bp_run_keyboard_move(&relay->keyboard, fds[poll_keyboard].revents != 0);
        for (size_t i = 0; i < press_count; i++) {
            relay->calls->report(relay->calls->context, BP_RUN_ASKED_BY_KEY);
        }
        move_output(relay, fds);
        bp_relay_follow_hangup(relay);
    }
}

static bugpack_status open_lanes(struct relay *relay, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < relay->child->output_count && status == BUGPACK_OK; i++) {
        const bp_run_output *output = &relay->child->outputs[i];
        relay->lanes[i].relay = relay;
        relay->lanes[i].stream = output->stream;
        status = bp_run_pump_init(&relay->lanes[i].pump, output->from_fd, output->to_fd, observe,
                                  &relay->lanes[i], error);
    }
    return status;
}

bugpack_status bp_run_relay(bp_run_child *child, bp_hotkey *hotkey, const bp_run_calls *calls,
                            bp_run_result *ret_result, bugpack_error *error) {
    struct relay relay = {.child = child, .calls = calls};
    bp_run_keyboard_init(&relay.keyboard, hotkey, child->terminal.fd, child->keyboard_to_fd);
    for (size_t i = 0; i < 2; i++) {
        relay.lanes[i].pump = (bp_run_pump){.from_fd = -1, .to_fd = -1, .given_fd = -1};
    }
    bugpack_status status = open_lanes(&relay, error);
    if (status == BUGPACK_OK) {
        status = bp_run_signals_catch(child->keyboard_to_fd >= 0, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_run_child_let_go(child, error);
        if (status == BUGPACK_OK) {
            bp_relay_take_terminal(&relay);
            calls->started(calls->context);
            loop(&relay);
            bp_run_terminal_restore(&child->terminal);
        }
        bp_run_signals_release();
    }
    for (size_t i = 0; i < child->output_count; i++) {
        bp_run_pump_release(&relay.lanes[i].pump);
    }
    if (status == BUGPACK_OK) {
        *ret_result = relay.result;
    }
    return status;
}
