/*
 * Where reports are sent: what a section of the configuration file says, or a URL or directory that
 * was named on the command line.
 */
#ifndef BP_SEND_DESTINATION_H
#define BP_SEND_DESTINATION_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "send/url.h"

typedef enum bp_send_type { BP_SEND_HTTP, BP_SEND_SENTRY, BP_SEND_DIRECTORY } bp_send_type;

typedef enum bp_send_consent { BP_SEND_ASK, BP_SEND_ALWAYS, BP_SEND_NEVER } bp_send_consent;

enum {
    BP_SEND_NAME_BYTES = 65,
    BP_SEND_DESTINATION_MAX = 64,
    BP_SEND_FIELD_MAX = 32,
    BP_SEND_SHOWN_BYTES = 1024
};

/* Start from BP_SEND_DESTINATION_INIT. Texts are borrowed. */
typedef struct bp_send_destination {
    const char *name; /* NULL: it has none */
    const char *url;  /* or the path of a directory */
    bp_send_type type;
    bp_send_consent consent;
    bool is_post, allows_http;
    bool has_type;                          /* it was said */
    const char *form_field;                 /* the report's in a multipart form; NULL: no form */
    const char *headers[BP_SEND_FIELD_MAX]; /* "Name: value" */
    const char *fields[BP_SEND_FIELD_MAX];  /* "name=value", before the report's */
    size_t header_count, field_count;
    const char *ca_cert;      /* a file; NULL: the system's */
    uint64_t max_bytes;       /* of a report; 0: no limit */
    uint64_t max_daily_bytes; /* 0: no limit */
} bp_send_destination;

#define BP_SEND_DESTINATION_INIT                                                                   \
    { .consent = BP_SEND_ASK }

/* A whole configuration. */
typedef struct bp_send_settings {
    char *text; /* of the file; has all that is borrowed */
    bp_send_destination *destinations;
    size_t count;
    const char *queue_dir;
    uint64_t max_count, max_bytes, max_age_secs;
    char path[PATH_MAX]; /* of the file; "": there is none */
    char queue_room[PATH_MAX];
} bp_send_settings;

/*
 * Reads the file `path`, or for NULL the one in its place, which has to be a regular one of this
 * user or of root that nobody else can read (DENIED with what to do). Without a file there are the
 * defaults alone. INVALID with the line of what is wrong; IO. Do not move what was read; release it
 * also after a failure.
 */
bugpack_status bp_send_settings_read(const char *path, bp_send_settings *settings,
                                     bugpack_error *error);
void bp_send_settings_release(bp_send_settings *settings);

/* The destination of that name, or NULL. */
const bp_send_destination *bp_send_settings_find(const bp_send_settings *settings,
                                                 const char *name);
/* INVALID where there is none, or with `is_queued` one that the queue cannot send to. */
bugpack_status bp_send_settings_choose(const bp_send_settings *settings, const char *name,
                                       bool is_queued, const bp_send_destination **ret_destination,
                                       bugpack_error *error);

/*
 * Checks a destination whose members are set, and completes it: INVALID for what cannot be, such as
 * http to another machine. `what` is how a sentence begins.
 */
bugpack_status bp_send_destination_check(bp_send_destination *destination, const char *what,
                                         bugpack_error *error);

/* True if each report gets a place of its own there: a PUT to one URL replaces the last. */
bool bp_send_destination_takes_many(const bp_send_destination *destination);

/* The URL or path, without a signature, a password or a key: it may be shown. */
void bp_send_destination_show(const bp_send_destination *destination,
                              char out[BP_SEND_SHOWN_BYTES]);

#endif
