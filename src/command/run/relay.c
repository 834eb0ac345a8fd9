#include "run/relay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <bugpack/error.h>

#include "base/clock.h"
#include "recorder/line_splitter.h"
#include "run/descriptor.h"
#include "run/passed_on.h"
#include "run/pump.h"
#include "run/signals.h"

/* How often a command in the background checks whether it was brought forward, and how often all is
 * looked at where nothing can be waited for. */
enum { background_look_ms = 200, unpolled_look_ms = 20 };

/* The most that a pipe may hold when the command ends: larger ones need privileges. */
static const size_t remains_max_bytes = (size_t)4 << 20;

enum { poll_signals, poll_monitor, poll_keyboard, poll_keyboard_to, poll_lanes, poll_max = 8 };

/* One output of the command. */
struct lane {
    const bp_run_calls *calls;
    bp_run_output *output;
    bp_run_pump pump;
    bp_line_splitter splitter;
    size_t remains_bytes; /* what may still be read once the command has ended */
};

struct relay {
    bp_run_child *child;
    const bp_run_calls *calls;
    bp_run_keyboard keyboard;
    struct lane lanes[2];
    size_t lane_count;
    bool is_bell_due;
    bool has_ended;
    bool is_given_up; /* an ending signal came after the command's end */
    bp_run_passed_on passed_on;
    bp_run_result result;
};

static void take_line(void *context, const char *line, size_t line_bytes, unsigned part) {
    const struct lane *lane = context;
    lane->calls->line(lane->calls->context, lane->output->stream, line, line_bytes, part);
}

static void observe(void *context, const char *bytes, size_t byte_count) {
    struct lane *lane = context;
    lane->calls->wrote(lane->calls->context);
    bp_line_splitter_feed(&lane->splitter, bytes, byte_count);
}

/* An unfinished line, such as a prompt, belongs to a report too. */
static void flush_lines(struct relay *relay) {
    for (size_t i = 0; i < relay->lane_count; i++) {
        bp_line_splitter_flush(&relay->lanes[i].splitter);
    }
}

static void request_report(struct relay *relay) {
    flush_lines(relay);
    relay->calls->report(relay->calls->context);
}

static void note_passed_on(struct relay *relay, int number) {
    bp_run_passed_on_add(&relay->passed_on, number, bp_clock_monotonic_ns());
}

static void note_end(struct relay *relay, const bp_run_end *end) {
    relay->has_ended = true;
    if (bp_run_terminal_has_hung_up(&relay->child->pipes.terminal)) {
        note_passed_on(relay, SIGHUP); /* the kernel's own may be faster than ours */
    }
    relay->result.end = *end;
    relay->result.is_expected =
        bp_run_passed_on_explains(relay->passed_on, end, bp_clock_monotonic_ns());
    for (size_t i = 0; i < relay->lane_count; i++) {
        relay->lanes[i].remains_bytes = remains_max_bytes;
    }
}

/* The command uses the terminal while our process group may. */
static void take_terminal(struct relay *relay) {
    bp_run_pipes *pipes = &relay->child->pipes;
    if (pipes->keyboard_to_fd >= 0) {
        relay->keyboard.is_ours = bp_run_terminal_take(&pipes->terminal, pipes->keyboard_to_fd);
    }
}

/*
 * The command was stopped by its terminal: our whole group stops too, as it would have without us.
 * The kernel ignores that in an orphaned group, and the command goes on.
 */
static void stop_with_command(struct relay *relay) {
    struct sigaction ours;
    bp_run_terminal_restore(&relay->child->pipes.terminal);
    (void)sigaction(SIGTSTP, NULL, &ours);
    (void)signal(SIGTSTP, SIG_DFL);
    (void)kill(0, SIGTSTP); /* returns when we are continued: only this thread takes it */
    (void)sigaction(SIGTSTP, &ours, NULL);
    take_terminal(relay);
    (void)kill(-relay->child->pid, SIGCONT);
}

