/*
 * bugpack-spice: a SPICE client without a window that measures a server and takes reports. This
 * file has the first thread: the command line, keys, signals, the line of each second, and
 * connections that are lost and made again.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/spice/client.h"
#include "hosts/spice/console.h"

enum { first_pause_ms = 250, longest_pause_ms = 8000, flush_ms = 5000, turn_ms = 50 };

typedef struct spice_totals {
    uint64_t draws, received_bytes, sent_bytes;
} spice_totals;

typedef struct program {
    spice_client client;
    const char *report_dir, *pedantic_dir;
    bool is_pedantic;
    bool must_quit, is_failed;
    bool is_connected;      /* there are threads of a connection */
    bool was_connected;     /* a server has let us in */
    int64_t pause_ms;       /* before the next connection */
    int64_t next_try_ms;    /* of a connection; where there is none */
    int64_t next_second_ms; /* of a line */
    spice_totals totals;    /* as of the last line */
} program;

/* --- the command line --------------------------------------------------------------------- */

static const char usage[] =
    "usage: bugpack-spice [OPTION...] spice://HOST[:PORT]\n"
    "\n"
    "Connects to a SPICE server without a window, measures it, and takes reports: by F12 in its\n"
    "terminal, by SIGUSR1 and by bugpack trigger.\n"
    "\n"
    "  --password-file FILE  what the server asks for, from the first line of a file\n"
    "  --report-dir DIR      where reports are written\n"
    "  --pedantic            a report of each distinct protocol gap, 50 at most\n"
    "  --pedantic-dir DIR    where these are written; by default where all are\n"
    "  -h, --help\n";

/* spice://HOST or spice://HOST:PORT. */
static bool read_address(spice_client *client, const char *uri) {
    static const char scheme[] = "spice://";
    if (strncmp(uri, scheme, sizeof scheme - 1) != 0) {
        return false;
    }
    const char *host = uri + sizeof scheme - 1;
    size_t host_bytes = strcspn(host, ":/?#@");
    client->port = host[host_bytes] == ':' ? host + host_bytes + 1 : "5900";
    (void)snprintf(client->host, sizeof client->host, "%.*s", (int)host_bytes, host);
    size_t digits = strspn(client->port, "0123456789");
    return host_bytes > 0 && host_bytes < sizeof client->host &&
           strchr(":", host[host_bytes]) != NULL && digits > 0 && digits <= 5 &&
           client->port[digits] == '\0' && strtoul(client->port, NULL, 10) - 1 < 65535;
}

static bool read_password(spice_client *client, const char *path) {
    char line[SPICE_PASSWORD_MAX_BYTES + 3];
    FILE *file = fopen(path, "re");
    bool is_read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    size_t byte_count = is_read ? strcspn(line, "\r\n") : 0;
    (void)snprintf(client->password, sizeof client->password, "%.*s", (int)byte_count, line);
    return is_read && byte_count <= SPICE_PASSWORD_MAX_BYTES;
}

