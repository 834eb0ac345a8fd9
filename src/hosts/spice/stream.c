#include "hosts/spice/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t spice_now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool spice_fail(spice_failure *failure, const char *kind, int error_number, const char *format,
                ...) {
    failure->kind = kind;
    failure->error_number = error_number;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    return false;
}

/* Waits for `events` until the deadline; false when it has passed. */
static bool wait_until(int fd, short events, int64_t deadline_ms, spice_failure *failure) {
    for (;;) {
        int64_t left_ms = deadline_ms - spice_now_ms();
        struct pollfd wanted = {.fd = fd, .events = events};
        int count = left_ms > 0 ? poll(&wanted, 1, (int)left_ms) : 0;
        if (count > 0) {
            return true;
        }
        if (count == 0) {
            return spice_fail(failure, "timeout", ETIMEDOUT, "the server does not answer in time");
        }
        if (errno != EINTR) {
            return spice_fail(failure, "io", errno, "poll: %s", strerror(errno));
        }
    }
}

/* --- bytes -------------------------------------------------------------------------------- */

/* Why a call of OpenSSL has failed: its own error, such as of a certificate that is refused, or
 * that of the system call below; or the server has closed the connection. */
static bool fail_call(const spice_stream *stream, const char *call, int error_number,
                      spice_failure *failure) {
    unsigned long code = ERR_peek_last_error();
    char reason[128];
    SSL *tls = NULL;
    ERR_error_string_n(code, reason, sizeof reason);
    ERR_clear_error();
    if (code == 0 && error_number == 0) {
        return spice_fail(failure, "closed", 0, "the server closed the connection");
    }
    if (code == 0) {
        return spice_fail(failure, "io", error_number, "%s: %s", call, strerror(error_number));
    }
    if (BIO_get_ssl(stream->bio, &tls) == 1 && SSL_get_verify_result(tls) != X509_V_OK) {
        return spice_fail(failure, "tls", 0, "TLS: %s",
                          X509_verify_cert_error_string(SSL_get_verify_result(tls)));
    }
    return spice_fail(failure, "tls", 0, "TLS: %s", reason);
}

/* Receives `count` bytes `to` there, or sends them `from` there, or makes a handshake of TLS. */
static bool move_all(const spice_stream *stream, uint8_t *to, const uint8_t *from, size_t count,
                     int64_t limit_ms, spice_failure *failure) {
    int64_t deadline_ms = spice_now_ms() + limit_ms;
    for (size_t moved = 0; moved < count;) {
        int done, part = count - moved > (1 << 20) ? 1 << 20 : (int)(count - moved);
        ERR_clear_error();
        errno = 0; /* an end of the connection leaves it */
        if (to != NULL) {
            done = BIO_read(stream->bio, to + moved, part);
        } else {
            done = from ? BIO_write(stream->bio, from + moved, part)
                        : (int)BIO_do_handshake(stream->bio);
        }
        if (done > 0) {
            moved += (size_t)done;
        } else if (!BIO_should_retry(stream->bio)) {
            return fail_call(stream, to ? "read" : "write", errno, failure);
        } else if (!wait_until(stream->fd, BIO_should_read(stream->bio) ? POLLIN : POLLOUT,
                               deadline_ms, failure)) {
            return false;
        }
    }
    return true;
}

/* --- connecting --------------------------------------------------------------------------- */

static void set_up_socket(int fd) {
    int on = 1, idle_secs = 30, interval_secs = 10, probes = 3;
    /* What is sent is small, and a server that does not read it is to be noticed: by a thread that
     * waits to send, and as soon as for an idle server where it does not even acknowledge. */
    int send_bytes = 8 << 10;
    unsigned unacknowledged_ms = 60000;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms,
                     sizeof unacknowledged_ms);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_secs, sizeof idle_secs);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_secs, sizeof interval_secs);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static bool connect_to(const struct addrinfo *address, int *ret_fd, spice_failure *failure) {
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return spice_fail(failure, "io", errno, "socket: %s", strerror(errno));
    }
    set_up_socket(fd);
    int error_number = 0;
    socklen_t size = sizeof error_number;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        if (errno != EINPROGRESS) {
            error_number = errno;
        } else if (!wait_until(fd, POLLOUT, spice_now_ms() + SPICE_CONNECT_MS, failure)) {
            (void)close(fd);
            return false;
        } else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &size) != 0) {
            error_number = errno;
        }
    }
    if (error_number != 0) {
        (void)close(fd);
        return spice_fail(failure, "io", error_number, "%s", strerror(error_number));
    }
    *ret_fd = fd;
    return true;
}