static void take_news(struct relay *relay, bp_run_news news, const bp_run_end *end) {
    if (news == BP_RUN_ENDED) {
        note_end(relay, end);
    } else if (news == BP_RUN_STOPPED && end->value != SIGSTOP) {
        /* A SIGSTOP is for the command alone: somebody continues it later. */
        stop_with_command(relay);
    } else if (news == BP_RUN_LOST) {
        relay->result.is_lost = true;
        note_end(relay, &(bp_run_end){.value = 1});
    }
}

/* Our terminal is gone, so the command's goes too: its reads end and its writes fail, as on ours.
 * What it has written by now is still observed. */
static void hang_up(struct relay *relay) {
    note_passed_on(relay, SIGHUP);
    for (size_t i = 0; i < relay->lane_count; i++) {
        struct lane *lane = &relay->lanes[i];
        if (lane->output->stream == BP_RUN_TERMINAL) {
            lane->pump.is_broken = true;
            (void)bp_run_pump_read(&lane->pump, BP_RUN_PUMP_BYTES);
            bp_run_pump_write(&lane->pump, true);
            bp_descriptor_close(&lane->output->from_fd);
            lane->pump.from_fd = -1;
        }
    }
    relay->child->pipes.keyboard_to_fd = -1;
    bp_run_keyboard_init(&relay->keyboard, relay->keyboard.hotkey, -1, -1);
}

/* If an end of the terminal failed, checks whether ours is gone. */
static void follow_hangup(struct relay *relay) {
    const bp_run_pipes *pipes = &relay->child->pipes;
    bool has_failed = relay->keyboard.from_fd < 0;
    for (size_t i = 0; i < relay->lane_count; i++) {
        const struct lane *lane = &relay->lanes[i];
        has_failed =
            has_failed || (lane->output->stream == BP_RUN_TERMINAL && lane->pump.is_broken);
    }
    if (has_failed && pipes->keyboard_to_fd >= 0 && !relay->has_ended &&
        bp_run_terminal_has_hung_up(&pipes->terminal)) {
        hang_up(relay);
    }
}

static void pass_on(struct relay *relay, const bp_run_signal *signal) {
    const bp_run_child *child = relay->child;
    int number = signal->number;
    bool is_ending = number == SIGTERM || number == SIGHUP || number == SIGINT || number == SIGQUIT;
    if (relay->has_ended) {
        relay->is_given_up = relay->is_given_up || is_ending;
        return;
    }
    if (number != SIGTSTP) {
        note_passed_on(relay, number);
    }
    bool is_hangup = number == SIGHUP && bp_run_terminal_has_hung_up(&child->pipes.terminal);
    if (child->monitor_pid > 0 && (signal->is_of_kernel || is_hangup)) {
        /* A terminal signals the whole job, and so does a shell whose terminal is gone. Both make a
         * job that is stopped go on, so that it hears of that. */
        (void)kill(-child->pid, number);
        if (number == SIGHUP) {
            (void)kill(-child->pid, SIGCONT);
        }
    } else if (child->monitor_pid > 0 || !signal->is_of_kernel) {
        /* A command in our group has received what the terminal sent to the group. */
        (void)kill(child->pid, number);
    }
}

static void copy_window_size(const struct relay *relay) {
    const bp_run_child *child = relay->child;
    for (size_t i = 0; i < child->pipes.output_count; i++) {
        const bp_run_output *output = &child->pipes.outputs[i];
        if (isatty(output->from_fd) == 1) {
            bp_run_pty_copy_size(output->to_fd, output->from_fd);
        }
    }
    /* In our group it got its signal before its terminal had the new size. */
    if (child->monitor_pid < 0) {
        (void)kill(child->pid, SIGWINCH);
    }
}

static void answer_signals(struct relay *relay) {
    bp_run_signal signal;
    bp_run_end end;
    while (bp_run_signals_next(&signal)) {
        switch (signal.number) {
        case SIGCHLD:
            break;
        case SIGWINCH:
            if (!relay->has_ended) {
                copy_window_size(relay);
            }
            break;
        case SIGCONT:
            take_terminal(relay);
            break;
        case SIGUSR1:
            request_report(relay);
            break;
        default:
            pass_on(relay, &signal);
        }
    }
    /* After every signal: the pipe may have been too full for a SIGCHLD. */
    if (relay->child->monitor_pid < 0 && !relay->has_ended) {
        take_news(relay, bp_run_child_look(relay->child, &end), &end);
    }
}

