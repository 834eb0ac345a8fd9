/*
 * A VNC viewer on libvncclient that measures its server: bugpack in code that others wrote, as
 * docs/EMBEDDING.md explains. Once connected, "vnc-receive" has all of libvncclient; the main
 * thread has the terminal, the signals and the window, and waits for nobody.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>

#include <bugpack/bugpack.h>
#include <rfb/rfbclient.h>

#include "hosts/window.h"

enum { handshake = 256, pending_max_bytes = 16 << 20, stall_ms = 5000, connect_secs = 10 };

/* libvncclient hands no context to its log, nor to the two functions that read and write. */
static struct {
    bugpack_session *bp;
    const char *server;
    rfbClient *client;
    atomic_bool must_quit;
    atomic_ullong bytes[2], updates;
    pthread_mutex_t lock;
    uint32_t *shown; /* the last whole update; with the lock, as its size */
    _Atomic(uint32_t) width, height;

    /* The receiving thread's. */
    bugpack_channel *channel;
    bugpack_watchdog *watchdog;
    uint32_t type; /* of the message that is received */
    size_t type_bytes, pending_bytes;
    char pending[pending_max_bytes];
    char words[256];             /* of libvncclient, about this message */
    bool is_unknown;             /* this message */
    bool is_lost;                /* a read or a write has failed, */
    int exit_status, lost_errno; /* 0: because the server closed the connection */
} app = {.lock = PTHREAD_MUTEX_INITIALIZER, .type = handshake};

static void log_words(const char *format, ...) BUGPACK_PRINTF(1, 2);
static void log_words(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(app.words, sizeof app.words, format, arguments);
    va_end(arguments);
    bugpack_syslog(app.bp, LOG_INFO, "%s", app.words); /* keeps errno, which libvncclient needs */
    app.words[strcspn(app.words, "\n\r\033")] = '\0';  /* they are shown, too */
}

static void record_pending(void) {
    if (app.pending_bytes > 0) {
        bugpack_traffic(app.channel, BUGPACK_RECEIVED, app.type, NULL, app.pending,
                        app.pending_bytes);
    }
    app.pending_bytes = 0;
}

/* A message is read in many parts, and recorded as a whole. Nobody's clipboard is. */
static void keep_received(const char *bytes, size_t count) {
    if (app.type_bytes == 0 && count > 0 && app.type != handshake) {
        app.type = (unsigned char)bytes[0];
    }
    bool is_secret = app.type == rfbServerCutText && app.type_bytes >= sz_rfbServerCutTextMsg;
    app.type_bytes += count;
    if (count > sizeof app.pending - app.pending_bytes) {
        record_pending();
    }
    count = count < sizeof app.pending ? count : sizeof app.pending;
    memcpy(app.pending + app.pending_bytes, bytes, count);
    if (is_secret) {
        memset(app.pending + app.pending_bytes, '*', count);
    }
    app.pending_bytes += count;
}

static rfbBool note_loss(void) {
    app.is_lost = !app.is_unknown;
    app.lost_errno = errno;
    return FALSE;
}

/* libvncclient calls these two by the dynamic linker, which finds ours first. TLS is below them. */
#define PUBLIC __attribute__((visibility("default")))
static rfbBool (*read_on)(rfbClient *client, char *out, unsigned count);
static rfbBool (*write_on)(rfbClient *client, const char *bytes, unsigned count);

PUBLIC rfbBool ReadFromRFBServer(rfbClient *client, char *out, unsigned count) {
    if (atomic_load(&app.bytes[BUGPACK_RECEIVED]) == 0) {
        (void)SetBlocking(client->sock); /* or EAGAIN would be the errno of every end */
    }
    bugpack_watchdog_beat(app.watchdog);
    errno = 0;
    if (app.is_unknown || !read_on(client, out, count)) {
        return note_loss(); /* libvncclient would wait for 256 bytes behind an unknown message */
    }
    atomic_fetch_add(&app.bytes[BUGPACK_RECEIVED], count);
    keep_received(out, count);
    return TRUE;
}

PUBLIC rfbBool WriteToRFBServer(rfbClient *client, const char *bytes, unsigned count) {
    static const char zeros[4096];
    bool is_handshake = app.type == handshake && client->desktopName == NULL;
    /* The answer to a challenge, a name, a password. */
    bool is_secret = is_handshake && count > 1 && strncmp(bytes, "RFB ", 4) != 0;
    record_pending(); /* both directions stay in their order */
    errno = 0;
    if (!write_on(client, bytes, count)) {
        return note_loss();
    }
    atomic_fetch_add(&app.bytes[BUGPACK_SENT], count);
    bugpack_traffic(app.channel, BUGPACK_SENT, is_handshake ? handshake : (unsigned char)bytes[0],
                    NULL, is_secret ? zeros : bytes,
                    is_secret && count > sizeof zeros ? sizeof zeros : count);
    return TRUE;
}

