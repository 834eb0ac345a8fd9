#include "hosts/spice/client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- lines ------------------------------------------------------------------------------- */

static bool is_json;

/* `text` as a JSON string, cut to fit; bytes that are no ASCII as '?'. */
static const char *quote(char *quoted, size_t size, const char *text) {
    size_t at = 0;
    quoted[at++] = '"';
    for (const char *c = text; *c != '\0' && at + 4 < size; c++) {
        if (*c == '"' || *c == '\\') {
            quoted[at++] = '\\';
        }
        quoted[at++] = *c >= ' ' && *c <= '~' ? *c : '?';
    }
    quoted[at++] = '"';
    quoted[at] = '\0';
    return quoted;
}

void spice_say(const char *event, const char *fields, const char *format, ...) {
    char text[4400];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    flockfile(stdout);
    if (is_json) {
        char quoted[2 * sizeof text];
        printf("{\"event\": \"%s\", \"text\": %s%s%s}\n", event, quote(quoted, sizeof quoted, text),
               *fields ? ", " : "", fields);
    } else if (isatty(STDOUT_FILENO)) {
        printf("\r\033[K%s%s", text, strcmp(event, "second") == 0 ? "" : "\r\n");
    } else {
        printf("%s\n", text);
    }
    (void)fflush(stdout);
    funlockfile(stdout);
}

/* --- the session -------------------------------------------------------------------------- */

static void on_event(const bugpack_event *event, void *context) {
    (void)context;
    char path[2 * sizeof event->path], fields[sizeof path + 128];
    if (event->kind == BUGPACK_EVENT_WRITTEN) {
        (void)snprintf(
            fields, sizeof fields, "\"type\": \"%s\", \"missing\": %" PRIu32 ", \"path\": %s",
            event->report_type, event->missing_count, quote(path, sizeof path, event->path));
        spice_say("report", fields, "report: %s", event->path);
    } else if (event->kind == BUGPACK_EVENT_FAILED) {
        (void)snprintf(fields, sizeof fields, "\"type\": \"%s\"", event->report_type);
        spice_say("report_failed", fields, "no report: %s", event->error.message);
    }
}

static void on_diagnostic(bugpack_level level, const char *text, void *context) {
    (void)context;
    (void)level;
    spice_say("diagnostic", "", "bugpack: %s", text);
}

bool spice_report_open(spice_client *client) {
    const spice_options *own = client->options;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    options.app_name = "spice";
    options.app_version = BUGPACK_VERSION;
    options.report_dir = own->report_dir;
    options.create_report_dir = true;
    options.pedantic = own->is_pedantic;
    options.pedantic_dir = own->pedantic_dir;
    options.auto_snapshot_interval_ms = own->auto_snapshot_ms;
    options.answer_flags = BUGPACK_ANSWER_TRIGGER;
    options.on_event = on_event;
    options.on_diagnostic = on_diagnostic;
    is_json = own->is_json;
    bugpack *session = NULL;
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK ||
        bugpack_provide_json(session, "session.json", spice_session_json, client, &error) !=
            BUGPACK_OK ||
        bugpack_provide_json(session, "channel-state.json", spice_channels_json, client, &error) !=
            BUGPACK_OK) {
        (void)fprintf(stderr, "bugpack-spice: %s\n", error.message);
        bugpack_close(session);
        return false;
    }
    client->session = session;
    (void)bugpack_crash_handler_install(session); /* on_diagnostic has the reason */
    return true;
}

/* --- reports ------------------------------------------------------------------------------ */

/* A copy of the pixels of the primary surface, to be freed; NULL: there is none. */
static uint32_t *copy_screen(spice_client *client, bugpack_picture *ret_picture) {
    spice_channel *channel = &client->channels[SPICE_DISPLAY];
    uint32_t *pixels = NULL;
    (void)pthread_mutex_lock(&channel->lock);
    const spice_surface *surface = spice_display_primary(&channel->state.display);
    if (surface != NULL) {
        size_t byte_count = (size_t)surface->width * surface->height * sizeof *pixels;
        pixels = malloc(byte_count);
        if (pixels != NULL) {
            memcpy(pixels, surface->pixels, byte_count);
        }
        *ret_picture = (bugpack_picture){.pixels = pixels,
                                         .width = surface->width,
                                         .height = surface->height,
                                         .format = BUGPACK_PIXELS_BGRX};
    }
    (void)pthread_mutex_unlock(&channel->lock);
    return pixels;
}

void spice_report_take(spice_client *client, const char *description) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_picture picture;
    uint32_t *pixels = copy_screen(client, &picture);
    request.description = description;
    if (pixels != NULL) {
        request.screenshot = &picture;
        request.screenshot_context = pixels;
        request.screenshot_release = free;
    }
    bugpack_status status = bugpack_report_async(client->session, &request, NULL, NULL);
    if (status != BUGPACK_OK) {
        spice_say("report_failed", "\"type\": \"bugreport\"", "no report: %s",
                  bugpack_status_name(status));
    }
}

void spice_report_gap(spice_channel *channel, const char *opcode, const char *gap) {
    char key[BUGPACK_GAP_KEY_MAX_BYTES + 1];
    bool is_malformed = strcmp(gap, SPICE_MALFORMED) == 0;
    bool has_opcode = is_malformed || strcmp(gap, SPICE_UNIMPLEMENTED) == 0;
    (void)snprintf(key, sizeof key, "%s:%s%s%s", channel->kind->name, is_malformed ? "decode" : gap,
                   has_opcode ? ":" : "", has_opcode ? opcode : "");
    bugpack_gap_with_state(channel->client->session, key, spice_channel_json, channel);
}

/* "ECONNRESET", or the sentence where there is no errno. */
static const char *error_text(const spice_failure *failure) {
    const char *name = failure->error_number ? strerrorname_np(failure->error_number) : NULL;
    return name ? name : failure->text;
}

void spice_report_lost(spice_channel *channel, const spice_failure *failure, bool was_up) {
    spice_client *client = channel->client;
    const char *name = channel->kind->name;
    char fields[256], text[128];
    bugpack_log(client->session, BUGPACK_LEVEL_ERROR, name, "lost: %s", failure->text);
    (void)snprintf(fields, sizeof fields, "\"channel\": \"%s\", \"kind\": \"%s\", \"error\": %s",
                   name, failure->kind, quote(text, sizeof text, error_text(failure)));
    spice_say(was_up ? "disconnected" : "refused", fields, "%s: %s", name, failure->text);
    if (!was_up) {
        return;
    }
    bugpack_disconnect_cause cause = BUGPACK_DISCONNECT_CAUSE_INIT;
    cause.channel = name;
    cause.error_text = error_text(failure);
    cause.error_kind = failure->kind;
    cause.keepalive_fired = failure->error_number == ETIMEDOUT;
    (void)bugpack_disconnect_because(client->session, &cause); /* BUSY: another channel was first */
}
