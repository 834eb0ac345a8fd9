#include "hosts/spice/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/spice/console.h"

static void on_diagnostic(bugpack_level level, const char *text, void *context) {
    (void)context;
    (void)level;
    (void)fprintf(stderr, "bugpack: %s\n", text);
}

bool spice_report_open(spice_client *client, const char *report_dir, bool is_pedantic,
                       const char *pedantic_dir) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    options.app_name = "spice";
    options.app_version = BUGPACK_VERSION;
    options.report_dir = report_dir;
    options.create_report_dir = true;
    options.pedantic.is_enabled = is_pedantic;
    options.pedantic.dir = pedantic_dir;
    options.answers_trigger = true;
    options.on_event = console_print_event;
    options.on_diagnostic = on_diagnostic;
    bugpack_session *session = NULL;
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK ||
        bugpack_provide(session, "session.json", BUGPACK_PROVIDE_JSON, spice_session_json, client,
                        &error) != BUGPACK_OK ||
        bugpack_provide(session, "channel-state.json", BUGPACK_PROVIDE_JSON, spice_channels_json,
                        client, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "bugpack-spice: %s\n", error.message);
        bugpack_close(session);
        return false;
    }
    client->session = session;
    (void)bugpack_crash_handler_install(session, NULL); /* on_diagnostic has the reason */
    return true;
}

/* A copy of the pixels of the primary surface, to be freed; NULL: there is none. */
static uint8_t *copy_screen(spice_client *client, bugpack_picture *ret_picture) {
    spice_channel *channel = &client->channels[SPICE_DISPLAY];
    uint8_t *pixels = NULL;
    (void)pthread_mutex_lock(&channel->lock);
    const spice_display *display = &channel->state.display;
    if (display->pixels != NULL) {
        size_t byte_count = (size_t)display->width * display->height * 4;
        pixels = malloc(byte_count);
        if (pixels != NULL) {
            memcpy(pixels, display->pixels, byte_count);
        }
        *ret_picture = (bugpack_picture){.pixels = pixels,
                                         .width = display->width,
                                         .height = display->height,
                                         .format = BUGPACK_PIXELS_BGRX};
    }
    (void)pthread_mutex_unlock(&channel->lock);
    return pixels;
}

void spice_report_take(spice_client *client) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_picture picture;
    uint8_t *pixels = copy_screen(client, &picture);
    if (pixels != NULL) {
        request.screenshot = &picture;
        request.screenshot_context = pixels;
        request.screenshot_release = free;
    }
    bugpack_status status = bugpack_report_async(client->session, &request, NULL, NULL, NULL);
    if (status != BUGPACK_OK) {
        (void)printf("no report: %s\n", bugpack_status_name(status));
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

void spice_report_lost(spice_channel *channel, const spice_failure *failure, bool was_up) {
    bugpack_session *session = channel->client->session;
    const char *name = channel->kind->name;
    bugpack_log(session, BUGPACK_LEVEL_ERROR, name, "lost: %s", failure->text);
    (void)printf("%s is %s: %s: %s\n", name, was_up ? "disconnected" : "refused", failure->kind,
                 failure->text);
    if (!was_up) {
        return;
    }
    const char *error_name = failure->error_number ? strerrorname_np(failure->error_number) : NULL;
    bugpack_disconnect_details details = BUGPACK_DISCONNECT_DETAILS_INIT;
    details.error_kind = failure->kind;
    details.keepalive_fired = failure->error_number == ETIMEDOUT;
    /* BUSY: another channel was first */
    (void)bugpack_disconnect(session, name, error_name ? error_name : failure->text, &details,
                             NULL);
}
