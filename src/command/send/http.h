/*
 * One HTTP request that sends a file. By libcurl, which is loaded at the first one, so that no
 * other command needs it; a build without it has http_none.c.
 */
#ifndef BP_SEND_HTTP_H
#define BP_SEND_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "send/report.h"

enum {
    BP_HTTP_CONNECT_SECS = 15,
    /* Slower than so many bytes a second, over so many seconds, is a stall. */
    BP_HTTP_STALL_BYTES = 256,
    BP_HTTP_STALL_SECS = 60,
    BP_HTTP_BODY_BYTES = 4096
};

/* All borrowed. The body is a file, with something before and after it. */
typedef struct bp_http_request {
    const char *url;
    bool is_post; /* else a PUT */
    const char *const *headers;
    size_t header_count;
    const char *ca_cert;        /* NULL: the system's certificates */
    const char *before, *after; /* may have NULs */
    size_t before_bytes, after_bytes;
    int fd;
    uint64_t file_bytes;
    bp_send_progress *progress;
    void *context;
} bp_http_request;

typedef struct bp_http_answer {
    long status;                   /* 100 to 999; 0: there was none */
    uint64_t retry_after_secs;     /* 0: not said */
    char body[BP_HTTP_BODY_BYTES]; /* its beginning, as a text */
} bp_http_answer;

/*
 * Sends it. OK: there is an answer, of any status, and for 2xx all was sent. The proxy of the
 * environment is used (curl(1)), but not for http to this machine. 307 and 308 are followed to the
 * same scheme, host and port; other redirections are answers.
 *
 * IO: the network, TLS, a stall, or an answer that is cut short; the sentence has nothing of the
 * request. CORRUPT: the file cannot be read to its end. CANCELLED by `progress`. UNSUPPORTED
 * without libcurl. INVALID for a URL or a file of certificates that cannot be used.
 */
bugpack_status bp_http_send(const bp_http_request *request, bp_http_answer *ret_answer,
                            bugpack_error *error);

#endif
