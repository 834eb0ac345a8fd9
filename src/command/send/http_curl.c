#include <curl/curl.h>
#include <dlfcn.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "send/backoff.h"
#include "send/http.h"
#include "send/url.h"

enum { redirect_max = 3, answer_max_bytes = 1 << 20 };

/* The functions of libcurl that we call. X(member, name) for each: some names are macros as well.
 */
#define CURL_FUNCTIONS(X)                                                                          \
    X(global_init, curl_global_init)                                                               \
    X(init, curl_easy_init)                                                                        \
    X(cleanup, curl_easy_cleanup)                                                                  \
    X(set, curl_easy_setopt)                                                                       \
    X(perform, curl_easy_perform)                                                                  \
    X(get, curl_easy_getinfo)                                                                      \
    X(describe, curl_easy_strerror)                                                                \
    X(append, curl_slist_append)                                                                   \
    X(free_all, curl_slist_free_all)

#define CURL_POINTER(member, name) __typeof__(&(name)) member;
static struct { CURL_FUNCTIONS(CURL_POINTER) } curl;
#undef CURL_POINTER

/* A pointer to an object is copied into one to a function, as POSIX has it for dlsym. */
static bool load(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool load_all(void) {
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"};
    static bool is_loaded;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !is_loaded; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        is_loaded = library != NULL;
#define CURL_LOAD(member, name) is_loaded = is_loaded && load(library, #name, &curl.member);
        CURL_FUNCTIONS(CURL_LOAD)
#undef CURL_LOAD
        is_loaded = is_loaded && curl.global_init(CURL_GLOBAL_ALL) == CURLE_OK;
    }
    return is_loaded;
}

/* A request on its way. */
typedef struct transfer {
    const bp_http_request *request;
    bp_http_answer *answer;
    uint64_t offset, sent_bytes, total_bytes; /* of the body */
    size_t body_bytes;                        /* of the answer, as far as it is kept */
    uint64_t answer_bytes;
    bool is_cancelled, is_unreadable, is_too_long;
    CURL *handle;
    struct curl_slist *headers;
} transfer;

/* Copies from one of the three parts of the body, of which `start` is the first byte. */
static size_t copy_part(const char *part, uint64_t start, size_t part_bytes, uint64_t offset,
                        char *out, size_t room) {
    size_t at = (size_t)(offset - start), left = part_bytes - at;
    size_t count = left < room ? left : room;
    memcpy(out, part + at, count);
    return count;
}

/* A CURLOPT_READFUNCTION. A file that has become shorter ends the request. */
static size_t give(char *out, size_t size, size_t count, void *context) {
    transfer *it = context;
    const bp_http_request *request = it->request;
    uint64_t file_end = request->before_bytes + request->file_bytes;
    size_t room = size * count, given = 0;
    if (it->offset < request->before_bytes) {
        given = copy_part(request->before, 0, request->before_bytes, it->offset, out, room);
    } else if (it->offset < file_end) {
        uint64_t left = file_end - it->offset;
        int64_t read = bp_file_read_range(request->fd, out, left < room ? (size_t)left : room,
                                          it->offset - request->before_bytes);
        it->is_unreadable = read <= 0;
        given = read > 0 ? (size_t)read : CURL_READFUNC_ABORT;
    } else if (it->offset < it->total_bytes) {
        given = copy_part(request->after, file_end, request->after_bytes, it->offset, out, room);
    }
    it->offset += given != CURL_READFUNC_ABORT ? given : 0;
    return given;
}

/* A CURLOPT_SEEKFUNCTION: a connection that was kept may be closed when it is used again. */
static int rewind_body(void *context, curl_off_t offset, int origin) {
    transfer *it = context;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > it->total_bytes) {
        return CURL_SEEKFUNC_CANTSEEK;
    }
    it->offset = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* A CURLOPT_WRITEFUNCTION: keeps the beginning of the answer. */
static size_t take_body(char *bytes, size_t size, size_t count, void *context) {
    transfer *it = context;
    size_t given = size * count, room = sizeof it->answer->body - 1 - it->body_bytes;
    size_t kept = given < room ? given : room;
    memcpy(it->answer->body + it->body_bytes, bytes, kept);
    it->body_bytes += kept;
    it->answer_bytes += given;
    it->is_too_long = it->answer_bytes > answer_max_bytes;
    return it->is_too_long ? 0 : given;
}

/* A CURLOPT_XFERINFOFUNCTION, which is called about once a second if nothing happens. */
static int show_progress(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                         curl_off_t up) {
    transfer *it = context;
    (void)down_total, (void)down, (void)up_total;
    it->is_cancelled = it->request->progress != NULL &&
                       !it->request->progress(it->request->context, (uint64_t)up, it->total_bytes);
    return it->is_cancelled ? 1 : 0;
}

#define SET(option, value) (is_set = curl.set(it->handle, option, value) == CURLE_OK && is_set)

/* The options that are the same for every request. */
static bool set_limits(const transfer *it) {
    bool is_set = true;
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_CONNECTTIMEOUT, (long)BP_HTTP_CONNECT_SECS);
    SET(CURLOPT_LOW_SPEED_LIMIT, (long)BP_HTTP_STALL_BYTES);
    SET(CURLOPT_LOW_SPEED_TIME, (long)BP_HTTP_STALL_SECS);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    return is_set;
}

