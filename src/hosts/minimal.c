/*
 * The smallest host that is still a real one: three threads, a TCP protocol between two of them, a
 * terminal, and F12 for a report. docs/EMBEDDING.md, "Example hosts", says what it
 * shows.
 *
 * The protocol: the server sends frames of a 4-byte big-endian length, a 1-byte type and a payload;
 * the client answers each with an acknowledgement. The main loop draws a status line and answers
 * keys; it never waits for a report.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <bugpack/bugpack.h>

enum { frame_header_bytes = 5, payload_max_bytes = 512, known_types = 3, turn_ms = 50 };

/* Shared by the threads. The sockets are set before the threads start. */
typedef struct app {
    bugpack_session *bp;
    bool is_pedantic; /* the server then also sends frames of types that the client does not know */
    int server_socket;
    int client_socket;
    atomic_bool must_quit;
    atomic_ullong frames_sent;
    atomic_ullong frames_received;
    atomic_ullong bytes_received;
    atomic_uint reports_pending;
    atomic_uint reports_written;
    atomic_uint reports_failed;
} app;

/* --- the protocol ------------------------------------------------------------------------- */

static bool send_all(int fd, const void *bytes, size_t byte_count) {
    const char *at = bytes;
    while (byte_count > 0) {
        ssize_t count = send(fd, at, byte_count, MSG_NOSIGNAL);
        if (count <= 0) {
            return false;
        }
        at += count;
        byte_count -= (size_t)count;
    }
    return true;
}

static bool receive_all(int fd, void *bytes, size_t byte_count) {
    char *at = bytes;
    while (byte_count > 0) {
        ssize_t count = recv(fd, at, byte_count, 0);
        if (count <= 0) {
            return false;
        }
        at += count;
        byte_count -= (size_t)count;
    }
    return true;
}

static void sleep_ms(long milliseconds) {
    struct timespec duration = {.tv_sec = milliseconds / 1000,
                                .tv_nsec = milliseconds % 1000 * 1000000};
    (void)nanosleep(&duration, NULL);
}

/* So that a report's threads have names. macOS lets a thread name only itself, with fewer words. */
static void name_this_thread(const char *name) {
#ifdef MINIMAL_NAMES_ONLY_ITSELF
    (void)pthread_setname_np(name);
#else
    (void)pthread_setname_np(pthread_self(), name);
#endif
}

/* Sends a frame every few milliseconds and waits for its acknowledgement. */
static void *serve(void *argument) {
    app *host = argument;
    unsigned char frame[frame_header_bytes + payload_max_bytes];
    name_this_thread("minimal-server");
    bugpack_log(host->bp, BUGPACK_LEVEL_INFO, "server", "serving");
    for (uint32_t number = 0; !atomic_load(&host->must_quit); number++) {
        uint32_t payload_bytes = 16 + number % (payload_max_bytes - 16);
        uint32_t length = htonl(payload_bytes);
        memcpy(frame, &length, sizeof length);
        bool is_unknown = host->is_pedantic && number % 1000 == 999;
        frame[4] =
            (unsigned char)(is_unknown ? known_types + number / 1000 % 200 : number % known_types);
        memset(frame + frame_header_bytes, (int)(number & 0xFF), payload_bytes);
        char acknowledgement;
        if (!send_all(host->server_socket, frame, frame_header_bytes + payload_bytes) ||
            !receive_all(host->server_socket, &acknowledgement, 1)) {
            break;
        }
        atomic_fetch_add(&host->frames_sent, 1);
        sleep_ms(5);
    }
    (void)shutdown(host->server_socket, SHUT_RDWR);
    return NULL;
}