/* -1, or the status to end with. */
static int read_options(program *self, int argument_count, char **arguments) {
    static const struct option options[] = {{"password-file", required_argument, NULL, 'f'},
                                            {"report-dir", required_argument, NULL, 'r'},
                                            {"pedantic", no_argument, NULL, 'p'},
                                            {"pedantic-dir", required_argument, NULL, 'd'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    bool is_valid = true;
    int option;
    while (is_valid &&
           (option = getopt_long(argument_count, arguments, "h", options, NULL)) != -1) {
        switch (option) {
        case 'f':
            is_valid = read_password(&self->client, optarg);
            break;
        case 'r':
            self->report_dir = optarg;
            break;
        case 'p':
            self->is_pedantic = true;
            break;
        case 'd':
            self->pedantic_dir = optarg;
            break;
        case 'h':
            return fputs(usage, stdout) < 0;
        default:
            is_valid = false;
        }
    }
    if (is_valid && self->pedantic_dir != NULL && !self->is_pedantic) {
        (void)fputs("bugpack-spice: --pedantic-dir needs --pedantic\n"
                    "Try 'bugpack-spice --help'.\n",
                    stderr);
        return 2;
    }
    if (!is_valid || optind + 1 != argument_count ||
        !read_address(&self->client, arguments[optind])) {
        (void)fputs("bugpack-spice: expected one address as spice://HOST:PORT, and a password of "
                    "at most 59 bytes\n"
                    "Try 'bugpack-spice --help'.\n",
                    stderr);
        return 2;
    }
    return -1;
}

/* --- the line of each second -------------------------------------------------------------- */

static spice_totals read_totals(spice_client *client) {
    spice_totals totals = {0};
    for (size_t i = 0; i < SPICE_CHANNEL_KINDS; i++) {
        spice_channel *channel = &client->channels[i];
        (void)pthread_mutex_lock(&channel->lock);
        totals.received_bytes += channel->counters[BUGPACK_RECEIVED].bytes;
        totals.sent_bytes += channel->counters[BUGPACK_SENT].bytes;
        totals.draws += i == SPICE_DISPLAY ? channel->state.display.draw_count : 0;
        (void)pthread_mutex_unlock(&channel->lock);
    }
    return totals;
}

static void end_second(program *self) {
    spice_totals now = read_totals(&self->client), last = self->totals;
    self->totals = now;
    self->next_second_ms += 1000;
    (void)printf("%" PRIu64 " draws, %" PRIu64 " bytes in, %" PRIu64 " out   F12 report, q quit\n",
                 now.draws - last.draws, now.received_bytes - last.received_bytes,
                 now.sent_bytes - last.sent_bytes);
}

/* --- connections -------------------------------------------------------------------------- */

static void start_connection(program *self) {
    self->totals = (spice_totals){0};
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
        (void)fprintf(stderr, "bugpack-spice: cannot connect to %s: %s\n", self->client.host,
                      first->failure.text);
        self->must_quit = self->is_failed = true;
        return;
    }
    self->was_connected = true;
    (void)bugpack_flush(self->client.session, flush_ms, NULL);
    int64_t longer_ms = self->pause_ms * 2;
    longer_ms = longer_ms > longest_pause_ms ? longest_pause_ms : longer_ms;
    self->pause_ms = was_let_in ? first_pause_ms : longer_ms;
    self->next_try_ms = spice_now_ms() + self->pause_ms;
    (void)printf("trying again in %" PRId64 " ms\n", self->pause_ms);
}

static void run_loop(program *self) {
    self->pause_ms = first_pause_ms;
    self->next_second_ms = spice_now_ms() + 1000;
    start_connection(self);
    while (!self->must_quit) {
        console_wish wish = console_wait(turn_ms);
        if (wish == CONSOLE_REPORT) {
            spice_report_take(&self->client);
        }
        self->must_quit = wish == CONSOLE_QUIT;
        if (self->is_connected && atomic_load(&self->client.is_lost)) {
            end_connection(self);
        }
        if (!self->must_quit && !self->is_connected && spice_now_ms() >= self->next_try_ms) {
            start_connection(self);
        }
        if (spice_now_ms() >= self->next_second_ms) {
            end_second(self);
        }
    }
    spice_connection_end(&self->client);
}

int main(int argument_count, char **arguments) {
    static program self;
    int status = read_options(&self, argument_count, arguments);
    if (status >= 0) {
        return status;
    }
    spice_channels_init(&self.client);
    console_open();
    if (!spice_report_open(&self.client, self.report_dir, self.is_pedantic, self.pedantic_dir)) {
        return 1;
    }
    run_loop(&self);
    bugpack_close(self.client.session); /* waits for reports that are being written */
    spice_display_clear(&self.client.channels[SPICE_DISPLAY].state.display);
    return self.is_failed ? 1 : 0;
}