static bool set_callbacks(transfer *it) {
    bool is_set = true;
    SET(CURLOPT_READFUNCTION, give);
    SET(CURLOPT_READDATA, it);
    SET(CURLOPT_SEEKFUNCTION, rewind_body);
    SET(CURLOPT_SEEKDATA, it);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, it);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, show_progress);
    SET(CURLOPT_XFERINFODATA, it);
    return is_set;
}

static bool set_request(const transfer *it, bool is_loopback) {
    const bp_http_request *request = it->request;
    bool is_set = true;
    if (request->is_post) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)it->total_bytes);
    } else {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)it->total_bytes);
    }
    SET(CURLOPT_HTTPHEADER, it->headers);
    if (is_loopback) {
        SET(CURLOPT_NOPROXY, "*");
    }
    if (request->ca_cert != NULL) {
        SET(CURLOPT_CAINFO, request->ca_cert);
    }
    return is_set;
}

static bugpack_status prepare(transfer *it, bool is_loopback, bugpack_error *error) {
    const bp_http_request *request = it->request;
    for (size_t i = 0; i < request->header_count; i++) {
        struct curl_slist *longer = curl.append(it->headers, request->headers[i]);
        if (longer == NULL) {
            return bp_fail_memory(error, "send a report");
        }
        it->headers = longer;
    }
    return set_limits(it) && set_callbacks(it) && set_request(it, is_loopback)
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                         "libcurl refuses an option of ours: it is older than 7.85");
}

static bugpack_status judge(const transfer *it, CURLcode code, bugpack_error *error) {
    if (it->is_cancelled) {
        return bp_fail(error, BUGPACK_ERR_CANCELLED, "interrupted");
    }
    if (it->is_unreadable) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT,
                       "the report cannot be read, or has become shorter");
    }
    bool is_answer = code == CURLE_OK || it->is_too_long;
    if (!is_answer) {
        bool is_ours = code == CURLE_URL_MALFORMAT || code == CURLE_SSL_CACERT_BADFILE ||
                       code == CURLE_UNSUPPORTED_PROTOCOL;
        return bp_fail(error, is_ours ? BUGPACK_ERR_INVALID : BUGPACK_ERR_IO, "%s",
                       curl.describe(code));
    }
    bool is_success = it->answer->status >= 200 && it->answer->status < 300;
    return !is_success || it->sent_bytes >= it->total_bytes
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_IO,
                         "the server answered %ld before it had the whole report",
                         it->answer->status);
}

static bugpack_status perform(transfer *it, const char *url, bugpack_error *error) {
    bp_http_answer *answer = it->answer;
    curl_off_t uploaded = 0, retry_after = 0;
    long status = 0;
    *answer = (bp_http_answer){.status = 0};
    it->offset = it->answer_bytes = 0;
    it->body_bytes = 0;
    if (curl.set(it->handle, CURLOPT_URL, url) != CURLE_OK) {
        return bp_fail_memory(error, "send a report");
    }
    CURLcode code = curl.perform(it->handle);
    (void)curl.get(it->handle, CURLINFO_RESPONSE_CODE, &status);
    (void)curl.get(it->handle, CURLINFO_SIZE_UPLOAD_T, &uploaded);
    (void)curl.get(it->handle, CURLINFO_RETRY_AFTER, &retry_after); /* also of a date */
    answer->status = status;
    answer->retry_after_secs = bp_backoff_bound(retry_after > 0 ? (uint64_t)retry_after : 0);
    it->sent_bytes = (uint64_t)uploaded;
    return judge(it, code, error);
}

/* Where the answer says to send it instead, if that is the same server and the same method; NULL
 * otherwise. */
static const char *find_redirect(const transfer *it, const bp_url *from) {
    char *found = NULL;
    bp_url to;
    bool is_redirect = it->answer->status == 307 || it->answer->status == 308;
    if (!is_redirect || curl.get(it->handle, CURLINFO_REDIRECT_URL, &found) != CURLE_OK ||
        found == NULL || !bp_url_parse(found, &to)) {
        return NULL;
    }
    return bp_url_is_same_origin(from, &to) ? found : NULL;
}

bugpack_status bp_http_send(const bp_http_request *request, bp_http_answer *ret_answer,
                            bugpack_error *error) {
    transfer it = {.request = request,
                   .answer = ret_answer,
                   .total_bytes =
                       request->before_bytes + request->file_bytes + request->after_bytes};
    bp_url url;
    *ret_answer = (bp_http_answer){.status = 0};
    if (!bp_url_parse(request->url, &url)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the URL is malformed");
    }
    if (!load_all()) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                       "libcurl.so.4 cannot be loaded; Debian has it as libcurl4");
    }
    it.handle = curl.init();
    if (it.handle == NULL) {
        return bp_fail_memory(error, "send a report");
    }
    const char *to = request->url;
    bugpack_status status = prepare(&it, !url.is_https && bp_url_is_loopback(&url), error);
    for (unsigned i = 0; i <= redirect_max && to != NULL && status == BUGPACK_OK; i++) {
        status = perform(&it, to, error);
        to = find_redirect(&it, &url);
    }
    curl.free_all(it.headers);
    curl.cleanup(it.handle);
    return status;
}