/* The server does not choose how much memory is taken. The others have a copy, and never wait. */
static rfbBool make_framebuffer(rfbClient *client) {
    size_t pixels = (size_t)client->width * client->height;
    bool is_good = pixels <= BUGPACK_PICTURE_MAX_BYTES / sizeof *app.shown;
    pthread_mutex_lock(&app.lock);
    free(client->frameBuffer);
    free(app.shown);
    client->frameBuffer = is_good ? calloc(pixels + 1, sizeof *app.shown) : NULL;
    app.shown = is_good ? calloc(pixels + 1, sizeof *app.shown) : NULL;
    app.width = (uint32_t)client->width;
    app.height = (uint32_t)client->height;
    is_good = client->frameBuffer != NULL && app.shown != NULL;
    pthread_mutex_unlock(&app.lock);
    log_words("a screen of %dx%d%s", client->width, client->height, is_good ? "" : " is too large");
    return is_good;
}

static void show_update(rfbClient *client) {
    pthread_mutex_lock(&app.lock);
    memcpy(app.shown, client->frameBuffer, (size_t)app.width * app.height * sizeof *app.shown);
    pthread_mutex_unlock(&app.lock);
    atomic_fetch_add(&app.updates, 1);
}

/* libvncclient asks its extensions before it gives up on an encoding or a message. */
static rfbBool see_encoding(rfbClient *client, rfbFramebufferUpdateRectHeader *rect) {
    char key[64];
    (void)client;
    (void)snprintf(key, sizeof key, "rfb:encoding:%d", (int)rect->encoding);
    bugpack_gap(app.bp, key);
    return FALSE;
}

static rfbBool see_message(rfbClient *client, rfbServerToClientMsg *message) {
    /* Its type was the last byte to leave the buffer, where more of it may be. */
    bugpack_gap_unknown(app.bp, "rfb", message->type, client->bufoutptr - 1, client->buffered + 1);
    app.is_unknown = true;
    return FALSE;
}

static bool connect_to_server(void) {
    static rfbClientProtocolExtension extension = {.handleEncoding = see_encoding,
                                                   .handleMessage = see_message};
    char *arguments[] = {NULL, (char *)(uintptr_t)app.server};
    rfbClientRegisterExtension(&extension);
    app.client->MallocFrameBuffer = make_framebuffer;
    app.client->FinishedFrameBufferUpdate = show_update;
    app.client->appData.enableJPEG = FALSE; /* the screenshot is what the server has */
    app.client->connectTimeout = connect_secs;
    return rfbInitClient(app.client, &(int){2}, arguments); /* frees it on failure */
}

static void report_loss(void) {
    bugpack_disconnect_details details = BUGPACK_DISCONNECT_DETAILS_INIT;
    details.error_kind = app.is_lost ? "io" : "protocol";
    const char *error_text =
        app.is_lost && app.lost_errno != 0 ? strerrorname_np(app.lost_errno) : app.words;
    (void)printf("connection lost: %s\n", error_text);
    bugpack_notify(app.bp, BUGPACK_LEVEL_ERROR, "rfb", NULL, "connection lost: %s", error_text);
    if (app.is_lost || app.bytes[BUGPACK_RECEIVED] > 0) { /* and there was one */
        (void)bugpack_disconnect(app.bp, "rfb", error_text, &details, NULL);
    }
    app.exit_status = 1;
    atomic_store(&app.must_quit, true);
}

static void *receive(void *unused) {
    bool is_good = true;
    (void)pthread_setname_np(pthread_self(), "vnc-receive");
    (void)snprintf(app.words, sizeof app.words, "%d.%d, security %u", app.client->major,
                   app.client->minor, app.client->authScheme);
    bugpack_set_tag(app.bp, "rfb", app.words);
    while (is_good && !atomic_load(&app.must_quit)) {
        bugpack_watchdog_pause(app.watchdog); /* a server may be silent between messages */
        if (app.client->buffered > 0 || WaitForMessage(app.client, 100000) != 0) {
            app.type_bytes = app.type = 0;
            (void)snprintf(app.words, sizeof app.words, "a message could not be used");
            is_good = HandleRFBServerMessage(app.client);
            record_pending();
        }
    }
    if (!atomic_load(&app.must_quit)) {
        report_loss();
    }
    return unused;
}