/* -1 leaves an entry out: poll reports the end of a descriptor even if no events are wanted. */
static struct pollfd entry(int fd, short events) {
    return (struct pollfd){events != 0 ? fd : -1, events, 0};
}

static size_t fill_poll(const struct relay *relay, struct pollfd fds[poll_max]) {
    const bp_run_keyboard *keyboard = &relay->keyboard;
    size_t count = poll_lanes;
    fds[poll_signals] = entry(bp_run_signals_fd(), POLLIN);
    fds[poll_monitor] = entry(relay->has_ended ? -1 : relay->child->monitor_fd, POLLIN);
    fds[poll_keyboard] =
        entry(keyboard->from_fd, bp_run_keyboard_wants_to_read(keyboard) ? POLLIN : 0);
    fds[poll_keyboard_to] =
        entry(keyboard->to_fd, bp_run_keyboard_wants_to_write(keyboard) ? POLLOUT : 0);
    for (size_t i = 0; i < relay->lane_count; i++) {
        const bp_run_pump *pump = &relay->lanes[i].pump;
        bool reads = bp_run_pump_wants_to_read(pump) && !relay->has_ended;
        fds[count++] = entry(pump->from_fd, reads ? POLLIN : 0);
        fds[count++] = entry(pump->to_fd, bp_run_pump_wants_to_write(pump) ? POLLOUT : 0);
    }
    return count;
}

static void move_output(struct relay *relay, const struct pollfd *fds) {
    for (size_t i = 0; i < relay->lane_count; i++) {
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
        bool is_terminal = lane->output->stream == BP_RUN_TERMINAL;
        if (is_terminal && relay->is_bell_due && !bp_run_pump_wants_to_write(&lane->pump)) {
            /* The sign that the key was seen; not inside of what the command has written. */
            relay->is_bell_due = write(lane->pump.to_fd, "\a", 1) != 1;
        }
        if (!is_terminal && lane->pump.is_broken && lane->output->from_fd >= 0) {
            /* A command whose reader is gone learns that from its own write. */
            note_passed_on(relay, SIGPIPE);
            bp_descriptor_close(&lane->output->from_fd);
            lane->pump.from_fd = -1;
        }
    }
}

/* True if there may still be something to read from an ended command. */
static bool is_reading(const struct lane *lane) {
    return bp_run_pump_wants_to_read(&lane->pump) && lane->remains_bytes > 0 &&
           !lane->pump.is_drained;
}

/* True if all that the ended command wrote has been passed on. */
static bool is_done(const struct relay *relay) {
    bool is_done = relay->has_ended;
    for (size_t i = 0; i < relay->lane_count && is_done; i++) {
        const bp_run_pump *pump = &relay->lanes[i].pump;
        is_done =
            (pump->is_broken || !is_reading(&relay->lanes[i])) && !bp_run_pump_wants_to_write(pump);
    }
    return is_done || relay->is_given_up;
}

/* A command started with a shell's "&" reads a terminal of its own, so no SIGTTIN stops it, and a
 * shell's "fg" sends no SIGCONT. Only looking shows that the terminal is ours now. */
static bool is_in_background(const struct relay *relay) {
    return relay->child->pipes.keyboard_to_fd >= 0 && !relay->keyboard.is_ours && !relay->has_ended;
}

/* After the end, what can be read is read without waiting. */
static int wait_ms(const struct relay *relay) {
    for (size_t i = 0; i < relay->lane_count; i++) {
        if (relay->has_ended && is_reading(&relay->lanes[i])) {
            return 0;
        }
    }
    int keyboard_ms = bp_run_keyboard_wait_ms(&relay->keyboard);
    return keyboard_ms < 0 && is_in_background(relay) ? background_look_ms : keyboard_ms;
}

/*
 * Waits for what the entries want; false where a signal came, which is in the pipe. Where poll
 * fails for good, as in a sandbox that refuses it, each descriptor is asked after a short time.
 */
