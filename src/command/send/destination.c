#include "send/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/machine.h"
#include "send/configuration.h"

enum { file_max_bytes = 1 << 20 };

/* Sentry takes 20 MB in one envelope, in which the event needs some room. */
static const uint64_t sentry_max_bytes = 20 * 1000 * 1000 - 64 * 1024;

/* --- values -------------------------------------------------------------------------------- */

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;

static const unit sizes[] = {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {NULL, 0}};
static const unit times[] = {{"", 1},     {"s", 1},     {"m", 60}, {"min", 60},
                             {"h", 3600}, {"d", 86400}, {NULL, 0}};
static const unit numbers[] = {{"", 1}, {NULL, 0}};

/* In the order of the enumerations; of a bool, false and true. */
static const char *const types[] = {"http", "sentry", "directory", NULL};
static const char *const consents[] = {"ask", "always", "never", NULL};
static const char *const methods[] = {"PUT", "POST", NULL};
static const char *const truths[] = {"false", "true", NULL};

/* A key and its value: a number of units into a uint64_t, one of some words, or a text. */
typedef struct field {
    const char *key; /* in lower case */
    size_t offset;
    const unit *units;
    const char *const *words;
    bool is_bool; /* of words; else they are those of an enumeration */
} field;

/* Digits, and the name of a unit. */
static bool read_amount(const char *text, const unit *units, uint64_t *ret_value) {
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0) {
        return false;
    }
    for (; units->name != NULL; units++) {
        if (strcmp(end, units->name) == 0 && number <= UINT64_MAX / units->factor) {
            *ret_value = number * units->factor;
            return true;
        }
    }
    return false;
}

static bool read_value(const field *row, const char *text, void *target) {
    if (row->units != NULL) {
        return read_amount(text, row->units, target);
    }
    if (row->words == NULL) {
        *(const char **)target = text;
        return text[0] != '\0';
    }
    for (unsigned i = 0; row->words[i] != NULL; i++) {
        if (strcmp(text, row->words[i]) == 0) {
            if (row->is_bool) {
                *(bool *)target = i == 1;
            } else {
                *(unsigned *)target = i;
            }
            return true;
        }
    }
    return false;
}

/* --- the file ------------------------------------------------------------------------------- */

#define OF_DESTINATION(member) offsetof(bp_send_destination, member)
static const field destination_fields[] = {
    {"url", OF_DESTINATION(url), NULL, NULL, false},
    {"type", OF_DESTINATION(type), NULL, types, false},
    {"method", OF_DESTINATION(is_post), NULL, methods, true},
    {"formfield", OF_DESTINATION(form_field), NULL, NULL, false},
    {"cacert", OF_DESTINATION(ca_cert), NULL, NULL, false},
    {"maxbytes", OF_DESTINATION(max_bytes), sizes, NULL, false},
    {"maxbytesperday", OF_DESTINATION(max_daily_bytes), sizes, NULL, false},
    {"consent", OF_DESTINATION(consent), NULL, consents, false},
    {"allowhttp", OF_DESTINATION(allows_http), NULL, truths, true},
    {NULL, 0, NULL, NULL, false}};

#define OF_SETTINGS(member) offsetof(bp_send_settings, member)
static const field queue_fields[] = {{"dir", OF_SETTINGS(queue_dir), NULL, NULL, false},
                                     {"maxcount", OF_SETTINGS(max_count), numbers, NULL, false},
                                     {"maxbytes", OF_SETTINGS(max_bytes), sizes, NULL, false},
                                     {"maxage", OF_SETTINGS(max_age_secs), times, NULL, false},
                                     {NULL, 0, NULL, NULL, false}};

typedef struct file_reader {
    bp_send_settings *settings;
    const char *path;
} file_reader;

static bugpack_status refuse_key(const file_reader *it, const bp_configuration_row *row,
                                 bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_INVALID, "%s:%u: there is no key \"%s\" in a section [%s]",
                   it->path, row->line, row->key, row->section);
}

static bugpack_status set(const file_reader *it, const field *fields, void *target,
                          const bp_configuration_row *row, bugpack_error *error) {
    for (; fields->key != NULL; fields++) {
        if (strcmp(fields->key, row->key) == 0) {
            const char *text = row->value != NULL ? row->value : "true";
            return read_value(fields, text, (char *)target + fields->offset)
                       ? BUGPACK_OK
                       : bp_fail(error, BUGPACK_ERR_INVALID,
                                 "%s:%u: the value of \"%s\" is invalid", it->path, row->line,
                                 row->key);
        }
    }
    return refuse_key(it, row, error);
}

/* Adds a header or a form field, whose name and value `separator` stands between. */
static bugpack_status add(const file_reader *it, const bp_configuration_row *row, char separator,
                          const char **texts, size_t *count, bugpack_error *error) {
    bool is_good = row->value != NULL && strchr(row->value, separator) != NULL &&
                   row->value[0] != separator && strpbrk(row->value, "\r\n") == NULL;
    if (!is_good || *count == BP_SEND_FIELD_MAX) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "%s:%u: %s takes \"name%cvalue\", and may be given %d times", it->path,
                       row->line, row->key, separator, BP_SEND_FIELD_MAX);
    }
    texts[(*count)++] = row->value;
    return BUGPACK_OK;
}