/* Receives frames, and does a little work on each. */
static void *receive(void *argument) {
    app *host = argument;
    unsigned char header[frame_header_bytes];
    unsigned char payload[payload_max_bytes];
    name_this_thread("minimal-net");
    while (receive_all(host->client_socket, header, sizeof header)) {
        uint32_t length;
        memcpy(&length, header, sizeof length);
        length = ntohl(length);
        if (length > sizeof payload || !receive_all(host->client_socket, payload, length)) {
            bugpack_log(host->bp, BUGPACK_LEVEL_ERROR, "net", "bad frame of %u bytes",
                        (unsigned)length);
            break;
        }
        unsigned long long number = atomic_fetch_add(&host->frames_received, 1) + 1;
        atomic_fetch_add(&host->bytes_received, sizeof header + length);
        if (header[4] >= known_types) {
            bugpack_gap_unknown(host->bp, "net", header[4], payload, length);
        }
        if (number % 100 == 0) {
            bugpack_log(host->bp, BUGPACK_LEVEL_DEBUG, "net", "frame %llu: type %u, %u bytes",
                        number, (unsigned)header[4], (unsigned)length);
        }
        if (!send_all(host->client_socket, "A", 1)) {
            break;
        }
    }
    bugpack_log(host->bp, BUGPACK_LEVEL_INFO, "net", "connection closed");
    return NULL;
}

/* A listening socket on a free port of the loopback interface, and both ends of one connection. */
static bool connect_over_loopback(app *host) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t address_bytes = sizeof address;
    struct sockaddr *generic = (struct sockaddr *)&address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    host->client_socket = socket(AF_INET, SOCK_STREAM, 0);
    bool is_connected = listener >= 0 && host->client_socket >= 0 &&
                        bind(listener, generic, sizeof address) == 0 && listen(listener, 1) == 0 &&
                        getsockname(listener, generic, &address_bytes) == 0 &&
                        connect(host->client_socket, generic, sizeof address) == 0;
    if (is_connected) {
        host->server_socket = accept(listener, NULL, NULL);
        is_connected = host->server_socket >= 0;
    }
    if (listener >= 0) {
        (void)close(listener);
    }
    return is_connected;
}

/* --- bugpack ------------------------------------------------------------------------------ */

/* Called on a thread of bugpack's when a report is taken: what the host knows about itself. */
static int provide_session(bugpack_writer *writer, void *context) {
    app *host = context;
    bugpack_printf(writer,
                   "{\"frames_sent\": %llu, \"frames_received\": %llu, \"bytes_received\": %llu, "
                   "\"transport\": ",
                   (unsigned long long)atomic_load(&host->frames_sent),
                   (unsigned long long)atomic_load(&host->frames_received),
                   (unsigned long long)atomic_load(&host->bytes_received));
    const char transport[] = "TCP over loopback";
    bugpack_write_json_string(writer, transport, sizeof transport - 1);
    return bugpack_write(writer, "}", 1);
}

/* Called on the worker's thread when the zip is on disk, or could not be written. */
static void on_report_done(const bugpack_report_result *result, void *context) {
    app *host = context;
    if (result->status == BUGPACK_OK) {
        printf("\r\033[Kreport: %s\r\n", result->path);
        atomic_fetch_add(&host->reports_written, 1);
    } else {
        printf("\r\033[Kreport failed: %s\r\n", result->error.message);
        atomic_fetch_add(&host->reports_failed, 1);
    }
    (void)fflush(stdout);
    atomic_fetch_sub(&host->reports_pending, 1);
}

static void take_report(app *host) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = "F12 was pressed";
    bugpack_log(host->bp, BUGPACK_LEVEL_INFO, "ui", "F12");
    atomic_fetch_add(&host->reports_pending, 1);
    bugpack_status status = bugpack_report_async(host->bp, &request, on_report_done, host, NULL);
    if (status != BUGPACK_OK) {
        atomic_fetch_sub(&host->reports_pending, 1);
        printf("\r\033[Kno report: %s\r\n", bugpack_status_name(status));
    }
}