static bool wait_for(struct pollfd *fds, size_t count, int wait_ms) {
    if (poll(fds, (nfds_t)count, wait_ms) >= 0) {
        return true;
    }
    if (errno == EINTR) {
        return false;
    }
    bp_clock_sleep_until(bp_clock_monotonic_ns() + unpolled_look_ms * BP_NS_PER_MS);
    for (size_t i = 0; i < count; i++) {
        int byte_count = 0;
        bool can_read = fds[i].fd >= 0 && (fds[i].events & POLLIN) != 0 &&
                        ioctl(fds[i].fd, FIONREAD, &byte_count) == 0 && byte_count > 0;
        fds[i].revents = (short)((fds[i].events & POLLOUT) | (can_read ? POLLIN : 0));
    }
    return true;
}

static void loop(struct relay *relay) {
    while (!is_done(relay)) {
        struct pollfd fds[poll_max];
        size_t count = fill_poll(relay, fds);
        if (!wait_for(fds, count, wait_ms(relay))) {
            continue;
        }
        if (is_in_background(relay)) {
            take_terminal(relay);
        }
        if (fds[poll_signals].revents != 0) {
            answer_signals(relay);
        }
        if (fds[poll_monitor].revents != 0 && !relay->has_ended) {
            bp_run_end end;
            bp_run_news news = bp_run_child_read_news(relay->child, &end);
            take_news(relay, news, &end);
        }
        size_t press_count =
            bp_run_keyboard_move(&relay->keyboard, fds[poll_keyboard].revents != 0);
        for (size_t i = 0; i < press_count; i++) {
            request_report(relay);
            relay->is_bell_due = relay->calls->rings;
        }
        if (relay->keyboard.typed_signal != 0) {
            note_passed_on(relay, relay->keyboard.typed_signal);
            relay->keyboard.typed_signal = 0;
        }
        move_output(relay, fds);
        follow_hangup(relay);
    }
}

static bugpack_status open_lanes(struct relay *relay, bugpack_error *error) {
    bp_run_pipes *pipes = &relay->child->pipes;
    for (size_t i = 0; i < pipes->output_count; i++) {
        struct lane *lane = &relay->lanes[i];
        bp_run_output *output = &pipes->outputs[i];
        bugpack_status status =
            bp_run_pump_init(&lane->pump, output->from_fd, output->to_fd, observe, lane, error);
        if (status != BUGPACK_OK) {
            return status;
        }
        lane->calls = relay->calls;
        lane->output = output;
        bp_line_splitter_init(&lane->splitter, take_line, lane);
        relay->lane_count++;
    }
    return BUGPACK_OK;
}

bugpack_status bp_run_relay(bp_run_child *child, bp_hotkey *hotkey, const bp_run_calls *calls,
                            bp_run_result *ret_result, bugpack_error *error) {
    struct relay relay = {.child = child, .calls = calls};
    bp_run_terminal *terminal = &child->pipes.terminal;
    bool has_terminal = child->pipes.keyboard_to_fd >= 0;
    bp_run_keyboard_init(&relay.keyboard, hotkey, terminal->fd, child->pipes.keyboard_to_fd);
    bugpack_status status = open_lanes(&relay, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_run_signals_catch(has_terminal, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_run_child_let_go(child, error);
    if (status == BUGPACK_OK) {
        take_terminal(&relay);
        calls->started(calls->context);
        loop(&relay);
        flush_lines(&relay);
        bp_run_terminal_restore(terminal);
        for (size_t i = 0; i < relay.lane_count; i++) {
            const bp_run_pump *pump = &relay.lanes[i].pump;
            if (pump->lost_bytes > 0) {
                relay.result.losses[relay.result.loss_count++] = (bp_run_loss){
                    relay.lanes[i].output->stream, pump->lost_bytes, pump->lost_errno};
            }
        }
        *ret_result = relay.result;
    }
    bp_run_signals_release();
out:
    for (size_t i = 0; i < relay.lane_count; i++) {
        bp_run_pump_release(&relay.lanes[i].pump);
    }
    return status;
}
