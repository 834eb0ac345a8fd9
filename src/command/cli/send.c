#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/event.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/review.h"
#include "cli/show.h"
#include "print/fill.h"
#include "send/deliver.h"
#include "send/destination.h"
#include "send/queue.h"
#include "send/sender.h"

typedef struct send_options {
    const char *to, *config_path, *ca_cert;
    uint64_t max_bytes;
    int print;
    bool allows_http, has_consent, is_dry_run, as_json, is_queued, is_retry;
} send_options;

/* --- options -------------------------------------------------------------------------------- */

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

enum { PRINT_NOTHING, PRINT_ISSUE };

static const bp_cli_choice prints[] = {{"issue", PRINT_ISSUE}, {NULL, 0}};

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(send_options, to, 0, "to", "WHERE",
                 "a destination of the configuration, a URL, or a\ndirectory (with a \"/\" in it); "
                 "- reads one of them\nfrom standard input",
                 read_secret, &bp_cli_some_text),
    BP_CLI_VALUE(send_options, config_path, 0, "config", "FILE",
                 "the configuration (default\n$XDG_CONFIG_HOME/bugpack/send.conf, or\n"
                 "/etc/bugpack/send.conf)",
                 bp_cli_read_text, &bp_cli_some_text),
    BP_CLI_VALUE(send_options, ca_cert, 0, "cacert", "FILE",
                 "trust the certificates in FILE, not the system's", bp_cli_read_text,
                 &bp_cli_some_text),
    BP_CLI_FLAG(send_options, allows_http, 0, "allow-http",
                "send over http, which others in the network can\nread"),
    BP_CLI_VALUE(send_options, max_bytes, 0, "max-bytes", "BYTES",
                 "do not send a report that is larger", bp_cli_read_size, NULL),
    BP_CLI_FLAG(send_options, has_consent, 'y', "yes", "send without asking"),
    BP_CLI_FLAG(send_options, is_queued, 0, "queue",
                "put the reports into the queue, and send what is\nin it and due"),
    BP_CLI_FLAG(send_options, is_retry, 0, "retry",
                "send also what waits in the queue for its time,\nor was stopped"),
    BP_CLI_FLAG(send_options, is_dry_run, 0, "dry-run", "print what would be sent"),
    BP_CLI_CHOICE(send_options, print, "print", "issue",
                  "send nothing: print Markdown for an issue\ntracker or a mail", prints),
    BP_CLI_FLAG(send_options, as_json, 0, "json", "print each event as a JSON object in a line"),
    BP_CLI_OPTIONS_END};

/* --- the destination ------------------------------------------------------------------------ */

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

/* True if the configuration says what it is: it is neither a URL nor a directory. */
static bool is_name(const char *to) {
    return strchr(to, '/') == NULL;
}

