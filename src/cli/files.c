#include "cli/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <bugpack/provide.h>

#include "base/utf8.h"
#include "cli/output.h"

/*
 * How much of a file's own name is used: with a folder before it and a number after it, it stays
 * under the 200 bytes that the name of an entry may have. A longer extension is not one.
 */
enum { own_name_max = 160, extension_max = 16 };

/* The largest session file; it is held in memory as a whole. */
static const uint64_t session_limit_bytes = (uint64_t)64 << 20;

/* Where the extension of an entry's name begins: its last dot, or its end. */
static size_t extension_at(const char *name) {
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    const char *dot = strrchr(base, '.');
    size_t end = strlen(name);
    bool has_extension = dot != NULL && dot != base && end - (size_t)(dot - name) <= extension_max;
    return has_extension ? (size_t)(dot - name) : end;
}

/* Cuts the middle out, so that the extension stays, without splitting a character. */
static void shorten(char *name) {
    size_t length = strlen(name);
    size_t extension = extension_at(name);
    if (length > own_name_max) {
        size_t cut = bp_utf8_cut(name, extension, own_name_max - (length - extension));
        memmove(name + cut, name + extension, length - extension + 1);
    }
}

/* A name that every entry may have, made of a path's last component; NULL without memory. */
static char *own_name_new(const char *path) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    char *name = strndup(path, end);
    if (name == NULL) {
        return NULL;
    }
    const char *slash = strrchr(name, '/');
    size_t used = 0;
    for (const char *at = slash != NULL && slash[1] != '\0' ? slash + 1 : name; *at != '\0';) {
        bool is_safe;
        size_t length = bp_cli_next_character(at, &is_safe);
        bool is_allowed = is_safe && strchr("\\:/", *at) == NULL;
        if (is_allowed) {
            memmove(name + used, at, length);
        } else {
            name[used] = '_';
        }
        used += is_allowed ? length : 1;
        at += length;
    }
    name[used] = '\0';
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        name[0] = '_';
        name[1] = '\0';
    }
    shorten(name);
    return name;
}

static bool is_taken(const bp_cli_inputs *inputs, const char *name) {
    for (size_t i = 0; i < inputs->count; i++) {
        if (strcasecmp(inputs->items[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* `plain`, with a number before the extension when that name is taken. NULL without memory. */
static char *free_name_new(const bp_cli_inputs *inputs, const char *plain) {
    int stem = (int)extension_at(plain);
    char *name = strdup(plain);
    for (size_t number = 2; name != NULL && is_taken(inputs, name); number++) {
        free(name);
        if (asprintf(&name, "%.*s-%zu%s", stem, plain, number, plain + stem) < 0) {
            name = NULL;
        }
    }
    return name;
}

/* Adds `path` as the entry `plain`, which is freed; NULL is no memory. */
static bool add_input(bp_cli_inputs *inputs, const char *path, char *plain) {
    char *name = plain != NULL ? free_name_new(inputs, plain) : NULL;
    free(plain);
    bp_cli_input *items = realloc(inputs->items, (inputs->count + 1) * sizeof *items);
    if (items != NULL) {
        inputs->items = items;
    }
    if (items == NULL || name == NULL) {
        free(name);
        bp_cli_say("cannot read the command line: out of memory");
        errno = ENOMEM;
        return false;
    }
    items[inputs->count++] = (bp_cli_input){path, name};
    return true;
}

bool bp_cli_read_log(const bp_cli_option *option, const char *text, void *field) {
    const char *path;
    if (!bp_cli_read_text(option, text, &path)) {
        return false;
    }
    char *name = NULL;
    char *own_name = own_name_new(path);
    if (own_name == NULL || asprintf(&name, "logs/%s", own_name) < 0) {
        name = NULL;
    }
    free(own_name);
    return add_input(field, path, name);
}

/*
 * An attachment is not checked, and these two entries must be JSON. The library reserves the other
 * names.
 */
static bool is_json_of_the_host(const char *entry) {
    return strcasecmp(entry, "session.json") == 0 || strcasecmp(entry, "channel-state.json") == 0;
}

bool bp_cli_read_attachment(const bp_cli_option *option, const char *text, void *field) {
    bp_cli_inputs *attachments = field;
    const char *equals = strchr(text, '=');
    const char *path;
    if (!bp_cli_read_text(option, equals != NULL ? equals + 1 : text, &path) ||
        !add_input(attachments, path,
                   equals != NULL ? strndup(text, (size_t)(equals - text)) : own_name_new(path))) {
        return false;
    }
    const char *entry = attachments->items[attachments->count - 1].name;
    if (is_json_of_the_host(entry)) {
        bp_cli_say_usage("the entry name '%s' is reserved: use --session, or "
                         "--attach NAME=FILE with another name",
                         entry);
        return false;
    }
    return true;
}

static void release_inputs(bp_cli_inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->items[i].name);
    }
    free(inputs->items);
}

const char *bp_cli_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

void bp_cli_files_release(bp_cli_files *files) {
    bp_cli_redaction_release(&files->redaction);
    release_inputs(&files->logs);
    release_inputs(&files->attachments);
}

bugpack_status bp_cli_files_check_session(const bp_cli_files *files) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (files->session_path == NULL) {
        return BUGPACK_OK;
    }
    bugpack_status status =
        bugpack_check_json_file(files->session_path, session_limit_bytes, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
    }
    return status;
}

static bugpack_status provide_file(bugpack *session, const bp_cli_input *input,
                                   bugpack_file_kind kind, uint64_t limit_bytes) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bugpack_provide_file(session, input->name, input->path, kind, limit_bytes, &error);
    if (status == BUGPACK_ERR_INVALID) {
        bp_cli_say_usage("%s", error.message);
    } else if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
    }
    return status;
}

bugpack_status bp_cli_files_provide(const bp_cli_files *files, bugpack *session) {
    char session_name[] = "session.json";
    bp_cli_input session_file = {files->session_path, session_name};
    const struct {
        const bp_cli_input *items;
        size_t count;
        bugpack_file_kind kind;
        uint64_t limit_bytes;
    } groups[] = {
        {&session_file, files->session_path != NULL, BUGPACK_FILE_JSON, session_limit_bytes},
        {files->logs.items, files->logs.count, BUGPACK_FILE_LOG_TAIL, files->log_limit_bytes},
        {files->attachments.items, files->attachments.count, BUGPACK_FILE_WHOLE,
         files->attach_limit_bytes}};
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (size_t j = 0; j < groups[i].count && status == BUGPACK_OK; j++) {
            status =
                provide_file(session, &groups[i].items[j], groups[i].kind, groups[i].limit_bytes);
        }
    }
    return status;
}
