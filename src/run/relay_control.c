#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "run/descriptor.h"
#include "run/relay_private.h"
#include "run/signals.h"

static void note_end(struct relay *relay, const bp_run_end *end) {
    relay->has_ended = true;
    relay->result.end = *end;
    for (size_t i = 0; i < relay->child->output_count; i++) {
        relay->lanes[i].remains_bytes = BP_RUN_REMAINS_MAX_BYTES;
    }
}

void bp_relay_take_terminal(struct relay *relay) {
    bp_run_child *child = relay->child;
    if (child->keyboard_to_fd < 0) {
        return;
    }
    bool is_ours = bp_run_terminal_is_ours(&child->terminal);
    if (is_ours) {
        bp_run_terminal_make_raw(&child->terminal);
        bp_run_pty_copy_size(child->terminal.fd, child->keyboard_to_fd);
    }
    relay->keyboard.is_ours = is_ours;
}

/*
 * The command was stopped by its terminal: so would our whole group have been without us, and now
 * is. In a group that nobody could continue the kernel ignores that, and the command goes on.
 */
static void stop_with_command(struct relay *relay) {
    struct sigaction usual;
    struct sigaction ours;
    memset(&usual, 0, sizeof usual);
    usual.sa_handler = SIG_DFL;
    (void)sigemptyset(&usual.sa_mask);
    bp_run_terminal_restore(&relay->child->terminal);
    (void)sigaction(SIGTSTP, &usual, &ours);
    (void)kill(0, SIGTSTP); /* returns when we are continued: only this thread takes it */
    (void)sigaction(SIGTSTP, &ours, NULL);
    bp_relay_take_terminal(relay);
    (void)kill(-relay->child->pid, SIGCONT);
}

void bp_relay_read_news(struct relay *relay) {
    bp_run_end end;
    bp_run_news news = bp_run_child_read_news(relay->child, &end);
    if (news == BP_RUN_ENDED) {
        note_end(relay, &end);
    } else if (news == BP_RUN_STOPPED && end.value != SIGSTOP) {
        /* A SIGSTOP is for the command alone: somebody looks at it, and continues it later. */
        stop_with_command(relay);
    } else if (news == BP_RUN_LOST) {
        relay->result.is_lost = true;
        note_end(relay, &(bp_run_end){.value = 1});
    }
}

/* Our terminal is gone, so the command's goes: it reads the end and writes errors, as on ours. What
 * it has written by now is still looked at. */
static void hang_up(struct relay *relay) {
    bp_run_child *child = relay->child;
    for (size_t i = 0; i < child->output_count; i++) {
        bp_run_pump *pump = &relay->lanes[i].pump;
        if (child->outputs[i].stream == BP_RUN_TERMINAL) {
            pump->is_broken = true;
            (void)bp_run_pump_read(pump, BP_RUN_PUMP_BYTES);
            bp_run_pump_write(pump, true);
            bp_descriptor_close(&child->outputs[i].from_fd);
            pump->from_fd = -1;
        }
    }
    child->keyboard_to_fd = -1;
    bp_run_keyboard_init(&relay->keyboard, relay->keyboard.hotkey, -1, -1);
}

/* Whether an end of the terminal answers no more, for whatever reason. */
static bool has_lost_terminal(const struct relay *relay) {
    bool is_lost = relay->keyboard.from_fd < 0;
    for (size_t i = 0; i < relay->child->output_count; i++) {
        is_lost = is_lost ||
                  (relay->lanes[i].stream == BP_RUN_TERMINAL && relay->lanes[i].pump.is_broken);
    }
    return is_lost && relay->child->keyboard_to_fd >= 0 && !relay->has_ended;
}

void bp_relay_follow_hangup(struct relay *relay) {
    if (has_lost_terminal(relay) && bp_run_terminal_has_hung_up(&relay->child->terminal)) {
        hang_up(relay);
    }
}

static void pass_on(struct relay *relay, const bp_run_signal *signal) {
    const bp_run_child *child = relay->child;
    bool is_ending = bp_run_signal_ends(signal->number);
    if (relay->has_ended) {
        relay->is_given_up = relay->is_given_up || is_ending;
        return;
    }
    if (is_ending) {
        relay->result.passed_on_last = signal->number;
    }
    bool is_hangup =
        signal->number == SIGHUP && bp_run_terminal_has_hung_up(&relay->child->terminal);
    if (child->monitor_pid > 0 && (signal->is_of_kernel || is_hangup)) {
        /* A terminal signals the whole job, and so does a shell whose terminal is gone. */
        (void)kill(-child->pid, signal->number);
    } else if (child->monitor_pid > 0 || !signal->is_of_kernel) {
        /* What the terminal sent to our group has reached a command that is in it. */
        (void)kill(child->pid, signal->number);
    }
}

static void copy_window_size(const bp_run_child *child) {
    for (size_t i = 0; i < child->output_count; i++) {
        if (isatty(child->outputs[i].from_fd) == 1) {
            bp_run_pty_copy_size(child->outputs[i].to_fd, child->outputs[i].from_fd);
        }
    }
    /* In our group it was told before its terminal had the new size. */
    if (child->monitor_pid < 0) {
        (void)kill(child->pid, SIGWINCH);
    }
}

void bp_relay_answer_signals(struct relay *relay) {
    bp_run_signal signal;
    bp_run_end end;
    while (bp_run_signals_next(&signal)) {
        switch (signal.number) {
        case SIGCHLD:
            break;
        case SIGWINCH:
            if (!relay->has_ended) {
                copy_window_size(relay->child);
            }
            break;
        case SIGCONT:
            bp_relay_take_terminal(relay);
            break;
        case SIGUSR1:
            relay->calls->report(relay->calls->context, BP_RUN_ASKED_BY_SIGNAL);
            break;
        default:
            pass_on(relay, &signal);
        }
    }
    /* Whichever it was: a pipe full of other notes has no room for that of a SIGCHLD. */
    if (relay->child->monitor_pid < 0 && !relay->has_ended &&
        bp_run_child_has_ended(relay->child, &end)) {
        note_end(relay, &end);
    }
}