/* It becomes the name of a directory. */
static bool is_name(const char *text) {
    static const char characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(text);
    return length > 0 && length < BP_SEND_NAME_BYTES && text[0] != '.' &&
           strspn(text, characters) == length;
}

static bugpack_status find_or_add(const file_reader *it, const bp_configuration_row *row,
                                  bp_send_destination **ret_destination, bugpack_error *error) {
    bp_send_settings *settings = it->settings;
    const bp_send_destination *found = bp_send_settings_find(settings, row->subsection);
    if (found != NULL) {
        *ret_destination = &settings->destinations[found - settings->destinations];
        return BUGPACK_OK;
    }
    if (!is_name(row->subsection) || settings->count == BP_SEND_DESTINATION_MAX) {
        return bp_fail(
            error, BUGPACK_ERR_INVALID,
            "%s:%u: a destination has a name of letters, digits, \".\", \"_\" and \"-\", "
            "and there are at most %d",
            it->path, row->line, BP_SEND_DESTINATION_MAX);
    }
    bp_send_destination *added = &settings->destinations[settings->count++];
    *added = (bp_send_destination)BP_SEND_DESTINATION_INIT;
    added->name = row->subsection;
    *ret_destination = added;
    return BUGPACK_OK;
}

/* A bp_configuration_taker. */
static bugpack_status take(void *context, const bp_configuration_row *row, bugpack_error *error) {
    const file_reader *it = context;
    bp_send_destination *found = NULL;
    if (strcmp(row->section, "queue") == 0) {
        return set(it, queue_fields, it->settings, row, error);
    }
    if (strcmp(row->section, "destination") != 0) {
        return refuse_key(it, row, error);
    }
    bugpack_status status = find_or_add(it, row, &found, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (strcmp(row->key, "header") == 0) {
        return add(it, row, ':', found->headers, &found->header_count, error);
    }
    if (strcmp(row->key, "field") == 0) {
        return add(it, row, '=', found->fields, &found->field_count, error);
    }
    found->has_type = found->has_type || strcmp(row->key, "type") == 0;
    return set(it, destination_fields, found, row, error);
}

/* Others could read a token, or send reports elsewhere. */
static bugpack_status check_mode(int fd, const char *path, bugpack_error *error) {
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return bp_fail_errno(error, errno, "cannot read \"%s\"", path);
    }
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        return bp_fail(error, BUGPACK_ERR_DENIED, "\"%s\" belongs to another user", path);
    }
    return (info.st_mode & 077) == 0
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_DENIED,
                         "\"%s\" can be read or written by others: chmod 600 it", path);
}

