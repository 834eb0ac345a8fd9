#include "send/url.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool bp_url_has_scheme(const char *text) {
    return strstr(text, "://") != NULL;
}

static bool is_unambiguous(const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte <= ' ' || byte >= 0x7f || strchr("\\\"<>^`{|}#", byte) != NULL) {
            return false;
        }
    }
    return length < BP_URL_BYTES;
}

/* Takes what is before the first of `ends` off the front. */
static bp_url_part take(const char **text, const char *ends) {
    bp_url_part part = {*text, strcspn(*text, ends)};
    *text += part.bytes;
    return part;
}

/* Host and port, which end where `end` is. */
static bool parse_host(const char *text, const char *end, bp_url *url) {
    url->host = take(&text, text[0] == '[' ? "]/?" : ":/?");
    if (url->host.at[0] == '[') {
        if (*text != ']') {
            return false;
        }
        text++;
        url->host.bytes++;
    }
    if (*text == ':') {
        text++;
        url->port = (bp_url_part){text, strspn(text, "0123456789")};
        text += url->port.bytes;
    }
    return text == end && url->host.bytes > 0;
}

bool bp_url_parse(const char *text, bp_url *ret_url) {
    bp_url url = {.is_https = strncasecmp(text, "https://", 8) == 0};
    if (!is_unambiguous(text) || (!url.is_https && strncasecmp(text, "http://", 7) != 0)) {
        return false;
    }
    text += url.is_https ? 8 : 7;
    const char *end = text + strcspn(text, "/?");
    const char *at = memchr(text, '@', (size_t)(end - text));
    if (at != NULL) {
        url.user = (bp_url_part){text, (size_t)(at - text)};
        text = at + 1;
    }
    if (memchr(text, '@', (size_t)(end - text)) != NULL || !parse_host(text, end, &url)) {
        return false;
    }
    url.path = take(&end, "?");
    *ret_url = url;
    return true;
}

static bool is_same(bp_url_part part, bp_url_part other) {
    return part.bytes == other.bytes && strncasecmp(part.at, other.at, part.bytes) == 0;
}

bool bp_url_is_loopback(const bp_url *url) {
    bool is_ipv4 = url->host.bytes >= 9 && strncmp(url->host.at, "127.", 4) == 0 &&
                   strspn(url->host.at, "0123456789.") == url->host.bytes;
    return is_ipv4 || is_same(url->host, (bp_url_part){"localhost", 9}) ||
           is_same(url->host, (bp_url_part){"[::1]", 5});
}

bool bp_url_is_same_origin(const bp_url *url, const bp_url *other) {
    const bp_url_part usual = url->is_https ? (bp_url_part){"443", 3} : (bp_url_part){"80", 2};
    return url->is_https == other->is_https && is_same(url->host, other->host) &&
           is_same(url->port.bytes > 0 ? url->port : usual,
                   other->port.bytes > 0 ? other->port : usual);
}

void bp_url_show(const bp_url *url, char *out, size_t out_bytes) {
    (void)snprintf(out, out_bytes, "%s://%.*s%s%.*s%.*s", url->is_https ? "https" : "http",
                   (int)url->host.bytes, url->host.at, url->port.bytes > 0 ? ":" : "",
                   (int)url->port.bytes, url->port.at, (int)url->path.bytes, url->path.at);
}