/* Finds or makes the destination of --to, and gives it what the command line says. */
static bugpack_status choose(const send_options *options, const char *to,
                             const bp_send_settings *settings, bp_send_destination *ret_destination,
                             bugpack_error *error) {
    *ret_destination = (bp_send_destination)BP_SEND_DESTINATION_INIT;
    if (!is_name(to)) {
        ret_destination->url = to;
    } else {
        const bp_send_destination *found = NULL;
        bugpack_status status =
            bp_send_settings_choose(settings, to, options->is_queued, &found, error);
        if (status != BUGPACK_OK) {
            return status;
        }
        *ret_destination = *found;
    }
    ret_destination->allows_http = ret_destination->allows_http || options->allows_http;
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

/* `destination` is NULL for all of the queue. */
static void begin(sending *it, const send_options *options,
                  const bp_send_destination *destination) {
    *it = (sending){.options = options, .destination = destination};
    it->has_bar = !options->as_json && bp_cli_is_terminal(STDERR_FILENO);
    if (destination != NULL) {
        bp_send_destination_show(destination, it->shown);
    }
}

/* A bp_send_progress: draws a line on a terminal, and hears of signals. */
static bool show_progress(void *context, uint64_t sent_bytes, uint64_t total_bytes) {
    static const uint64_t pause_ns = 100 * BP_NS_PER_MS;
    sending *it = context;
    char total[BP_FILL_BYTES], name[64];
    uint64_t now = bp_clock_monotonic_ns();
    if (it->has_bar && total_bytes > 0 && now - it->drawn_ns >= pause_ns) {
        bp_cli_escape(bp_file_base_name(it->path), name, sizeof name);
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

/* `text` is where it is, if that is not the URL. */
static void say_sent(const sending *it, const char *report_id, uint64_t bytes, const char *text,
                     uint64_t http_status) {
    const char *event = it->options->is_dry_run ? "would-send" : "sent";
    const char *where = text[0] != '\0' ? text : it->shown;
    if (it->options->as_json) {
        BP_CLI_PRINT_EVENT(stdout, event, 0, {"path", BP_CLI_TEXT, it->path, 0},
                           {"report_id", BP_CLI_TEXT, report_id, 0},
                           {"destination", BP_CLI_TEXT, it->destination->name, 0},
                           {"url", BP_CLI_TEXT, where, 0}, {"bytes", BP_CLI_NUMBER, NULL, bytes},
                           {"status", BP_CLI_ID, NULL, http_status});
        return;
    }
    (void)printf("%s\n", where);
    (void)fflush(stdout);
}

/* --- sending -------------------------------------------------------------------------------- */

/* OK if the report may leave: a person has seen what is in it, or has decided before. */
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
    if (!bp_cli_review_can_ask()) {
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
    say_sent(it, report->id, report->bytes, result.text, (uint64_t)result.http_status);
    return BP_CLI_COMPLETE;
}

static bp_cli_exit send_all(const send_options *options, const bp_send_destination *destination,
                            char **paths) {
    bp_cli_exit worst = BP_CLI_COMPLETE;
    bugpack_error error = BUGPACK_ERROR_INIT;
    int woken_fd;
    sending it;
    begin(&it, options, destination);
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

/* --- the queue ------------------------------------------------------------------------------ */

/* The outcome of a run through the queue. */
typedef struct queue_run {
    sending now;
    const bp_send_settings *settings;
    size_t waiting_count;
    bp_cli_exit worst;
} queue_run;

static void say_kept(queue_run *it, const bp_sender_event *event) {
    bool is_deferred = event->outcome == BP_SENDER_DEFERRED;
    uint64_t next_ns = is_deferred ? event->item->next_secs * BP_NS_PER_SEC : 0;
    char next[BP_CLOCK_ISO_BYTES] = "";
    if (next_ns != 0) {
        bp_clock_format_iso(next_ns, next);
    }
    if (it->now.options->as_json) {
        BP_CLI_PRINT_EVENT(
            stdout, is_deferred ? "deferred" : "kept", 0, {"path", BP_CLI_TEXT, event->name, 0},
            {"destination", BP_CLI_TEXT, event->destination->name, 0},
            {"error", BP_CLI_TEXT, event->text, 0},
            {"attempts", BP_CLI_NUMBER, NULL, event->item->attempt_count},
            {"next_time", BP_CLI_TEXT, next, 0}, {"status", BP_CLI_ID, NULL, event->http_status});
    }
    if (is_deferred && !event->is_news) {
        it->waiting_count++;
    } else if (is_deferred) {
        bp_cli_say("%s: %s: %s; again after %.16sZ", event->destination->name, event->name,
                   event->text, next);
    } else {
        bp_cli_say("%s: %s: kept: %s", event->destination->name, event->name, event->text);
    }
}

/* For bp_sender. */
static void say_event(void *context, const bp_sender_event *event) {
    queue_run *it = context;
    clear_bar(&it->now);
    it->now.destination = event->destination;
    it->now.path = event->name;
    if (event->outcome == BP_SENDER_BEGUN) {
        return;
    }
    if (event->outcome == BP_SENDER_SENT) {
        bp_send_destination_show(event->destination, it->now.shown);
        say_sent(&it->now, event->report_id, event->item->bytes, event->text, event->http_status);
        return;
    }
    say_kept(it, event);
    if (event->outcome == BP_SENDER_STOPPED) {
        it->worst = BP_CLI_FAILED;
    } else if (it->worst == BP_CLI_COMPLETE) {
        it->worst = BP_CLI_INCOMPLETE;
    }
}

static bool show_queue_progress(void *context, uint64_t sent_bytes, uint64_t total_bytes) {
    queue_run *it = context;
    return show_progress(&it->now, sent_bytes, total_bytes);
}

/* Puts one report into the queue. A person on a terminal is asked now; else without consent the
 * report waits for it there. */
static bugpack_status enqueue(queue_run *it, const bp_send_queue *queue, bugpack_error *error) {
    bp_send_report report;
    sending *now = &it->now;
    bool has_consent = now->options->has_consent;
    bugpack_status status = bp_send_report_open(now->path, NULL, &report, error);
    if (status == BUGPACK_OK && !has_consent && bp_cli_review_can_ask()) {
        status = ask(now, &report, error);
        has_consent = status == BUGPACK_OK && now->destination->consent == BP_SEND_ASK;
    }
    if (status == BUGPACK_OK) {
        status = bp_send_queue_add(queue, it->settings, now->destination->name, now->path, &report,
                                   has_consent, error);
    }
    if (status == BUGPACK_OK && now->options->as_json) {
        BP_CLI_PRINT_EVENT(stdout, "queued", 0, {"path", BP_CLI_TEXT, now->path, 0},
                           {"report_id", BP_CLI_TEXT, report.id, 0},
                           {"destination", BP_CLI_TEXT, now->destination->name, 0});
    }
    bp_send_report_close(&report);
    return status;
}

static bp_cli_exit enqueue_all(queue_run *it, const bp_send_queue *queue, char **paths) {
    bp_cli_exit worst = BP_CLI_COMPLETE;
    for (; *paths != NULL; paths++) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        it->now.path = *paths;
        if (enqueue(it, queue, &error) != BUGPACK_OK) {
            worst = say_failed(&it->now, error.message);
        }
    }
    return worst;
}

/* Waits for another sender if a destination is named: it may have looked before a report of ours
 * was there. */
static bugpack_status lock_queue(bp_send_queue *queue, bool may_wait, bool *ret_is_locked,
                                 bugpack_error *error) {
    static const uint64_t longest_ns = 300 * BP_NS_PER_SEC, pause_ns = 100 * BP_NS_PER_MS;
    uint64_t start_ns = bp_clock_monotonic_ns(), now_ns = start_ns;
    bugpack_status status = bp_send_queue_lock(queue, ret_is_locked, error);
    while (status == BUGPACK_OK && !*ret_is_locked && may_wait && now_ns - start_ns < longest_ns &&
           !bp_cli_interrupt_came()) {
        bp_clock_sleep_until(now_ns + pause_ns);
        now_ns = bp_clock_monotonic_ns();
        status = bp_send_queue_lock(queue, ret_is_locked, error);
    }
    return status;
}

static bp_cli_exit send_queue(queue_run *it, bp_send_queue *queue, bool may_wait) {
    const send_options *options = it->now.options;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bool is_locked = false;
    const bp_sender sender = {.settings = it->settings,
                              .only =
                                  it->now.destination != NULL ? it->now.destination->name : NULL,
                              .has_consent = options->has_consent,
                              .tries_all = options->is_retry,
                              .say = say_event,
                              .progress = show_queue_progress,
                              .context = it};
    bugpack_status status = lock_queue(queue, may_wait, &is_locked, &error);
    if (status == BUGPACK_OK && is_locked) {
        status = bp_sender_run(&sender, queue, &error);
    } else if (status == BUGPACK_OK) {
        bp_cli_say("another process sends from this queue");
    }
    clear_bar(&it->now);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    if (it->waiting_count > 0) {
        bp_cli_say("%zu report%s in the queue wait%s for another attempt", it->waiting_count,
                   it->waiting_count == 1 ? "" : "s", it->waiting_count == 1 ? "s" : "");
    }
    return it->worst;
}

static bp_cli_exit run_queue(const send_options *options, const bp_send_settings *settings,
                             const bp_send_destination *destination, char **paths) {
    bp_send_queue queue;
    bugpack_error error = BUGPACK_ERROR_INIT;
    queue_run it = {.settings = settings};
    int woken_fd;
    bp_cli_exit result = BP_CLI_FAILED;
    begin(&it.now, options, destination);
    if (bp_send_queue_open(settings->queue_dir, &queue, &error) != BUGPACK_OK ||
        bp_cli_interrupt_catch(&woken_fd, &error) != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
    } else {
        bp_cli_exit queued = enqueue_all(&it, &queue, paths);
        result = send_queue(&it, &queue, options->to != NULL);
        result = queued != BP_CLI_COMPLETE ? queued : result;
    }
    bp_send_queue_close(&queue);
    return bp_cli_finish_output() == BP_CLI_COMPLETE ? result : BP_CLI_FAILED;
}

/* --- the command ---------------------------------------------------------------------------- */

static bool check_usage(const send_options *options, char **operands) {
    bool has_request = options->ca_cert != NULL || options->allows_http || options->max_bytes > 0 ||
                       options->is_dry_run;
    if (operands[0] == NULL && !options->is_queued) {
        (void)bp_cli_say_usage("a report is missing");
    } else if (options->print != PRINT_NOTHING && (options->is_queued || options->to != NULL)) {
        (void)bp_cli_say_usage("--print sends nothing: it excludes --to and --queue");
    } else if (options->print == PRINT_NOTHING && operands[0] != NULL && options->to == NULL) {
        (void)bp_cli_say_usage("--to is missing");
    } else if (options->is_queued && has_request) {
        (void)bp_cli_say_usage("--queue sends as the configuration says: it excludes options of a "
                               "request");
    } else if (options->is_retry && !options->is_queued) {
        (void)bp_cli_say_usage("--retry needs --queue");
    } else {
        return true;
    }
    return false;
}

static bp_cli_exit print_issues(char **paths) {
    bp_cli_exit result = BP_CLI_COMPLETE;
    for (; *paths != NULL && result == BP_CLI_COMPLETE; paths++) {
        result = bp_cli_show_markdown(*paths);
    }
    return result;
}

/* Sends to a destination that was found; NULL: all of the queue. */
static bp_cli_exit run_chosen(const send_options *options, const bp_send_settings *settings,
                              const bp_send_destination *destination, char **operands) {
    if (!options->is_queued) {
        return send_all(options, destination, operands);
    }
    if (destination != NULL && destination->name == NULL) {
        return bp_cli_say_usage("--queue needs the name of a destination of the configuration");
    }
    return run_queue(options, settings, destination, operands);
}

static bp_cli_exit run(void *context, char **operands) {
    const send_options *options = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_send_settings settings = {.text = NULL};
    bp_send_destination destination;
    char *line = NULL;
    if (!check_usage(options, operands)) {
        return BP_CLI_USAGE;
    }
    if (options->print != PRINT_NOTHING) {
        return print_issues(operands);
    }
    const char *to = options->to;
    if (to != NULL && strcmp(to, "-") == 0) {
        to = line = read_line();
        if (line == NULL) {
            return BP_CLI_FAILED;
        }
    }
    bp_cli_exit result = BP_CLI_FAILED;
    bugpack_status status = BUGPACK_OK;
    if (options->is_queued || is_name(to)) {
        status = bp_send_settings_read(options->config_path, &settings, &error);
    }
    if (status == BUGPACK_OK && to != NULL) {
        status = choose(options, to, &settings, &destination, &error);
    }
    if (status == BUGPACK_OK) {
        result = run_chosen(options, &settings, to != NULL ? &destination : NULL, operands);
    } else {
        bp_cli_say("%s", error.message);
    }
    bp_send_settings_release(&settings);
    free(line);
    return result;
}

const bp_cli_command bp_cli_send_command = {
    "send",
    "send reports to a server or a directory",
    "Usage: bugpack send --to WHERE [OPTION]... REPORT...\n"
    "       bugpack send --queue [--to NAME [REPORT...]] [OPTION]...\n"
    "       bugpack send --print issue REPORT...\n"
    "\n"
    "Send reports by HTTPS, or copy them to a directory, and print where they went.\n"
    "Without --yes, or consent in the configuration, print what is in each report\n"
    "and ask. A REPORT of - is read from standard input. With --queue, reports that\n"
    "do not arrive are kept, and a later --queue tries them again.\n",
    option_rows,
    "Exit status: 0 all sent, 1 failed, 2 usage, 3 some wait in the queue.\n",
    INT_MAX - 1,
    .run = run,
    .options_bytes = sizeof(send_options)};