static bugpack_status read_file(const char *path, char **ret_text, bugpack_error *error) {
    bp_buffer text;
    int fd = -1;
    bp_buffer_init(&text, file_max_bytes);
    bugpack_status status = bp_file_open_regular(AT_FDCWD, path, &fd, error);
    if (status == BUGPACK_OK) {
        status = check_mode(fd, path, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_file_read_fd(fd, path, &text, error);
    }
    bp_file_close(fd);
    if (status == BUGPACK_OK && memchr(bp_buffer_text(&text), '\0', text.size) != NULL) {
        status = bp_fail(error, BUGPACK_ERR_INVALID, "\"%s\" is no text", path);
    }
    if (status == BUGPACK_OK && (*ret_text = strdup(bp_buffer_text(&text))) == NULL) {
        status = bp_fail_memory(error, "read the configuration");
    }
    bp_buffer_release(&text);
    return status;
}

/* $VARIABLE/bugpack/NAME, or, without the variable, below the home directory. */
static void join(const char *variable, const char *otherwise, const char *name,
                 char out[PATH_MAX]) {
    const char *base = bp_machine_environment(variable);
    const char *home = bp_machine_environment("HOME");
    if (base != NULL && base[0] == '/') {
        (void)snprintf(out, PATH_MAX, "%s/bugpack/%s", base, name);
    } else {
        (void)snprintf(out, PATH_MAX, "%s/%s/bugpack/%s", home != NULL ? home : "", otherwise,
                       name);
    }
}

static void find_path(const char *given, char out[PATH_MAX]) {
    static const char system_wide[] = "/etc/bugpack/send.conf";
    join("XDG_CONFIG_HOME", ".config", "send.conf", out);
    if (given != NULL) {
        (void)snprintf(out, PATH_MAX, "%s", given);
    } else if (access(out, F_OK) != 0) {
        (void)snprintf(out, PATH_MAX, "%s", access(system_wide, F_OK) == 0 ? system_wide : "");
    }
}

bugpack_status bp_send_settings_read(const char *path, bp_send_settings *settings,
                                     bugpack_error *error) {
    *settings = (bp_send_settings){
        .max_count = 1000, .max_bytes = (uint64_t)1 << 30, .max_age_secs = 7 * 86400};
    join("XDG_STATE_HOME", ".local/state", "queue", settings->queue_room);
    settings->queue_dir = settings->queue_room;
    find_path(path, settings->path);
    if (settings->path[0] == '\0') {
        return BUGPACK_OK;
    }
    settings->destinations = calloc(BP_SEND_DESTINATION_MAX, sizeof *settings->destinations);
    if (settings->destinations == NULL) {
        return bp_fail_memory(error, "read the configuration");
    }
    file_reader it = {settings, settings->path};
    bugpack_status status = read_file(settings->path, &settings->text, error);
    if (status == BUGPACK_OK) {
        status = bp_configuration_read(settings->text, settings->path, take, &it, error);
    }
    for (size_t i = 0; i < settings->count && status == BUGPACK_OK; i++) {
        char what[BP_SEND_NAME_BYTES + 32];
        (void)snprintf(what, sizeof what, "destination \"%s\"", settings->destinations[i].name);
        status = bp_send_destination_check(&settings->destinations[i], what, error);
    }
    return status;
}

void bp_send_settings_release(bp_send_settings *settings) {
    free(settings->text);
    free(settings->destinations);
    *settings = (bp_send_settings){.text = NULL};
}

const bp_send_destination *bp_send_settings_find(const bp_send_settings *settings,
                                                 const char *name) {
    for (size_t i = 0; i < settings->count; i++) {
        if (strcmp(settings->destinations[i].name, name) == 0) {
            return &settings->destinations[i];
        }
    }
    return NULL;
}

bugpack_status bp_send_settings_choose(const bp_send_settings *settings, const char *name,
                                       bool is_queued, const bp_send_destination **ret_destination,
                                       bugpack_error *error) {
    const bp_send_destination *found = bp_send_settings_find(settings, name);
    if (found == NULL) {
        return settings->path[0] == '\0'
                   ? bp_fail(error, BUGPACK_ERR_INVALID,
                             "there is no destination \"%s\": there is no configuration; a "
                             "directory is named with a /, as ./%s",
                             name, name)
                   : bp_fail(error, BUGPACK_ERR_INVALID, "%s has no destination \"%s\"",
                             settings->path, name);
    }
    if (is_queued && !bp_send_destination_takes_many(found)) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "destination \"%s\": a PUT to one URL replaces the report before: end its "
                       "path with /",
                       name);
    }
    *ret_destination = found;
    return BUGPACK_OK;
}

/* --- a destination -------------------------------------------------------------------------- */

static bugpack_status check_url(bp_send_destination *destination, const char *what,
                                bugpack_error *error) {
    bp_url url;
    if (!bp_url_parse(destination->url, &url)) {
        return bp_fail(
            error, BUGPACK_ERR_INVALID,
            "%s: its URL is neither https nor http, or has characters that must be escaped", what);
    }
    if (!url.is_https && !destination->allows_http && !bp_url_is_loopback(&url)) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "%s: http shows the report to the network; use https, or allowHttp", what);
    }
    if (destination->type == BP_SEND_SENTRY && (url.user.bytes == 0 || url.path.bytes < 2)) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "%s: the URL of Sentry is a DSN, https://KEY@HOST/PROJECT", what);
    }
    return BUGPACK_OK;
}

bugpack_status bp_send_destination_check(bp_send_destination *destination, const char *what,
                                         bugpack_error *error) {
    if (destination->url == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "%s has no url", what);
    }
    bool is_url = bp_url_has_scheme(destination->url);
    if (!destination->has_type) {
        destination->type = is_url ? BP_SEND_HTTP : BP_SEND_DIRECTORY;
    }
    destination->is_post = destination->is_post || destination->form_field != NULL;
    bool has_limit = destination->max_bytes > 0 && destination->max_bytes < sentry_max_bytes;
    if (destination->type == BP_SEND_SENTRY && !has_limit) {
        destination->max_bytes = sentry_max_bytes;
    }
    if (destination->type == BP_SEND_DIRECTORY) {
        return is_url ? bp_fail(error, BUGPACK_ERR_INVALID, "%s: a directory is a path", what)
                      : BUGPACK_OK;
    }
    return check_url(destination, what, error);
}

/* A URL that ends with "/" gets the report's name, as with curl -T. */
bool bp_send_destination_takes_many(const bp_send_destination *destination) {
    bp_url url;
    if (destination->type != BP_SEND_HTTP || destination->is_post) {
        return true;
    }
    return bp_url_parse(destination->url, &url) && url.path.bytes > 0 &&
           url.path.at[url.path.bytes - 1] == '/';
}

void bp_send_destination_show(const bp_send_destination *destination,
                              char out[BP_SEND_SHOWN_BYTES]) {
    bp_url url;
    if (destination->type != BP_SEND_DIRECTORY && bp_url_parse(destination->url, &url)) {
        bp_url_show(&url, out, BP_SEND_SHOWN_BYTES);
    } else {
        (void)snprintf(out, BP_SEND_SHOWN_BYTES, "%s", destination->url);
    }
}
