#include "cli/option_text.h"

#include <string.h>
#include <strings.h>

#include "cli/message.h"
#include "cli/option.h"

enum { app_name_max = 64, description_max = 64 * 1024 };

bool bp_cli_option_text(const char *command, const char *option, const char *text,
                        const char **ret_text) {
    if (text[0] == '\0') {
        bp_cli_say_usage(command, "%s takes a value that is not empty", option);
        return false;
    }
    *ret_text = text;
    return true;
}

static bool read_bounded_text(const char *command, const char *option, const char *text,
                              size_t most_bytes, const char **ret_text) {
    if (strlen(text) > most_bytes) {
        bp_cli_say_usage(command, "%s takes at most %zu bytes", option, most_bytes);
        return false;
    }
    return bp_cli_option_text(command, option, text, ret_text);
}

bool bp_cli_option_app(const char *command, const char *text, const char **ret_name) {
    return read_bounded_text(command, "--app", text, app_name_max, ret_name);
}

bool bp_cli_option_description(const char *command, const char *text, const char **ret_text) {
    return read_bounded_text(command, "--description", text, description_max, ret_text);
}

bool bp_cli_option_limit(const char *command, const char *option, const char *text,
                         uint64_t *ret_bytes) {
    if (!bp_cli_option_size(text, ret_bytes)) {
        bp_cli_say_usage(command, "%s takes bytes from 1, or with K, M or G behind, not '%s'",
                         option, text);
        return false;
    }
    return true;
}

static bool add_input(bp_cli_inputs *inputs, bugpack_file_kind kind, const char *folder,
                      const char *name, size_t name_bytes, const char *path) {
    if (!bp_cli_inputs_add(inputs, kind, folder, name, name_bytes, path)) {
        bp_cli_say("cannot read the command line: out of memory");
        return false;
    }
    return true;
}

bool bp_cli_option_log(const char *command, const char *text, bp_cli_inputs *logs) {
    const char *path;
    return bp_cli_option_text(command, "--log", text, &path) &&
           add_input(logs, BUGPACK_FILE_LOG_TAIL, "logs/", NULL, 0, path);
}

/*
 * These two entries are JSON by their name, which nobody checks in an attachment. The library
 * reserves the others.
 */
static bool is_json_of_the_host(const char *entry) {
    return strcasecmp(entry, "session.json") == 0 || strcasecmp(entry, "channel-state.json") == 0;
}

bool bp_cli_option_attachment(const char *command, const char *text, bp_cli_inputs *attachments) {
    const char *equals = strchr(text, '=');
    const char *path;
    if (!bp_cli_option_text(command, "--attach", equals != NULL ? equals + 1 : text, &path)) {
        return false;
    }
    if (!add_input(attachments, BUGPACK_FILE_WHOLE, "", equals != NULL ? text : NULL,
                   equals != NULL ? (size_t)(equals - text) : 0, path)) {
        return false;
    }
    const char *entry = attachments->items[attachments->count - 1].name;
    if (is_json_of_the_host(entry)) {
        bp_cli_say_usage(command,
                         "the entry name '%s' is reserved: use --session, or "
                         "--attach NAME=FILE with another name",
                         entry);
        return false;
    }
    return true;
}
