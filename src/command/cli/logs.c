#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bugpack/log.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/status.h"
#include "cli/option.h"
#include "cli/output.h"
#include "print/logs.h"

/* An instant, or a time before the trigger. */
typedef struct log_since {
    bool is_given, lacks_zone;
    uint64_t wall_ns; /* 0: `before_ms` before the trigger */
    uint64_t before_ms;
} log_since;

typedef struct logs_options {
    int level;
    const char *channel, *pattern; /* NULL: any */
    regex_t expression;
    log_since since;
    int32_t zone_secs;
    bool has_zone, as_json;
    uint64_t max_bytes;
} logs_options;

typedef struct log_view {
    const logs_options *options;
    uint64_t trigger_ns; /* 0: not known */
    bool has_colour;
    int source_columns; /* 0: sources are not named; at most 40 */
    bp_buffer json;     /* a line; its maximum is over 6 times that of a line */
    uint64_t from_ns;
    bool shows_last;              /* the last line that is not a continuation was shown */
    uint64_t untimed, unlevelled; /* lines that no time or level lets pass */
} log_view;

/* --- what is printed ---------------------------------------------------------------------- */

/* Prints a text escaped for a terminal, except tabs, which become blanks. */
static void print_escaped(const char *text, size_t byte_count) {
    const char *end = text + byte_count;
    while (text < end) {
        bool is_safe = *text >= ' ' && *text <= '~';
        size_t length = is_safe ? 1 : bp_cli_next_character(text, &is_safe);
        for (size_t i = 0; text < end && i < length; i++, text++) {
            if (is_safe) {
                (void)putchar_unlocked(*text);
            } else {
                (void)printf(*text == '\t' ? " " : "\\x%02x", (unsigned char)*text);
            }
        }
    }
}

/* Time, seconds from the trigger, level, source, channel and message, escaped. */
static void print_text(const log_view *view, const bp_log_line *line) {
    static const char *const styles[] = {
        [BUGPACK_LEVEL_TRACE] = "\033[2m",  [BUGPACK_LEVEL_DEBUG] = "\033[2m",
        [BUGPACK_LEVEL_INFO] = NULL,        [BUGPACK_LEVEL_WARN] = "\033[33m",
        [BUGPACK_LEVEL_ERROR] = "\033[31m", [BUGPACK_LEVEL_FATAL] = "\033[1;31m"};
    const char *style = view->has_colour ? styles[line->level] : NULL;
    bool has_time = line->wall_ns != 0 && !line->continues;
    char time[BP_CLOCK_ISO_BYTES] = "", distance[32] = "";
    if (has_time) {
        bool is_before = line->wall_ns < view->trigger_ns;
        uint64_t ns =
            is_before ? view->trigger_ns - line->wall_ns : line->wall_ns - view->trigger_ns;
        bp_clock_format_iso(line->wall_ns, time);
        (void)snprintf(distance, sizeof distance, "%c%.3f s", is_before ? '-' : '+',
                       (double)(ns / BP_NS_PER_MS) / 1000);
    }
    (void)printf("%s%-27s ", style != NULL ? style : "", time);
    if (view->trigger_ns != 0) {
        (void)printf("%14s ", distance);
    }
    (void)printf("%-5s ", has_time && line->level > 0 ? bp_level_name((uint8_t)line->level) : "");
    if (view->source_columns > 0) {
        char source[1024];
        bp_cli_escape(line->source->entry, source, sizeof source);
        (void)printf("%-*s ", view->source_columns, source);
    }
    if (line->channel[0] != '\0') {
        print_escaped(line->channel, strlen(line->channel));
        (void)fputs(": ", stdout);
    }
    print_escaped(line->message, line->message_bytes);
    (void)fputs(style != NULL ? "\033[0m\n" : "\n", stdout);
}

/* --- which lines -------------------------------------------------------------------------- */

static bool is_wanted(log_view *view, const bp_log_line *line) {
    const logs_options *options = view->options;
    if (options->channel != NULL && strcmp(line->channel, options->channel) != 0) {
        return false;
    }
    if (view->from_ns > 0 && line->wall_ns == 0) {
        view->untimed++;
        return false;
    }
    if (line->wall_ns < view->from_ns) {
        return false;
    }
    if (options->level > 0 && line->level == 0) {
        view->unlevelled++;
        return false;
    }
    if (line->level < options->level) {
        return false;
    }
    return options->pattern == NULL || (line->continues && view->shows_last) ||
           regexec(&options->expression, line->message, 0, NULL, 0) == 0;
}

/* --- the command -------------------------------------------------------------------------- */

