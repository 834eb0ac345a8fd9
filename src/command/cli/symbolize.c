#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/destination.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/rewrite.h"
#include "entries/symbolize.h"
#include "platform/linux/files.h"
#include "process/debug_file.h"
#include "run/aside.h"
#include "stacks/stacks.h"

enum { path_bytes = 4096 };
/* A server is given up if a file is not whole after this time. libdebuginfod gives up one that
 * sends next to nothing for 15 s. */
static const uint32_t server_max_ms = 600000;
static const char server_stall_secs[] = "15";
/* The time for all debug files, which may be large. */
static const uint64_t lookup_max_ns = 1200 * BP_NS_PER_SEC;

typedef struct symbolize_options {
    const char *output_path, *debug_dir, *server;
    bool as_json;
    bp_child fetcher;
    bool is_server_down; /* it is not asked again */
} symbolize_options;

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(symbolize_options, debug_dir, 0, "debug-dir", "DIR",
                 "seek debug files here, by build id or by the file's name", bp_cli_read_text,
                 &bp_cli_some_text),
    BP_CLI_VALUE(symbolize_options, server, 0, "debuginfod", "URL",
                 "ask this server for what is not there", bp_cli_read_text, &bp_cli_some_text),
    BP_CLI_OUTPUT_OPTION(symbolize_options, output_path, 'o'),
    BP_CLI_FLAG(symbolize_options, as_json, 0, "json", "print JSON"), BP_CLI_OPTIONS_END};

/* As in debuginfod.h, which need not be installed. */
typedef struct debuginfod_client debuginfod_client;

typedef struct server_request {
    const char *url, *build_id;
} server_request;

static bool load(void *library, const char *name, void *function) {
    void *found = library != NULL ? dlsym(library, name) : NULL;
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* In a child. The answer is the path of a file in libdebuginfod's cache, or a reason that begins
 * with a space, or "". */
static void ask_server(const void *context, void *answer, int out_fd) {
    const server_request *request = context;
    void *library = dlopen("libdebuginfod.so.1", RTLD_NOW);
    debuginfod_client *(*begin)(void);
    int (*find)(debuginfod_client *, const unsigned char *, int, char **);
    char *path = NULL, *out = answer;
    (void)out_fd;
    if (!load(library, "debuginfod_begin", &begin) ||
        !load(library, "debuginfod_find_debuginfo", &find)) {
        (void)snprintf(out, path_bytes, " libdebuginfod.so.1 cannot be loaded");
        return;
    }
    (void)setenv("DEBUGINFOD_URLS", request->url, 1);
    (void)setenv("DEBUGINFOD_TIMEOUT", server_stall_secs, 1);
    (void)setenv("DEBUGINFOD_RETRY_LIMIT", "0", 1);
    (void)unsetenv("DEBUGINFOD_PROGRESS");
    (void)unsetenv("DEBUGINFOD_VERBOSE");
    debuginfod_client *client = begin();
    if (client == NULL) {
        return;
    }
    int fd = find(client, (const unsigned char *)request->build_id, 0, &path); /* 0: in letters */
    if (fd >= 0) {
        (void)snprintf(out, path_bytes, "%s", path);
        (void)close(fd);
    } else if (fd != -ENOENT) {
        char message[BP_ERRNO_BYTES];
        bp_describe_errno(-fd, message);
        (void)snprintf(out, path_bytes, " %s", message);
    }
}

static int fetch(void *context, const char *build_id) {
    symbolize_options *options = context;
    const server_request request = {options->server, build_id};
    const bp_aside aside = {.work = ask_server,
                            .context = &request,
                            .answer_bytes = path_bytes,
                            .stall_ms = server_max_ms};
    char answer[path_bytes];
    if (options->is_server_down) {
        return -1;
    }
    bugpack_status status = bp_run_aside(&aside, NULL, NULL, answer, &options->fetcher);
    options->is_server_down = status != BUGPACK_OK || answer[0] == ' ';
    if (options->is_server_down) {
        bp_cli_say("%s gives nothing, and is not asked again:%s", options->server,
                   status == BUGPACK_OK ? answer : " it takes too long");
    }
    return options->is_server_down || answer[0] == '\0' ? -1 : bp_open_regular(answer);
}

static void note(void *context, const char *path, const char *build_id, const char *trouble) {
    (void)context;
    bp_cli_say("%s (build id %s): %s", path, build_id, trouble);
}

/* Beside the report: "viewer-crash-….zip" becomes "viewer-crash-…-symbolized.zip". */
static char *name_output(const char *path) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t length =
        dot != NULL && (slash == NULL || dot > slash + 1) ? (size_t)(dot - path) : strlen(path);
    char *output = NULL;
    return asprintf(&output, "%.*s-symbolized.zip", (int)length, path) >= 0 ? output : NULL;
}

