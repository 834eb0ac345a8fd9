#include "cli/files.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/status.h"
#include "base/utf8.h"
#include "cli/expand.h"
#include "cli/output.h"
#include "cli/words.h"
#include "model/entry.h"
#include "report/provider.h"
#include "run/aside.h"
#include "session/command.h"

/*
 * How much of a file's own name is used: with a folder before it and a number after it, it stays
 * under the 200 bytes that the name of an entry may have. A longer extension is not one.
 */
enum { own_name_max = 160, extension_max = 16 };

/* How long an entry may take: a slow disk needs this long for a large file. */
static const uint32_t file_timeout_ms = 30000;

/* The largest session file; it is held in memory as a whole. */
static const size_t session_limit_bytes = (size_t)64 << 20;

const bp_cli_bounds bp_cli_input_timeouts = {"seconds", 1, 600, 1000};

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

/* Adds `source` as the entry `plain`, which is freed; NULL is no memory. */
static bool add_input(bp_cli_inputs *inputs, const char *source, bool is_journal, char *plain) {
    char *name = plain != NULL ? free_name_new(inputs, plain) : NULL;
    char *copy = strdup(source);
    free(plain);
    bp_cli_input *items = realloc(inputs->items, (inputs->count + 1) * sizeof *items);
    if (items != NULL) {
        inputs->items = items;
    }
    if (items == NULL || name == NULL || copy == NULL) {
        free(name);
        free(copy);
        return bp_cli_say_no_memory();
    }
    items[inputs->count++] = (bp_cli_input){.source = copy, .name = name, .is_journal = is_journal};
    return true;
}

/* `before`, a path's own name and `after` in one; NULL without memory. */
static char *entry_name_new(const char *before, const char *path, const char *after) {
    char *name = NULL;
    char *own_name = own_name_new(strcmp(path, "-") == 0 ? "stdin.log" : path);
    if (own_name == NULL || asprintf(&name, "%s%s%s", before, own_name, after) < 0) {
        name = NULL;
    }
    free(own_name);
    return name;
}

/* The same of a file. */
static bool add_file(bp_cli_inputs *inputs, const bp_cli_found *file, char *plain) {
    if (!add_input(inputs, file->path, false, plain)) {
        return false;
    }
    bp_cli_input *added = &inputs->items[inputs->count - 1];
    added->found_bytes = file->found_bytes;
    added->is_stream = file->is_stream;
    return true;
}

/* A bp_cli_take_found whose context is the inputs. */
static bool add_log(void *inputs, const bp_cli_found *file) {
    return add_file(inputs, file, entry_name_new("logs/", file->path, ""));
}

bool bp_cli_read_log(const bp_cli_option *option, const char *text, void *field) {
    const char *path;
    return bp_cli_read_text(option, text, &path) && bp_cli_expand(path, false, add_log, field);
}

bool bp_cli_read_without(const bp_cli_option *option, const char *text, void *field) {
    char out[BP_ENTRY_MISTAKE_BYTES];
    const char *mistake = bp_entry_refuse_list(text, out);
    if (mistake != NULL) {
        bp_cli_say_usage("--%s: %s", option->name, mistake);
        return false;
    }
    return bp_cli_read_text(option, text, field);
}

bool bp_cli_read_journal(const bp_cli_option *option, const char *text, void *field) {
    const char *unit;
    return bp_cli_read_text(option, text, &unit) &&
           add_input(field, unit, true, entry_name_new("logs/journal-", unit, ".log"));
}

bool bp_cli_read_command(const bp_cli_option *option, const char *text, void *field) {
    const char *command;
    if (!bp_cli_read_text(option, text, &command)) {
        return false;
    }
    const char *word = command + strspn(command, " \t\n\"'");
    size_t length = strcspn(word, " \t\n\"'|&;<>()");
    char *program = length > 0 ? strndup(word, length) : strdup("command");
    char *name = program != NULL ? entry_name_new("commands/", program, ".txt") : NULL;
    free(program);
    return add_input(field, command, false, name);
}

/* An attachment, or the files of a directory or a pattern, while they are added. */
typedef struct attaching {
    bp_cli_inputs *inputs;
    const char *source;
    char *name; /* NULL: none was given */
} attaching;

