#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/event.h"
#include "cli/interrupt.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/review.h"
#include "print/fill.h"
#include "send/deliver.h"
#include "send/destination.h"

typedef struct send_options {
    const char *to, *config_path, *ca_cert, *form_field;
    uint64_t max_bytes;
    bool is_post, allows_http, has_consent, is_dry_run, as_json;
} send_options;

/* --- options -------------------------------------------------------------------------------- */

static bool read_method(const bp_cli_option *option, const char *text, void *field) {
    static const char *const names[] = {"PUT", "POST", NULL};
    size_t index;
    if (!bp_cli_find_choice(option, text, names, &index)) {
        return false;
    }
    *(bool *)field = index == 1;
    return true;
}

/* Copies the text, and removes it from the command line, which every user of the machine can read.
 */
static bool read_secret(const bp_cli_option *option, const char *text, void *field) {
    char *copy = strdup(text);
    if (copy == NULL) {
        return bp_cli_say_no_memory();
    }
    bool is_read = bp_cli_read_text(option, copy, field);
    if (bp_url_has_scheme(text)) {
        memset((char *)(uintptr_t)text, '*', strlen(text));
    }
    return is_read;
}

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(send_options, to, 0, "to", "WHERE",
                 "a destination of the configuration, a URL, or a\ndirectory (with a \"/\" in it); "
                 "- reads one of them\nfrom standard input",
                 read_secret, &bp_cli_some_text),
    BP_CLI_VALUE(send_options, config_path, 0, "config", "FILE",
                 "the configuration (default\n$XDG_CONFIG_HOME/bugpack/send.conf, or\n"
                 "/etc/bugpack/send.conf)",
                 bp_cli_read_text, &bp_cli_some_text),
    BP_CLI_VALUE(send_options, is_post, 0, "method", "METHOD",
                 "PUT (the default) or POST, for a URL", read_method, NULL),
    BP_CLI_VALUE(send_options, form_field, 0, "form-field", "NAME",
                 "POST a form in which the report has this name", bp_cli_read_text,
                 &bp_cli_some_text),
    BP_CLI_VALUE(send_options, ca_cert, 0, "cacert", "FILE",
                 "trust the certificates in FILE, not the system's", bp_cli_read_text,
                 &bp_cli_some_text),
    BP_CLI_FLAG(send_options, allows_http, 0, "allow-http",
                "send over http, which others in the network can\nread"),
    BP_CLI_VALUE(send_options, max_bytes, 0, "max-bytes", "BYTES",
                 "do not send a report that is larger", bp_cli_read_size, NULL),
    BP_CLI_FLAG(send_options, has_consent, 'y', "yes", "send without asking"),
    BP_CLI_FLAG(send_options, is_dry_run, 0, "dry-run", "print what would be sent"),
    BP_CLI_FLAG(send_options, as_json, 0, "json", "print each event as a JSON object in a line"),
    BP_CLI_OPTIONS_END};

/* --- the destination ------------------------------------------------------------------------ */

/* The configuration that is there; NULL: none. `room` is for its path. */
static const char *find_config(const char *given, char *room, size_t room_bytes) {
    static const char system_wide[] = "/etc/bugpack/send.conf";
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (given != NULL) {
        return given;
    }
    if (base != NULL && base[0] == '/') {
        (void)snprintf(room, room_bytes, "%s/bugpack/send.conf", base);
    } else {
        (void)snprintf(room, room_bytes, "%s/.config/bugpack/send.conf", home != NULL ? home : "");
    }
    if (access(room, F_OK) == 0) {
        return room;
    }
    return access(system_wide, F_OK) == 0 ? system_wide : NULL;
}

/* The first line of standard input, which the caller frees; NULL after a message. */
static char *read_line(void) {
    char line[BP_URL_BYTES];
    if (fgets(line, sizeof line, stdin) == NULL) {
        line[0] = '\0';
    }
    line[strcspn(line, "\r\n")] = '\0';
    if (line[0] == '\0') {
        bp_cli_say("standard input has no destination in its first line");
        return NULL;
    }
    return strdup(line);
}

static bugpack_status say_unknown(const bp_send_settings *settings, const char *path,
                                  const char *name, bugpack_error *error) {
    return path == NULL
               ? bp_fail(error, BUGPACK_ERR_INVALID,
                         "there is no destination \"%s\": there is no configuration", name)
               : bp_fail(error, BUGPACK_ERR_INVALID, "%s has no destination \"%s\", but %zu others",
                         path, name, settings->count);
}