/* --- opening ------------------------------------------------------------------------------ */

static bool expect_name(SSL *tls, const char *host) {
    X509_VERIFY_PARAM *rules = SSL_get0_param(tls);
    if (X509_VERIFY_PARAM_set1_ip_asc(rules, host) == 1) {
        return true;
    }
    char *name = (char *)(uintptr_t)host; /* only read, but by a macro that casts const away */
    return SSL_set1_host(tls, host) == 1 && SSL_set_tlsext_host_name(tls, name) == 1;
}

static bool start_tls(spice_stream *stream, const spice_options *options, spice_failure *failure) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *tls = NULL;
    BIO *layer = NULL;
    if (context != NULL && (options->ca_file ? SSL_CTX_load_verify_file(context, options->ca_file)
                                             : SSL_CTX_set_default_verify_paths(context)) == 1) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
        (void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
        /* A server that just goes is reported as a closed connection. */
        (void)SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
        layer = BIO_new_ssl(context, 1);
    }
    SSL_CTX_free(context);
    if (layer == NULL || BIO_get_ssl(layer, &tls) != 1 || !expect_name(tls, options->host)) {
        BIO_free(layer);
        return fail_call(stream, "TLS", ENOMEM, failure);
    }
    stream->bio = BIO_push(layer, stream->bio);
    return move_all(stream, NULL, NULL, 1, SPICE_LINK_MS, failure);
}

bool spice_stream_open(spice_stream *ret_stream, const spice_options *options,
                       spice_failure *failure) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses = NULL;
    const char *port = options->tls_port ? options->tls_port : options->port;
    int status = getaddrinfo(options->host, port, &hints, &addresses);
    if (status != 0) {
        return spice_fail(failure, "io", 0, "%s: %s", options->host, gai_strerror(status));
    }
    spice_stream stream = {.fd = -1};
    for (const struct addrinfo *each = addresses; each && stream.fd < 0; each = each->ai_next) {
        (void)connect_to(each, &stream.fd, failure);
    }
    freeaddrinfo(addresses);
    if (stream.fd < 0) {
        return false;
    }
    stream.bio = BIO_new_socket(stream.fd, BIO_CLOSE);
    if (stream.bio == NULL) {
        (void)close(stream.fd);
        return spice_fail(failure, "io", ENOMEM, "no memory for a connection");
    }
    if (options->tls_port && !start_tls(&stream, options, failure)) {
        spice_stream_close(&stream);
        return false;
    }
    *ret_stream = stream;
    return true;
}

void spice_stream_close(spice_stream *stream) {
    BIO_free_all(stream->bio);
    *stream = (spice_stream){.fd = -1};
}

/* --- a stream that is open ----------------------------------------------------------------- */

bool spice_stream_read(spice_stream *stream, void *bytes, size_t byte_count, int64_t limit_ms,
                       spice_failure *failure) {
    return move_all(stream, bytes, NULL, byte_count, limit_ms, failure);
}

bool spice_stream_write(spice_stream *stream, const void *bytes, size_t byte_count,
                        int64_t limit_ms, spice_failure *failure) {
    return move_all(stream, NULL, bytes, byte_count, limit_ms, failure);
}

bool spice_stream_has_input(const spice_stream *stream) {
    struct pollfd wanted = {.fd = stream->fd, .events = POLLIN};
    return BIO_pending(stream->bio) > 0 || poll(&wanted, 1, 0) > 0;
}

void spice_stream_wait(const spice_stream *stream, int other_fd) {
    struct pollfd wanted[2] = {{.fd = stream->fd, .events = POLLIN},
                               {.fd = other_fd, .events = POLLIN}};
    (void)poll(wanted, 2, -1);
}

uint32_t spice_stream_rtt_us(const spice_stream *stream) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    bool is_known = getsockopt(stream->fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    return is_known ? info.tcpi_rtt : 0;
}
