#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/event.h"
#include "cli/option.h"
#include "cli/output.h"
#include "print/fill.h"
#include "report/retention.h"

typedef struct prune_options {
    uint32_t keep;
    uint64_t max_bytes, max_age_secs;
    const char *app;
    bool is_dry_run, as_json;
} prune_options;

/* A time that is not 0, into seconds. */
static bool read_age(const bp_cli_option *option, const char *text, void *field) {
    static const uint64_t max_secs = (uint64_t)1000000 * 24 * 3600;
    uint64_t ms;
    if (!bp_cli_parse_time(text, &ms) || ms < 1000 || ms > max_secs * 1000) {
        bp_cli_say_usage("--%s takes a time such as 30d, 12h, 90min or 45s, not '%s'", option->name,
                         text);
        return false;
    }
    *(uint64_t *)field = ms / 1000;
    return true;
}

typedef struct pruned {
    const char *dir;
    const prune_options *options;
} pruned;

static void print_removed(const char *name, uint64_t byte_count, void *context) {
    const pruned *it = context;
    char path[PATH_MAX + NAME_MAX + 2];
    if (!it->options->as_json) {
        (void)printf("%s/%s\n", it->dir, name);
        return;
    }
    (void)snprintf(path, sizeof path, "%s/%s", it->dir, name);
    BP_CLI_PRINT_EVENT(stdout, it->options->is_dry_run ? "would-remove" : "removed", 0,
                       {"path", BP_CLI_TEXT, path, 0}, {"bytes", BP_CLI_NUMBER, NULL, byte_count});
}

static void print_outcome(const pruned *it, const bp_retention_outcome *outcome) {
    BP_CLI_PRINT_EVENT(stdout, "pruned", 0, {"path", BP_CLI_TEXT, it->dir, 0},
                       {"dry_run", BP_CLI_TRUTH, NULL, it->options->is_dry_run},
                       {"removed", BP_CLI_NUMBER, NULL, outcome->removed_count},
                       {"removed_bytes", BP_CLI_NUMBER, NULL, outcome->removed_bytes},
                       {"left", BP_CLI_NUMBER, NULL, outcome->count},
                       {"left_bytes", BP_CLI_NUMBER, NULL, outcome->bytes});
}

static bp_cli_exit prune(char *dir, const prune_options *options) {
    const bp_retention_policy policy = {.app = options->app,
                                        .kinds = BP_RETENTION_ALL_KINDS,
                                        .max_count = options->keep,
                                        .max_bytes = options->max_bytes,
                                        .max_age_secs = options->max_age_secs,
                                        .is_dry_run = options->is_dry_run,
                                        .now_wall_ns = bp_clock_wall_ns()};
    char shown[BP_FILL_BYTES], left[BP_FILL_BYTES];
    bp_retention_outcome outcome = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    int fd = -1;
    pruned it = {dir, options};
    bp_file_trim_directory(dir);
    bugpack_status status = bp_file_open_directory(dir, false, &fd, &error);
    if (status == BUGPACK_OK) {
        status = bp_retention_prune(fd, dir, &policy, print_removed, &it, &outcome, &error);
        bp_file_close(fd);
    }
    if (options->as_json && status == BUGPACK_OK) {
        print_outcome(&it, &outcome);
    } else if (options->as_json) {
        bp_cli_print_failed(stdout, "failed", dir, error.message);
    }
    bp_cli_exit result = bp_cli_finish_output();
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    bp_cli_say("%s: %s %" PRIu64 " report%s (%s); %" PRIu64 " left (%s)", dir,
               options->is_dry_run ? "would remove" : "removed", outcome.removed_count,
               outcome.removed_count == 1 ? "" : "s",
               bp_fill_bytes((double)outcome.removed_bytes, shown), outcome.count,
               bp_fill_bytes((double)outcome.bytes, left));
    return result;
}

static const bp_cli_bounds counts = {"a number", 1, UINT32_MAX, 1};

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(prune_options, keep, 0, "keep", "N", "keep the N newest", bp_cli_read_number,
                 &counts),
    BP_CLI_VALUE(prune_options, max_bytes, 0, "max-bytes", "BYTES",
                 "keep the newest up to this size together", bp_cli_read_size, NULL),
    BP_CLI_VALUE(prune_options, max_age_secs, 0, "older-than", "TIME",
                 "remove what is older: 30d, 12h, 90min, 45s", read_age, NULL),
    BP_CLI_VALUE(prune_options, app, 0, "app", "NAME", "only the reports of this program",
                 bp_cli_read_text, &bp_cli_app_names),
    BP_CLI_FLAG(prune_options, is_dry_run, 0, "dry-run", "print what would be removed"),
    BP_CLI_FLAG(prune_options, as_json, 0, "json", "print each event as a JSON object in a line"),
    BP_CLI_OPTIONS_END};

static bp_cli_exit run(void *context, char **operands) {
    const prune_options *options = context;
    if (options->keep == 0 && options->max_bytes == 0 && options->max_age_secs == 0) {
        return bp_cli_say_usage("--keep, --max-bytes or --older-than is needed");
    }
    return prune(operands[0], options);
}

const bp_cli_command bp_cli_prune_command = {
    "prune",
    "remove old reports from a directory",
    "Usage: bugpack prune [OPTION]... DIR\n"
    "\n"
    "Remove the oldest reports of a directory. Only regular files of yours that have\n"
    "the name of a report are removed; each is printed.\n",
    option_rows,
    "Exit status: 0 done, 1 failed, 2 usage.\n",
    1,
    .run = run,
    .options_bytes = sizeof(prune_options),
    .needed = "a directory"};