/* The name of a file below a directory: each component made harmless, as a whole not too long. */
static char *joined_name_new(const char *directory, const char *relative) {
    char *name = strdup(directory);
    while (name != NULL && *relative != '\0') {
        size_t length = strcspn(relative, "/");
        char *component = strndup(relative, length);
        char *above = name;
        name = NULL;
        if (component != NULL && asprintf(&name, "%s/", above) >= 0) {
            free(above);
            above = name;
            name = entry_name_new(above, component, "");
        }
        free(above);
        free(component);
        relative += length + (relative[length] == '/');
    }
    if (name != NULL) {
        shorten(name);
        for (size_t end = strlen(name); end > 1 && name[end - 1] == '/';) {
            name[--end] = '\0';
        }
    }
    return name;
}

/* A bp_cli_take_found. */
static bool add_attachment(void *context, const bp_cli_found *file) {
    attaching *all = context;
    const char *path = file->path, *relative = file->relative;
    bool is_one = relative == NULL && strcmp(path, all->source) == 0;
    char *name = NULL;
    if (is_one) {
        name = all->name != NULL ? strdup(all->name) : entry_name_new("", path, "");
    } else if (relative == NULL) {
        name = all->name != NULL ? joined_name_new(all->name, bp_file_base_name(path))
                                 : entry_name_new("", path, "");
    } else {
        char *directory = all->name != NULL ? strdup(all->name) : own_name_new(all->source);
        name = directory != NULL ? joined_name_new(directory, relative) : NULL;
        free(directory);
    }
    if (!add_file(all->inputs, file, name)) {
        return false;
    }
    const char *entry = all->inputs->items[all->inputs->count - 1].name;
    /* An attachment is not checked, and these two must be JSON. The library reserves other names.
     */
    if (strcasecmp(entry, "session.json") == 0 || strcasecmp(entry, "channel-state.json") == 0) {
        bp_cli_say_usage("the entry name '%s' is reserved: use --session, or "
                         "--attach NAME=FILE with another name",
                         entry);
        return false;
    }
    return true;
}

bool bp_cli_read_attachment(const bp_cli_option *option, const char *text, void *field) {
    const char *equals = strchr(text, '=');
    attaching all = {.inputs = field};
    if (!bp_cli_read_text(option, equals != NULL ? equals + 1 : text, &all.source)) {
        return false;
    }
    if (equals != NULL && (all.name = strndup(text, (size_t)(equals - text))) == NULL) {
        return bp_cli_say_no_memory();
    }
    bool is_good = bp_cli_expand(all.source, true, add_attachment, &all);
    free(all.name);
    return is_good;
}

/* How the inputs of a group are read: as files, unless they are no files. */
typedef struct input_group {
    const bp_cli_inputs *inputs;
    bugpack_file_kind file_kind;
    bp_cli_stream_kind stream_kind;
    uint64_t limit_bytes;
} input_group;

static bugpack_status provide_input(bugpack_session *session, const input_group *group,
                                    bp_cli_input *input, uint32_t timeout_ms,
                                    bugpack_error *error) {
    bp_cli_stream *stream = &input->stream;
    *stream =
        (bp_cli_stream){.kind = input->is_journal ? BP_CLI_STREAM_JOURNAL : group->stream_kind,
                        .source = input->source,
                        .is_found = input->found_bytes > 0,
                        .limit_bytes = group->limit_bytes,
                        .timeout_ms = timeout_ms};
    if (stream->kind != BP_CLI_STREAM_LOG && stream->kind != BP_CLI_STREAM_WHOLE) {
        return bugpack_provide(session, input->name, BUGPACK_PROVIDE_TEXT, bp_cli_stream_provide,
                               stream, error);
    }
    if (timeout_ms > 0 && input->is_stream) {
        return bugpack_provide(session, input->name, BUGPACK_PROVIDE_BYTES, bp_cli_stream_provide,
                               stream, error);
    }
    const bp_file_plan plan = {.name = input->name,
                               .path = input->source,
                               .found_bytes = input->found_bytes,
                               .kind = group->file_kind,
                               .limit_bytes = group->limit_bytes,
                               .run_aside = bp_run_aside,
                               .stall_ms = timeout_ms > 0 ? timeout_ms : BP_RUN_STALL_MS};
    return bp_session_provide_file(session, &plan, error);
}

