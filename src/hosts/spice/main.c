/*
 * bugpack-spice: a SPICE client without a window that measures a server and takes reports. This
 * file has the first thread: keys, signals, the line of each second, and connections that are lost
 * and made again.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "hosts/console.h"
#include "hosts/spice/client.h"

enum { first_pause_ms = 250, longest_pause_ms = 8000, flush_ms = 5000 };

typedef struct program {
    spice_client client;
    int signal_fd;
    bool has_keyboard;
    bool must_quit, is_failed;
    bool is_connected;      /* there are threads of a connection */
    bool was_connected;     /* a server has let us in */
    int64_t pause_ms;       /* before the next connection */
    int64_t next_try_ms;    /* of a connection; where there is none */
    int64_t next_second_ms; /* of a line */
    spice_second totals;    /* as of the last line */
} program;

/* --- keys and signals ---------------------------------------------------------------------- */

enum { shift_code = 0x2a, release = 0x80 };

/* Rows of the keyboard: the scan code of the first key, and what the keys give. */
static const struct {
    uint32_t first;
    const char *plain, *shifted;
} rows[] = {
    {0x02, "1234567890-=\x7f\tqwertyuiop[]\n", "!@#$%^&*()_+\x01\x01QWERTYUIOP{}"},
    {0x1e, "asdfghjkl;'`", "ASDFGHJKL:\"~"},
    {0x2b, "\\zxcvbnm,./", "|ZXCVBNM<>?"},
    {0x39, " ", ""},
};

static size_t find_codes(char byte, uint32_t *codes) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *plain = strchr(rows[i].plain, byte);
        const char *shifted = plain ? NULL : strchr(rows[i].shifted, byte);
        if (plain != NULL) {
            codes[0] = rows[i].first + (uint32_t)(plain - rows[i].plain);
            codes[1] = codes[0] | release;
            return 2;
        }
        if (shifted != NULL) {
            codes[0] = shift_code;
            codes[1] = rows[i].first + (uint32_t)(shifted - rows[i].shifted);
            codes[2] = codes[1] | release;
            codes[3] = shift_code | release;
            return 4;
        }
    }
    return 0;
}

/* Takes one byte. True: it ends F12. Otherwise `ret_codes` has `*ret_count` scan codes (set 1, with
 * 0x80 for a release) of a US keyboard. Other escape sequences are dropped, and so is the Escape
 * key, which begins them. */
static bool take_key(char byte, uint32_t ret_codes[4], size_t *ret_count) {
    static bool is_in_sequence;
    static char sequence[8];
    static size_t length;
    *ret_count = 0;
    if (byte == '\033') {
        is_in_sequence = true;
        length = 0;
        return false;
    }
    if (!is_in_sequence) {
        *ret_count = byte == '\0' || byte == '\x01' ? 0 : find_codes(byte, ret_codes);
        return false;
    }
    if (length < sizeof sequence) {
        sequence[length++] = byte;
    }
    /* It ends with a byte from '@' on, but for the '[' or 'O' that it begins with (ECMA-48). */
    bool is_introducer = length == 1 && (byte == '[' || byte == 'O');
    is_in_sequence = is_introducer || byte < '@';
    return !is_in_sequence && length == 4 && memcmp(sequence, "[24~", 4) == 0;
}

static void handle_keyboard(program *self) {
    char bytes[64];
    ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) {
        self->has_keyboard = false; /* standard input has ended; signals go on */
    }
    for (ssize_t i = 0; i < count; i++) {
        uint32_t codes[4];
        size_t code_count;
        if (take_key(bytes[i], codes, &code_count)) {
            spice_report_take(&self->client, "F12 was pressed");
        } else if (code_count > 0 &&
                   write(self->client.keys_fds[1], codes, code_count * sizeof codes[0]) < 0) {
            /* The server reads no keys: they are dropped, as a keyboard's would be. */
            continue;
        }
    }
}

static void handle_signal(program *self) {
    struct signalfd_siginfo info;
    if (read(self->signal_fd, &info, sizeof info) != (ssize_t)sizeof info) {
        return;
    }
    if (info.ssi_signo == SIGUSR1) {
        spice_report_take(&self->client, "SIGUSR1");
    } else {
        self->must_quit = true;
    }
}

/* --- the line of each second -------------------------------------------------------------- */

static spice_second read_totals(spice_client *client) {
    spice_second totals = {0};
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        spice_channel *channel = &client->channels[i];
        (void)pthread_mutex_lock(&channel->lock);
        totals.received_bytes += channel->counters[BUGPACK_RECEIVED].bytes;
        totals.sent_bytes += channel->counters[BUGPACK_SENT].bytes;
        totals.frames += channel->frame_count;
        totals.draws += i == SPICE_DISPLAY ? channel->state.display.draw_count : 0;
        if (channel->socket >= 0) {
            channel->rtt_us = spice_stream_rtt_us(&(spice_stream){.fd = channel->socket});
        }
        (void)pthread_mutex_unlock(&channel->lock);
    }
    return totals;
}

/* Pings and round trips of the channels that are up, as members of a JSON object. */
static void print_pings(spice_client *client, char *fields, size_t size) {
    size_t at = 0;
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS && at < size; i++) {
        spice_channel *channel = &client->channels[i];
        (void)pthread_mutex_lock(&channel->lock);
        if (channel->socket >= 0) {
            at += (size_t)snprintf(
                fields + at, size - at,
                "%s\"%s\": {\"pings\": %" PRIu64 ", \"tcp_rtt_us\": %" PRIu32 "}", at ? ", " : "",
                channel->kind->name, channel->ping_count, channel->rtt_us);
        }
        (void)pthread_mutex_unlock(&channel->lock);
    }
}