static bp_cli_exit symbolize(symbolize_options *options, const char *path, const char *output) {
    const bp_debug_places places = {.dir = options->debug_dir,
                                    .fetch = options->server != NULL ? fetch : NULL,
                                    .note = note,
                                    .context = options,
                                    .max_ns = lookup_max_ns};
    bp_symbolizer symbolizer = {.finder = bp_frame_finder_new(&places)};
    const bp_cli_rewriting rewriting = {.request = {.path = path,
                                                    .change = bp_symbolize_entry,
                                                    .context = &symbolizer,
                                                    .changed_key = "symbolized_frames"},
                                        .output_path = output,
                                        .as_json = options->as_json,
                                        .event = "symbolized",
                                        .counted = "frames",
                                        .words = "frames have got a function or a line"};
    bp_cli_exit result = bp_cli_rewrite(&rewriting);
    for (size_t i = 0; i < symbolizer.unnamed_count; i++) {
        note(NULL, symbolizer.unnamed[i].path, symbolizer.unnamed[i].build_id,
             "functions of it have no names yet");
        free(symbolizer.unnamed[i].path);
    }
    bp_symbolizer_release(&symbolizer);
    if (symbolizer.finder.free != NULL) {
        symbolizer.finder.free(symbolizer.finder.self);
    }
    return result;
}

static bp_cli_exit run(void *context, char **operands) {
    symbolize_options *options = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    const char *path = operands[0];
    if (strcmp(path, "-") == 0 && options->output_path == NULL) {
        return bp_cli_say_usage("a report from standard input needs --output");
    }
    if (options->as_json && bp_cli_is_streamed(options->output_path)) {
        return bp_cli_say_usage("--json excludes --output -");
    }
    if (bp_libdw_get(&error) == NULL) {
        return bp_cli_rewrite_fail(options->as_json, path, &error);
    }
    char *made = options->output_path == NULL ? name_output(path) : NULL;
    const char *output = made != NULL ? made : options->output_path;
    bp_cli_exit result;
    if (output == NULL) {
        (void)bp_fail_memory(&error, "name a report");
        result = bp_cli_rewrite_fail(options->as_json, path, &error);
    } else {
        result = symbolize(options, path, output);
    }
    free(made);
    return result;
}

const bp_cli_command bp_cli_symbolize_command = {
    "symbolize",
    "add functions and lines to a report",
    "Usage: bugpack symbolize [--debug-dir DIR] [--debuginfod URL] [-o FILE] ZIP\n"
    "\n"
    "Write a report again, with the names of functions and lines of source that debug\n"
    "files of the same builds have, and print its path: beside the report, with\n"
    "\"-symbolized\" in its name. Files of this machine's packages are used, too. A ZIP\n"
    "of - is read from standard input.\n",
    option_rows,
    "Exit status: 0 done, 1 failed, 2 usage.\n",
    1,
    .run = run,
    .options_bytes = sizeof(symbolize_options),
    .needed = "a report"};