bugpack_status bp_cli_files_provide(const bp_cli_files *files, bugpack_session *session) {
    char session_name[] = "session.json";
    bp_cli_input session_file = {.source = (char *)(uintptr_t)files->session_path,
                                 .name = session_name};
    const bp_cli_inputs session_files = {&session_file, files->session_path != NULL};
    const input_group groups[] = {
        {&session_files, BUGPACK_FILE_JSON, BP_CLI_STREAM_WHOLE, session_limit_bytes},
        {&files->logs, BUGPACK_FILE_LOG_TAIL, BP_CLI_STREAM_LOG, files->log_limit_bytes},
        {&files->attachments, BUGPACK_FILE_WHOLE, BP_CLI_STREAM_WHOLE, files->attach_limit_bytes},
        {&files->commands, BUGPACK_FILE_WHOLE,
         files->uses_shell ? BP_CLI_STREAM_SHELL : BP_CLI_STREAM_COMMAND, files->log_limit_bytes}};
    bugpack_error error = BUGPACK_ERROR_INIT;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (size_t j = 0; j < groups[i].inputs->count; j++) {
            bugpack_status status = provide_input(session, &groups[i], &groups[i].inputs->items[j],
                                                  files->input_timeout_ms, &error);
            if (status != BUGPACK_OK) {
                if (status == BUGPACK_ERR_INVALID) {
                    bp_cli_say_usage("%s", error.message);
                } else {
                    bp_cli_say("%s", error.message);
                }
                return status;
            }
        }
    }
    return BUGPACK_OK;
}

static size_t count_standard_input(const bp_cli_inputs *inputs) {
    size_t count = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        count += strcmp(inputs->items[i].source, "-") == 0 && !inputs->items[i].is_journal;
    }
    return count;
}

void bp_cli_files_apply(const bp_cli_files *files, bugpack_options *options) {
    options->limits.provider_timeout_ms = file_timeout_ms + files->input_timeout_ms;
    options->calibrator_path = BP_CLI_OWN_PATH;
    options->limits.max_zip_bytes = files->max_zip_bytes;
    options->without_entries = files->without;
    options->with_hostname = files->with_hostname;
    bp_cli_redaction_apply(&files->redaction, options);
}

/* In a child: the file may be of a server that does not answer. */
static void check_json(const void *path, void *ret_error, int out_fd) {
    bugpack_error *error = ret_error;
    (void)out_fd;
    error->status = bp_provider_check_json(path, session_limit_bytes, error);
}

static bugpack_status check_session(const char *path, bugpack_error *ret_error) {
    bp_child child = {.pid = 0};
    const bp_aside aside = {.work = check_json,
                            .context = path,
                            .answer_bytes = sizeof *ret_error,
                            .stall_ms = BP_RUN_STALL_MS};
    bugpack_status status = bp_run_aside(&aside, NULL, NULL, ret_error, &child);
    if (status == BUGPACK_ERR_UNSUPPORTED) {
        return bp_provider_check_json(path, session_limit_bytes, ret_error);
    }
    return status == BUGPACK_OK
               ? ret_error->status
               : bp_fail(ret_error, status, "cannot read \"%s\": %s", path,
                         status == BUGPACK_ERR_TIMEOUT ? "its file system does not answer"
                                                       : bugpack_status_name(status));
}

bool bp_cli_files_check(const bp_cli_files *files, bp_cli_exit *ret_exit) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    const char *reason;
    for (size_t i = 0; i < files->commands.count && !files->uses_shell; i++) {
        char **words = bp_cli_words(files->commands.items[i].source, &reason);
        free(words);
        if (words == NULL) {
            *ret_exit =
                bp_cli_say_usage("--command '%s': %s", files->commands.items[i].source, reason);
            return false;
        }
    }
    if (count_standard_input(&files->logs) + count_standard_input(&files->attachments) > 1) {
        *ret_exit = bp_cli_say_usage("standard input can be read only once");
        return false;
    }
    *ret_exit = BP_CLI_FAILED;
    if (files->session_path != NULL && check_session(files->session_path, &error) != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return false;
    }
    return true;
}