static bool open_session(app *host, const char *report_dir) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    options.app_name = "minimal";
    options.pedantic.is_enabled = host->is_pedantic;
    options.app_version = BUGPACK_VERSION;
    options.report_dir = report_dir;
    options.create_report_dir = true;
    if (bugpack_open(&options, &host->bp, &error) != BUGPACK_OK ||
        bugpack_provide(host->bp, "session.json", BUGPACK_PROVIDE_JSON, provide_session, host,
                        &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "minimal: %s\n", error.message);
        return false;
    }
    return true;
}

/* --- the terminal ------------------------------------------------------------------------- */

static struct termios saved_terminal;

static void restore_terminal(void) {
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &saved_terminal);
}

/* Keys one by one and unechoed, where standard input is a terminal. */
static void prepare_terminal(void) {
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &saved_terminal) != 0) {
        return;
    }
    struct termios raw = saved_terminal;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    (void)atexit(restore_terminal);
}

/* F12 arrives as five bytes, which a slow line may split over two reads. */
static const char f12_key[] = "\033[24~";

/* Acts on the bytes that were typed. `matched` counts how much of F12 came so far. */
static void handle_keys(app *host, const char *keys, ssize_t key_count, size_t *matched) {
    for (ssize_t i = 0; i < key_count; i++) {
        *matched = keys[i] == f12_key[*matched] ? *matched + 1 : keys[i] == f12_key[0];
        if (*matched == sizeof f12_key - 1) {
            take_report(host);
            *matched = 0;
        } else if (keys[i] == 'q') {
            atomic_store(&host->must_quit, true);
        }
    }
}

static void draw(app *host) {
    if (isatty(STDOUT_FILENO)) {
        printf("\r\033[K%llu frames, %llu bytes, %u reports%s   F12 report, q quit",
               (unsigned long long)atomic_load(&host->frames_received),
               (unsigned long long)atomic_load(&host->bytes_received),
               atomic_load(&host->reports_written),
               atomic_load(&host->reports_pending) > 0 ? " (one being taken)" : "");
        (void)fflush(stdout);
    }
}

static void run_loop(app *host) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t matched = 0;
    while (!atomic_load(&host->must_quit)) {
        draw(host);
        if (poll(&input, 1, turn_ms) <= 0) {
            continue;
        }
        char keys[64];
        ssize_t key_count = read(STDIN_FILENO, keys, sizeof keys);
        if (key_count == 0 || (key_count < 0 && errno != EINTR)) {
            break;
        }
        handle_keys(host, keys, key_count, &matched);
    }
    atomic_store(&host->must_quit, true);
}

int main(int argument_count, char **arguments) {
    const char *report_dir = ".";
    app host = {.server_socket = -1, .client_socket = -1};
    for (int i = 1; i < argument_count; i++) {
        if (strcmp(arguments[i], "--pedantic") == 0) {
            host.is_pedantic = true;
        } else if (strcmp(arguments[i], "--report-dir") == 0 && i + 1 < argument_count) {
            report_dir = arguments[++i];
        } else {
            (void)fprintf(stderr, "usage: %s [--pedantic] [--report-dir DIR]\n", arguments[0]);
            return 2;
        }
    }
    if (!open_session(&host, report_dir)) {
        return 1;
    }
    pthread_t server, client;
    if (!connect_over_loopback(&host) || pthread_create(&server, NULL, serve, &host) != 0 ||
        pthread_create(&client, NULL, receive, &host) != 0) {
        (void)fprintf(stderr, "minimal: cannot start: %s\n", strerror(errno));
        return 1;
    }
    prepare_terminal();
    run_loop(&host);
    (void)pthread_join(server, NULL);
    (void)pthread_join(client, NULL);
    bugpack_close(host.bp); /* waits for a report that is still being taken */
    (void)close(host.server_socket);
    (void)close(host.client_socket);
    printf("\n");
    return atomic_load(&host.reports_failed) == 0 ? 0 : 1;
}
