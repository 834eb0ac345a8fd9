/*
 * A URL of http or https, taken apart, so that it can be judged and shown without what is secret in
 * it.
 */
#ifndef BP_SEND_URL_H
#define BP_SEND_URL_H

#include <stdbool.h>
#include <stddef.h>

/* Not ended by a NUL. */
typedef struct bp_url_part {
    const char *at;
    size_t bytes;
} bp_url_part;

/* A part that is missing has no bytes. All parts are in the text that was parsed. */
typedef struct bp_url {
    bool is_https;
    bp_url_part user; /* without "@" */
    bp_url_part host; /* with the brackets of an IPv6 address */
    bp_url_part port; /* without ":" */
    bp_url_part path; /* with its first "/", and without the query */
} bp_url;

enum { BP_URL_BYTES = 8192 };

/* True if the text has a scheme: it is no name and no path. */
bool bp_url_has_scheme(const char *text);

/*
 * False for another scheme, and for whatever two parsers could read in two ways: blanks, control
 * characters, backslashes, bytes that are not ASCII, a second "@", an empty host, a fragment.
 */
bool bp_url_parse(const char *text, bp_url *ret_url);

/* True if nothing leaves the machine: localhost, 127.0.0.0/8 and [::1]. */
bool bp_url_is_loopback(const bp_url *url);

/* True if scheme, host and port are the same. */
bool bp_url_is_same_origin(const bp_url *url, const bp_url *other);

/* Scheme, host, port and path: a signature is in the query, and a password before the host. */
void bp_url_show(const bp_url *url, char *out, size_t out_bytes);

#endif