/* Says what is to be known of a log. False where some of it was not read. */
static bool judge_source(const bp_log_source *source, bool has_zone) {
    const char *lacks = source->lacks_date   ? "no date, and are taken to be of the day before"
                        : source->lacks_year ? "no year, and are taken to be of the year before"
                                             : NULL;
    if (source->error.status != BUGPACK_OK) {
        bp_cli_say("%s", source->error.message);
        return false;
    }
    if (source->line_count > 0 && !source->has_times) {
        bp_cli_say("\"%s\" has no times: its lines come first", source->entry);
    }
    if (lacks != NULL) {
        bp_cli_say("times in \"%s\" have %s the trigger", source->entry, lacks);
    }
    if (source->lacks_zone && !has_zone) {
        bp_cli_say("times in \"%s\" have no zone, and are taken as UTC; see --zone", source->entry);
    }
    if (source->cut_count > 0) {
        bp_cli_say("%" PRIu64 " lines of \"%s\" are over %d bytes, and were cut", source->cut_count,
                   source->entry, BP_LOG_LINE_MAX_BYTES);
    }
    return true;
}

static bp_cli_exit finish(const log_view *view, const bp_logs *logs) {
    bp_cli_exit result = bp_cli_finish_output();
    bool is_whole = view->json.status == BUGPACK_OK;
    if (result != BP_CLI_COMPLETE) {
        return result;
    }
    for (size_t i = 0; i < bp_logs_count(logs); i++) {
        is_whole &= judge_source(bp_logs_source(logs, i), view->options->has_zone);
    }
    if (view->untimed > 0) {
        bp_cli_say("%" PRIu64 " lines without a time were left out", view->untimed);
    }
    if (view->unlevelled > 0) {
        bp_cli_say("%" PRIu64 " lines without a level were left out", view->unlevelled);
    }
    return is_whole ? BP_CLI_COMPLETE : BP_CLI_INCOMPLETE;
}

/* From when on lines are shown. False, and a message, where that needs a trigger that is not known.
 */
static bool set_window(log_view *view, const char *path) {
    const log_since *since = &view->options->since;
    uint64_t trigger_ns = view->trigger_ns, before_ms = since->before_ms;
    if (!since->is_given) {
        return true;
    }
    if (since->wall_ns != 0) {
        int64_t zone_secs = since->lacks_zone ? view->options->zone_secs : 0;
        int64_t ns = (int64_t)since->wall_ns - zone_secs * (int64_t)BP_NS_PER_SEC;
        view->from_ns = ns > 0 ? (uint64_t)ns : 1;
        return true;
    }
    if (trigger_ns == 0) {
        bp_cli_say("\"%s\" does not say when it was triggered", path);
        return false;
    }
    bool is_early = before_ms >= trigger_ns / BP_NS_PER_MS; /* than 1970 */
    view->from_ns = is_early ? 1 : trigger_ns - before_ms * BP_NS_PER_MS;
    return true;
}

static void set_columns(log_view *view, const bp_logs *logs) {
    for (size_t i = 0; bp_logs_count(logs) > 1 && i < bp_logs_count(logs); i++) {
        int length = (int)strnlen(bp_logs_source(logs, i)->entry, 40);
        view->source_columns = length > view->source_columns ? length : view->source_columns;
    }
}

static bp_cli_exit show_logs(const bp_report_file *report, const char *path,
                             const logs_options *options) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    log_view view = {.options = options,
                     .has_colour = bp_cli_is_terminal(STDOUT_FILENO) && bp_cli_wants_colour()};
    bp_logs *logs = NULL;
    bp_log_line line;
    const char *triggered =
        bp_json_tree_text_or(bp_report_file_metadata(report), "triggered_at", "");
    (void)bp_clock_parse(triggered, &view.trigger_ns);
    bp_line_clock clock = {view.trigger_ns, options->zone_secs};
    if (!set_window(&view, path)) {
        return BP_CLI_FAILED;
    }
    if (bp_logs_open(report, &clock, options->max_bytes, &logs, &error) != BUGPACK_OK) {
        return bp_cli_say_error(&error);
    }
    if (bp_logs_count(logs) == 0) {
        bp_cli_say("there is no log in \"%s\"", path);
        bp_logs_close(logs);
        return BP_CLI_FAILED;
    }
    set_columns(&view, logs);
    /* Each byte of a line takes at most 6. */
    bp_buffer_init(&view.json, (size_t)8 * BP_LOG_LINE_MAX_BYTES);
    while (ferror(stdout) == 0 && bp_logs_next(logs, &line)) {
        bool is_shown = is_wanted(&view, &line);
        view.shows_last = line.continues ? view.shows_last : is_shown;
        if (is_shown && options->as_json) {
            bp_buffer_clear(&view.json); /* docs/schema/log-line.schema.json */
            bp_log_line_print(&line, view.trigger_ns, &view.json);
            (void)fwrite(bp_buffer_text(&view.json), 1, view.json.size, stdout);
        } else if (is_shown) {
            print_text(&view, &line);
        }
    }
    bp_cli_exit result = finish(&view, logs);
    bp_buffer_release(&view.json);
    bp_logs_close(logs);
    return result;
}