/* Finds or makes the destination of --to, and gives it what the command line says. */
static bugpack_status choose(const send_options *options, const char *to,
                             const bp_send_settings *settings, const char *config_path,
                             bp_send_destination *ret_destination, bugpack_error *error) {
    *ret_destination = (bp_send_destination)BP_SEND_DESTINATION_INIT;
    if (bp_url_has_scheme(to) || strchr(to, '/') != NULL) {
        ret_destination->url = to;
    } else {
        const bp_send_destination *found = bp_send_settings_find(settings, to);
        if (found == NULL) {
            return say_unknown(settings, config_path, to, error);
        }
        *ret_destination = *found;
    }
    ret_destination->is_post = ret_destination->is_post || options->is_post;
    ret_destination->allows_http = ret_destination->allows_http || options->allows_http;
    if (options->form_field != NULL) {
        ret_destination->form_field = options->form_field;
    }
    if (options->ca_cert != NULL) {
        ret_destination->ca_cert = options->ca_cert;
    }
    if (options->max_bytes > 0) {
        ret_destination->max_bytes = options->max_bytes;
    }
    if (options->has_consent && ret_destination->consent == BP_SEND_ASK) {
        ret_destination->consent = BP_SEND_ALWAYS;
    }
    return bp_send_destination_check(ret_destination, "--to", error);
}

/* --- what a person and a script see --------------------------------------------------------- */

/* A report on its way. */
typedef struct sending {
    const send_options *options;
    const bp_send_destination *destination;
    char shown[BP_SEND_SHOWN_BYTES];
    const char *path;
    bool has_bar;
    uint64_t drawn_ns;
} sending;

/* A bp_http_progress: draws a line on a terminal, and hears of signals. */
static bool show_progress(void *context, uint64_t sent_bytes, uint64_t total_bytes) {
    static const uint64_t pause_ns = 100 * BP_NS_PER_MS;
    sending *it = context;
    char total[BP_FILL_BYTES], name[64];
    uint64_t now = bp_clock_monotonic_ns();
    if (it->has_bar && total_bytes > 0 && now - it->drawn_ns >= pause_ns) {
        const char *slash = strrchr(it->path, '/');
        bp_cli_escape(slash != NULL ? slash + 1 : it->path, name, sizeof name);
        (void)fprintf(stderr, "\r\033[K%s: %3u %% of %s", name,
                      (unsigned)((double)sent_bytes * 100 / (double)total_bytes),
                      bp_fill_bytes((double)total_bytes, total));
        it->drawn_ns = now;
    }
    return !bp_cli_interrupt_came();
}

static void clear_bar(sending *it) {
    if (it->has_bar && it->drawn_ns != 0) {
        (void)fputs("\r\033[K", stderr);
        it->drawn_ns = 0;
    }
}

static bp_cli_exit say_failed(const sending *it, const char *text) {
    if (it->options->as_json) {
        bp_cli_print_failed(stdout, "failed", it->path, text);
    }
    bp_cli_say("%s: %s", it->path, text);
    return BP_CLI_FAILED;
}

static void say_sent(const sending *it, const bp_send_report *report,
                     const bp_send_result *result) {
    const char *event = it->options->is_dry_run ? "would-send" : "sent";
    const char *where = result->text[0] != '\0' ? result->text : it->shown;
    if (it->options->as_json) {
        BP_CLI_PRINT_EVENT(stdout, event, 0, {"path", BP_CLI_TEXT, it->path, 0},
                           {"report_id", BP_CLI_TEXT, report->id, 0},
                           {"destination", BP_CLI_TEXT, it->destination->name, 0},
                           {"url", BP_CLI_TEXT, where, 0},
                           {"bytes", BP_CLI_NUMBER, NULL, report->bytes},
                           {"status", BP_CLI_ID, NULL, (uint64_t)result->http_status});
        return;
    }
    (void)printf("%s\n", where);
    (void)fflush(stdout);
}

/* --- sending -------------------------------------------------------------------------------- */

/* Whether the report may leave: a person has seen what is in it, or has decided before. */
static bugpack_status ask(const sending *it, const bp_send_report *report, bugpack_error *error) {
    char question[BP_SEND_SHOWN_BYTES + 64];
    switch (it->destination->consent) {
    case BP_SEND_ALWAYS:
        return BUGPACK_OK;
    case BP_SEND_NEVER:
        return bp_fail(error, BUGPACK_ERR_DENIED, "not sent: its destination has consent = never");
    case BP_SEND_ASK:
        break;
    }
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
        return bp_fail(error, BUGPACK_ERR_DENIED,
                       "not sent without consent: use --yes, or consent = always of the "
                       "destination; bugpack redact --list shows what is in it");
    }
    (void)snprintf(question, sizeof question, "Send this report to %s", it->shown);
    return bp_cli_review_ask(report->fd, question, "sent", error);
}