static void end_second(program *self) {
    spice_client *client = &self->client;
    spice_second now = read_totals(client);
    spice_second last = {now.frames - self->totals.frames, now.draws - self->totals.draws,
                         now.received_bytes - self->totals.received_bytes,
                         now.sent_bytes - self->totals.sent_bytes};
    self->totals = now;
    (void)pthread_mutex_lock(&client->lock);
    client->seconds[client->second_count++ % SPICE_SECONDS_KEPT] = last;
    (void)pthread_mutex_unlock(&client->lock);
    char pings[600] = "", fields[900];
    print_pings(client, pings, sizeof pings);
    (void)snprintf(fields, sizeof fields,
                   "\"frames\": %" PRIu64 ", \"draws\": %" PRIu64 ", \"received_bytes\": %" PRIu64
                   ", \"sent_bytes\": %" PRIu64 ", \"channels\": {%s}",
                   last.frames, last.draws, last.received_bytes, last.sent_bytes, pings);
    spice_say("second", fields,
              "%" PRIu64 " frames, %" PRIu64 " draws, %" PRIu64 " bytes in, %" PRIu64
              " out   F12 report, Ctrl-C quit",
              last.frames, last.draws, last.received_bytes, last.sent_bytes);
}

/* --- connections -------------------------------------------------------------------------- */

static void start_connection(program *self) {
    self->totals = (spice_second){0};
    self->is_connected = spice_connection_start(&self->client);
    self->next_try_ms = spice_now_ms() + self->pause_ms;
}

/* A connection that is lost: its reports are written before its state goes. */
static void end_connection(program *self) {
    spice_channel *first = &self->client.channels[SPICE_MAIN];
    spice_connection_end(&self->client);
    self->is_connected = false;
    bool was_let_in = first->state.main.has_init;
    if (!was_let_in && !self->was_connected) {
        (void)fprintf(stderr, "bugpack-spice: cannot connect to %s: %s\n",
                      self->client.options->host, first->failure.text);
        self->must_quit = self->is_failed = true;
        return;
    }
    self->was_connected = true;
    (void)bugpack_flush(self->client.session, flush_ms);
    int64_t longer_ms = self->pause_ms * 2;
    longer_ms = longer_ms > longest_pause_ms ? longest_pause_ms : longer_ms;
    self->pause_ms = was_let_in ? first_pause_ms : longer_ms;
    self->next_try_ms = spice_now_ms() + self->pause_ms;
    char fields[64];
    (void)snprintf(fields, sizeof fields, "\"pause_ms\": %" PRId64, self->pause_ms);
    spice_say("reconnecting", fields, "trying again in %" PRId64 " ms", self->pause_ms);
}

static int time_left_ms(const program *self) {
    int64_t next_ms = self->next_second_ms;
    if (!self->is_connected && self->next_try_ms < next_ms) {
        next_ms = self->next_try_ms;
    }
    int64_t left_ms = next_ms - spice_now_ms();
    return left_ms > 0 ? (int)left_ms : 0;
}

static void run_loop(program *self) {
    self->pause_ms = first_pause_ms;
    self->next_second_ms = spice_now_ms() + 1000;
    start_connection(self);
    while (!self->must_quit) {
        struct pollfd inputs[3] = {
            {.fd = self->signal_fd, .events = POLLIN},
            {.fd = self->client.wake_fd, .events = POLLIN},
            {.fd = self->has_keyboard ? STDIN_FILENO : -1, .events = POLLIN}};
        (void)poll(inputs, 3, time_left_ms(self));
        if (inputs[0].revents != 0) {
            handle_signal(self);
        }
        if (inputs[2].revents != 0) {
            handle_keyboard(self);
        }
        eventfd_t count;
        (void)eventfd_read(self->client.wake_fd, &count);
        if (self->is_connected && atomic_load(&self->client.is_lost)) {
            end_connection(self);
        }
        if (!self->must_quit && !self->is_connected && spice_now_ms() >= self->next_try_ms) {
            start_connection(self);
        }
        if (spice_now_ms() >= self->next_second_ms) {
            self->next_second_ms += 1000;
            end_second(self);
        }
    }
    spice_connection_end(&self->client);
}

/* --- the program -------------------------------------------------------------------------- */

/* Signals are read from a descriptor. All threads are started later, and inherit the mask. */
static bool prepare_signals(program *self) {
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGUSR1);
    (void)sigaddset(&signals, SIGPIPE);
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0) {
        return false;
    }
    (void)sigdelset(&signals, SIGPIPE);
    self->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    self->client.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return self->signal_fd >= 0 && self->client.wake_fd >= 0 &&
           pipe2(self->client.keys_fds, O_CLOEXEC | O_NONBLOCK) == 0;
}

int main(int argument_count, char **arguments) {
    static spice_options options;
    static program self;
    int status = spice_options_read(&options, argument_count, arguments);
    if (status >= 0) {
        return status;
    }
    self.client.options = &options;
    self.has_keyboard = true;
    (void)pthread_mutex_init(&self.client.lock, NULL);
    spice_channels_init(&self.client);
    if (!prepare_signals(&self)) {
        (void)fprintf(stderr, "bugpack-spice: %s\n", strerror(errno));
        return 1;
    }
    if (!spice_report_open(&self.client)) {
        return 1;
    }
    console_prepare_terminal();
    run_loop(&self);
    bugpack_close(self.client.session); /* waits for reports that are being written */
    spice_display_clear(&self.client.channels[SPICE_DISPLAY].state.display);
    return self.is_failed ? 1 : 0;
}