static int provide_session(bugpack_writer *writer, void *unused) {
    (void)unused;
    bugpack_printf(writer, "{\"server\": ");
    bugpack_write_json_string(writer, app.server, strlen(app.server));
    return (int)bugpack_printf(writer,
                               ", \"width\": %u, \"height\": %u, \"updates\": %llu, "
                               "\"bytes_received\": %llu, \"bytes_sent\": %llu}",
                               app.width, app.height, app.updates, app.bytes[BUGPACK_RECEIVED],
                               app.bytes[BUGPACK_SENT]);
}

static int provide_screenshot(bugpack_writer *writer, void *unused) {
    (void)unused;
    pthread_mutex_lock(&app.lock);
    const bugpack_picture picture = {.pixels = app.shown,
                                     .width = app.width,
                                     .height = app.height,
                                     .format = BUGPACK_PIXELS_RGBX};
    int result = app.shown == NULL ? bugpack_omit(writer, "nothing has been shown")
                                   : (int)bugpack_write_picture(writer, &picture);
    pthread_mutex_unlock(&app.lock);
    return result;
}

static bool open_session(const char *report_dir) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_channel_options channel = BUGPACK_CHANNEL_OPTIONS_INIT;
    bugpack_error error;
    channel.weight = BUGPACK_TRAFFIC_WEIGHT_TOTAL; /* there is no other channel */
    options.app_name = "vnc";
    options.report_dir = report_dir;
    options.create_report_dir = options.pedantic.is_enabled = true;
    options.answers_trigger = true;
    options.on_event = console_print_event;
    if (bugpack_open(&options, &app.bp, &error) != BUGPACK_OK ||
        bugpack_channel_open(app.bp, "rfb", &channel, &app.channel, &error) != BUGPACK_OK ||
        bugpack_watchdog_open(app.bp, "vnc", stall_ms, &app.watchdog, &error) != BUGPACK_OK ||
        bugpack_provide(app.bp, "session.json", BUGPACK_PROVIDE_JSON, provide_session, NULL,
                        &error) != BUGPACK_OK ||
        bugpack_provide(app.bp, "screenshot.png", BUGPACK_PROVIDE_SCREENSHOT, provide_screenshot,
                        NULL, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "bugpack-vnc: %s\n", error.message);
        return false;
    }
    (void)bugpack_crash_handler_install(app.bp);
    return true;
}

static void run(bool has_window) {
    while (!atomic_load(&app.must_quit)) {
        console_wish wish = console_wait(has_window ? 16 : 100);
        if (has_window && wish == CONSOLE_NOTHING) {
            pthread_mutex_lock(&app.lock);
            wish = window_turn(app.shown, app.width, app.height);
            pthread_mutex_unlock(&app.lock);
        }
        if (wish == CONSOLE_REPORT) {
            (void)bugpack_report_async(app.bp, NULL, NULL, NULL);
        } else if (wish == CONSOLE_QUIT) {
            atomic_store(&app.must_quit, true);
        }
        console_print_rates(app.updates, app.bytes[BUGPACK_RECEIVED], app.bytes[BUGPACK_SENT]);
    }
}

int main(int count, char **arguments) {
    pthread_t receiver;
    if (count < 3 || count > 4 || arguments[1][0] == '-') {
        (void)fprintf(stderr, "usage: bugpack-vnc HOST[:DISPLAY|:PORT] REPORT_DIR [window]\n");
        return 2;
    }
    app.server = arguments[1];
    (void)signal(SIGPIPE, SIG_IGN); /* libvncclient writes without MSG_NOSIGNAL */
    *(void **)&read_on = dlsym(RTLD_NEXT, "ReadFromRFBServer");
    *(void **)&write_on = dlsym(RTLD_NEXT, "WriteToRFBServer");
    rfbClientLog = rfbClientErr = log_words;
    app.client = rfbGetClient(8, 3, 4); /* 8 bits of red, green and blue, in 4 bytes */
    if (read_on == NULL || write_on == NULL || app.client == NULL || !open_session(arguments[2])) {
        return 1;
    }
    if (connect_to_server() && pthread_create(&receiver, NULL, receive, NULL) == 0) {
        console_open();
        (void)printf("connected to %s\n", app.server);
        run(count == 4 && window_open(app.server));
        (void)shutdown(app.client->sock, SHUT_RDWR); /* the receiver may be inside a message */
        (void)pthread_join(receiver, NULL);
    } else {
        report_loss();
    }
    bugpack_close(app.bp); /* waits for the reports */
    return app.exit_status;
}