static bugpack_status check_size(const sending *it, const bp_send_report *report,
                                 bugpack_error *error) {
    char size[BP_FILL_BYTES], limit[BP_FILL_BYTES];
    uint64_t max_bytes = it->destination->max_bytes;
    return max_bytes == 0 || report->bytes <= max_bytes
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_LIMIT, "not sent: it has %s, and the limit is %s",
                         bp_fill_bytes((double)report->bytes, size),
                         bp_fill_bytes((double)max_bytes, limit));
}

static bp_cli_exit send_one(sending *it, bp_send_report *report) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_send_result result = {.outcome = BP_SEND_SENT};
    bugpack_status status = bp_send_report_open(it->path, NULL, report, &error);
    if (status == BUGPACK_OK) {
        status = check_size(it, report, &error);
    }
    if (status == BUGPACK_OK && !it->options->is_dry_run) {
        status = ask(it, report, &error);
    }
    if (status != BUGPACK_OK) {
        return say_failed(it, error.message);
    }
    if (!it->options->is_dry_run) {
        bp_send_deliver(it->destination, report, show_progress, it, &result);
        clear_bar(it);
    }
    if (result.outcome != BP_SEND_SENT) {
        return say_failed(it, result.text);
    }
    say_sent(it, report, &result);
    return BP_CLI_COMPLETE;
}

static bp_cli_exit send_all(const send_options *options, const bp_send_destination *destination,
                            char **paths) {
    bp_cli_exit worst = BP_CLI_COMPLETE;
    bugpack_error error = BUGPACK_ERROR_INIT;
    int woken_fd;
    sending it = {.options = options, .destination = destination};
    bp_send_destination_show(destination, it.shown);
    it.has_bar = !options->as_json && bp_cli_is_terminal(STDERR_FILENO);
    if (paths[0] != NULL && paths[1] != NULL && !bp_send_destination_takes_many(destination)) {
        return bp_cli_say_usage("a PUT to one URL replaces the report before: end its path with /, "
                                "which adds the report's name");
    }
    if (bp_cli_interrupt_catch(&woken_fd, &error) != BUGPACK_OK) {
        return bp_cli_say_error(&error);
    }
    for (; *paths != NULL && !bp_cli_interrupt_came(); paths++) {
        bp_send_report report;
        it.path = *paths;
        if (send_one(&it, &report) != BP_CLI_COMPLETE) {
            worst = BP_CLI_FAILED;
        }
        bp_send_report_close(&report);
    }
    return bp_cli_finish_output() == BP_CLI_COMPLETE && *paths == NULL ? worst : BP_CLI_FAILED;
}

static bp_cli_exit run(void *context, char **operands) {
    const send_options *options = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_send_settings settings;
    bp_send_destination destination;
    char room[PATH_MAX], *line = NULL;
    if (options->to == NULL) {
        return bp_cli_say_usage("--to is missing");
    }
    const char *to = options->to,
               *config_path = find_config(options->config_path, room, sizeof room);
    if (strcmp(to, "-") == 0) {
        to = line = read_line();
        if (line == NULL) {
            return BP_CLI_FAILED;
        }
    }
    bp_cli_exit result = BP_CLI_FAILED;
    if (bp_send_settings_read(config_path, &settings, &error) != BUGPACK_OK ||
        choose(options, to, &settings, config_path, &destination, &error) != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
    } else {
        result = send_all(options, &destination, operands);
    }
    bp_send_settings_release(&settings);
    free(line);
    return result;
}

const bp_cli_command bp_cli_send_command = {
    "send",
    "send reports to a server or a directory",
    "Usage: bugpack send --to WHERE [OPTION]... REPORT...\n"
    "\n"
    "Send reports by HTTPS, or copy them to a directory, and print where they went.\n"
    "Without --yes, or consent in the configuration, print what is in each report\n"
    "and ask. A REPORT of - is read from standard input.\n",
    option_rows,
    "Exit status: 0 all sent, 1 not all, 2 usage.\n",
    INT_MAX - 1,
    .run = run,
    .options_bytes = sizeof(send_options),
    .needed = "a report"};