/* --- options ------------------------------------------------------------------------------ */

static const bp_cli_choice levels[] = {{"trace", BUGPACK_LEVEL_TRACE},
                                       {"debug", BUGPACK_LEVEL_DEBUG},
                                       {"info", BUGPACK_LEVEL_INFO},
                                       {"warn", BUGPACK_LEVEL_WARN},
                                       {"error", BUGPACK_LEVEL_ERROR},
                                       {"fatal", BUGPACK_LEVEL_FATAL},
                                       {NULL, 0}};

static bool read_since(const bp_cli_option *option, const char *text, void *field) {
    static const bp_line_clock utc = {0};
    log_since *since = field;
    bp_line_time time;
    size_t used;
    *since = (log_since){.is_given = true};
    if (strlen(text) >= sizeof "2026-11-21" && text[4] == '-' &&
        bp_line_time_read(text, strlen(text), &utc, &time, &used) && text[used] == '\0') {
        since->wall_ns = time.wall_ns;
        since->lacks_zone = time.lacks_zone;
        return true;
    }
    if (bp_cli_parse_time(text, &since->before_ms)) {
        return true;
    }
    bp_cli_say_usage("--%s takes a date and time such as 2026-11-21T00:36:51Z, or how long before "
                     "the trigger, such as 500ms, 30s or 2h, not '%s'",
                     option->name, text);
    return false;
}

static bool read_zone(const bp_cli_option *option, const char *text, void *field) {
    logs_options *options = (logs_options *)(void *)((char *)field - option->offset);
    options->has_zone = bp_line_zone_read(text, &options->zone_secs);
    if (!options->has_zone) {
        bp_cli_say_usage("--%s takes a zone such as Z or +01:00, not '%s'", option->name, text);
    }
    return options->has_zone;
}

static const bp_cli_option option_rows[] = {
    BP_CLI_CHOICE(logs_options, level, "level", "LEVEL",
                  "only trace, debug, info, warn, error or fatal,\nand what is more severe",
                  levels),
    BP_CLI_VALUE(logs_options, channel, 0, "channel", "NAME", "only log records of this channel",
                 bp_cli_read_text, &bp_cli_some_text),
    BP_CLI_VALUE(logs_options, pattern, 0, "grep", "REGEX",
                 "only messages that this extended regular\nexpression matches", bp_cli_read_text,
                 &bp_cli_some_text),
    BP_CLI_VALUE(
        logs_options, since, 0, "since", "TIME",
        "only from this time on: 2026-11-21T00:36:51Z,\nor 30s for 30 s before the trigger",
        read_since, NULL),
    BP_CLI_VALUE(logs_options, zone_secs, 0, "zone", "ZONE",
                 "the zone of times without one (default Z)", read_zone, NULL),
    BP_CLI_FLAG(logs_options, as_json, 0, "json", "JSON, an object each line"),
    BP_CLI_CONTENT_OPTION(logs_options),
    BP_CLI_OPTIONS_END};

/* False, and a message, where the pattern is none. */
static bool compile_pattern(logs_options *options) {
    char reason[128];
    if (options->pattern == NULL) {
        return true;
    }
    int code = regcomp(&options->expression, options->pattern, REG_EXTENDED | REG_NOSUB);
    if (code != 0) {
        (void)regerror(code, &options->expression, reason, sizeof reason);
        bp_cli_say_usage("--grep '%s': %s", options->pattern, reason);
    }
    return code == 0;
}

static const logs_options defaults = {.max_bytes = BP_CLI_CONTENT_BYTES};

static bp_cli_exit run(void *context, char **operands) {
    logs_options *options = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_report_file *report = NULL;
    if (!compile_pattern(options)) {
        return BP_CLI_USAGE;
    }
    if (bp_report_file_open_any(operands[0], &report, &error) != BUGPACK_OK) {
        return bp_cli_say_failed(&error);
    }
    bp_cli_exit result = show_logs(report, operands[0], options);
    bp_report_file_close(report);
    return result;
}

const bp_cli_command bp_cli_logs_command = {
    "logs",
    "show the logs of a report in one time line",
    "Usage: bugpack logs [OPTION]... REPORT\n"
    "\n"
    "Show the log records of a report and the lines of its log files in one time\n"
    "line: the time in UTC, the seconds from the trigger, the level, the entry where\n"
    "there are several, the channel and the message. A REPORT of - is read from\n"
    "standard input.\n",
    option_rows,
    "Exit status: 0 shown, 1 failed, or there is no log, 2 usage, 3 a log could not\n"
    "be read to its end.\n",
    1,
    .run = run,
    .options_bytes = sizeof(logs_options),
    .defaults = &defaults,
    .needed = "a report"};
