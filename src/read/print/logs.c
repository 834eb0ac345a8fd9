#include "print/logs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "entries/json_lines.h"
#include "model/entry.h"
#include "model/fields.h"

enum { channel_bytes = 256, piece_max_bytes = 320 * 1024 };

/* A log with the line that is next. */
typedef struct log_cursor {
    bp_log_source source;
    bp_archive_stream *stream; /* NULL: it is at its end */
    bp_buffer bytes;           /* what was read and not yet given */
    size_t at, scanned;        /* where the next line begins, and how far no newline is */
    bool is_skipping;          /* the rest of a line that was cut */
    bool has_line;
    bp_log_line line;
    char channel[channel_bytes];
    bp_buffer message; /* of a record */
} log_cursor;

struct bp_logs {
    bp_line_clock clock;
    size_t open[BP_LOG_SOURCE_MAX]; /* those that are read */
    size_t count, open_count, last; /* `last`: that of the line before, if one was given */
    bool has_given;
    log_cursor cursors[];
};

/* --- lines -------------------------------------------------------------------------------- */

static void end_log(log_cursor *cursor) {
    bp_archive_stream_close(cursor->stream);
    cursor->stream = NULL;
}

/* Reads on. What was given is dropped first. */
static void read_more(log_cursor *cursor) {
    bool is_over = false;
    bp_buffer *bytes = &cursor->bytes;
    if (cursor->at > 0) {
        memmove(bytes->data, bytes->data + cursor->at, bytes->size - cursor->at);
        bytes->size -= cursor->at;
        cursor->scanned -= cursor->at;
        cursor->at = 0;
    }
    cursor->source.error = (bugpack_error)BUGPACK_ERROR_INIT;
    bugpack_status status = bp_archive_stream_next(cursor->stream, bp_buffer_sink, bytes, &is_over,
                                                   &cursor->source.error);
    if (status != BUGPACK_OK || is_over) {
        end_log(cursor);
    }
}

/* The bytes of the next line without its newline. False at the end. */
static bool take_line(log_cursor *cursor, char **ret_text, size_t *ret_bytes, bool *ret_cut) {
    for (;;) {
        bp_buffer *bytes = &cursor->bytes;
        const char *newline =
            bytes->size == cursor->scanned
                ? NULL
                : memchr(bytes->data + cursor->scanned, '\n', bytes->size - cursor->scanned);
        size_t end = newline != NULL ? (size_t)(newline - bytes->data) : bytes->size;
        size_t length = end - cursor->at;
        bool is_long = length > BP_LOG_LINE_MAX_BYTES;
        bool is_at_end = newline == NULL && cursor->stream == NULL;
        cursor->scanned = end + (newline != NULL);
        if (cursor->is_skipping) {
            cursor->is_skipping = newline == NULL;
            cursor->at = cursor->scanned;
        } else if (newline != NULL || is_long || (is_at_end && length > 0)) {
            cursor->is_skipping = newline == NULL && is_long;
            *ret_cut = is_long;
            *ret_text = bytes->data + cursor->at;
            *ret_bytes = is_long ? BP_LOG_LINE_MAX_BYTES : length;
            cursor->at = cursor->scanned;
            return true;
        }
        if (newline == NULL && is_at_end) {
            return false;
        }
        if (newline == NULL) {
            read_more(cursor);
        }
    }
}

static void read_record(log_cursor *cursor, const char *text, size_t byte_count) {
    bp_log_line *line = &cursor->line;
    bp_json_field fields[] = {
        {.key = "\"time\""}, {.key = "\"level\""}, {.key = "\"channel\""}, {.key = "\"message\""}};
    char level[12];
    bp_json_line_find(text, byte_count, fields, 4);
    line->wall_ns = bp_json_line_time(&fields[0].value);
    bp_json_line_text(&fields[1].value, level, sizeof level);
    line->level = bp_line_level_of(level, strlen(level));
    bp_json_line_text(&fields[2].value, cursor->channel, sizeof cursor->channel);
    line->channel = cursor->channel;
    bp_buffer_clear(&cursor->message);
    const bp_json_token *message = &fields[3].value;
    if (message->byte_count > 0 && bp_json_line_decode(message, &cursor->message)) {
        line->message = bp_buffer_text(&cursor->message);
        line->message_bytes = cursor->message.size;
    } else { /* no record, so it is shown as it is */
        line->message = text;
        line->message_bytes = byte_count;
    }
}

/* A line that is a JSON object has its time and level in members that many loggers have. */
static bool read_object(const char *text, size_t byte_count, const bp_line_clock *clock,
                        bp_line_time *ret_time, int *ret_level) {
    enum { time_count = 5, count = 8 };
    bp_json_field fields[count] = {{.key = "\"time\""},     {.key = "\"timestamp\""},
                                   {.key = "\"ts\""},       {.key = "\"@timestamp\""},
                                   {.key = "\"t\""},        {.key = "\"level\""},
                                   {.key = "\"severity\""}, {.key = "\"lvl\""}};
    char value[64];
    size_t used;
    bool has_time = false;
    bp_json_line_find(text, byte_count, fields, count);
    for (size_t i = 0; i < count; i++) {
        const bp_json_token *token = &fields[i].value;
        if (token->byte_count == 0) {
            continue;
        }
        bp_json_line_text(token, value, sizeof value);
        bool is_string = value[0] != '\0';
        if (i >= time_count) {
            *ret_level = *ret_level == 0 ? bp_line_level_of(value, strlen(value)) : *ret_level;
        } else if (!has_time) {
            has_time = bp_line_time_read(is_string ? value : token->text,
                                         is_string ? strlen(value) : token->byte_count, clock,
                                         ret_time, &used);
        }
    }
    return has_time;
}

static void read_text(log_cursor *cursor, const char *text, size_t byte_count,
                      const bp_line_clock *clock) {
    bp_log_source *source = &cursor->source;
    bp_log_line *line = &cursor->line;
    bp_line_time time = {0};
    size_t used = 0;
    int level = 0;
    bool is_object = byte_count > 0 && text[0] == '{';
    bool has_time = is_object ? read_object(text, byte_count, clock, &time, &level)
                              : bp_line_time_read(text, byte_count, clock, &time, &used);
    line->continues = !has_time && source->has_times;
    line->message = text + used;
    line->message_bytes = byte_count - used;
    if (line->continues) {
        return;
    }
    line->wall_ns = time.wall_ns;
    line->level = is_object ? level : bp_line_level(line->message, line->message_bytes);
    source->has_times |= has_time;
    source->lacks_zone |= time.lacks_zone;
    source->lacks_date |= time.lacks_date;
    source->lacks_year |= time.lacks_year;
}

/* Reads the line that is next. */
static void advance(log_cursor *cursor, const bp_line_clock *clock) {
    char *text;
    size_t byte_count;
    bp_log_line *line = &cursor->line;
    cursor->has_line = take_line(cursor, &text, &byte_count, &line->is_cut);
    if (!cursor->has_line) {
        return;
    }
    byte_count -= byte_count > 0 && text[byte_count - 1] == '\r';
    text[byte_count] = '\0'; /* where the newline was */
    cursor->source.line_count++;
    cursor->source.cut_count += line->is_cut;
    if (cursor->source.is_ring) {
        read_record(cursor, text, byte_count);
        cursor->source.has_times |= line->wall_ns != 0;
    } else {
        read_text(cursor, text, byte_count, clock);
    }
}

/* --- all logs ----------------------------------------------------------------------------- */

/* True if an entry is a log, of any process of the report. */
static bool is_log(const char *name, bool *ret_ring) {
    name += bp_entry_folder_bytes(name);
    *ret_ring = strcmp(name, "logs.jsonl") == 0;
    return *ret_ring || strncmp(name, "logs/", 5) == 0;
}

static bugpack_status open_cursor(const bp_report_file *report, size_t index, uint64_t *left_bytes,
                                  size_t opened_count, log_cursor *cursor) {
    bugpack_error *error = &cursor->source.error;
    uint64_t byte_count = 0;
    *error = (bugpack_error)BUGPACK_ERROR_INIT;
    bp_buffer_init(&cursor->bytes, BP_LOG_LINE_MAX_BYTES + piece_max_bytes);
    bp_buffer_init(&cursor->message, BP_LOG_LINE_MAX_BYTES);
    cursor->source.entry = bp_report_file_name(report, index);
    cursor->line = (bp_log_line){.source = &cursor->source, .channel = ""};
    if (opened_count >= BP_LOG_SOURCE_MAX) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "\"%s\" is not read: at most %d logs are",
                       cursor->source.entry, BP_LOG_SOURCE_MAX);
    }
    (void)bp_report_file_has(report, cursor->source.entry, &byte_count);
    if (byte_count > *left_bytes) {
        return bp_fail(error, BUGPACK_ERR_LIMIT,
                       "\"%s\" is not read: its %" PRIu64 " bytes are over the limit",
                       cursor->source.entry, byte_count);
    }
    *left_bytes -= byte_count;
    return bp_report_file_begin(report, index, &cursor->stream, error);
}

bugpack_status bp_logs_open(const bp_report_file *report, const bp_line_clock *clock,
                            uint64_t max_bytes, bp_logs **ret_logs, bugpack_error *error) {
    size_t count = 0;
    bool is_ring;
    for (size_t i = 0; i < bp_report_file_count(report); i++) {
        count += is_log(bp_report_file_name(report, i), &is_ring);
    }
    bp_logs *logs = calloc(1, sizeof *logs + count * sizeof logs->cursors[0]);
    if (logs == NULL) {
        return bp_fail_memory(error, "read the logs");
    }
    logs->clock = *clock;
    for (size_t i = 0; i < bp_report_file_count(report); i++) {
        if (is_log(bp_report_file_name(report, i), &is_ring)) {
            log_cursor *cursor = &logs->cursors[logs->count++];
            cursor->source.is_ring = is_ring;
            if (open_cursor(report, i, &max_bytes, logs->open_count, cursor) == BUGPACK_OK) {
                logs->open[logs->open_count++] = logs->count - 1;
                advance(cursor, clock);
            }
        }
    }
    *ret_logs = logs;
    return BUGPACK_OK;
}

void bp_logs_close(bp_logs *logs) {
    for (size_t i = 0; logs != NULL && i < logs->count; i++) {
        end_log(&logs->cursors[i]);
        bp_buffer_release(&logs->cursors[i].bytes);
        bp_buffer_release(&logs->cursors[i].message);
    }
    free(logs);
}

bool bp_logs_next(bp_logs *logs, bp_log_line *ret_line) {
    if (logs->count == 0) {
        return false;
    }
    /* The line that was given last is dropped only now, so its texts have lived so long. */
    if (logs->has_given) {
        advance(&logs->cursors[logs->last], &logs->clock);
    }
    size_t next = logs->last;
    for (size_t i = 0; i < logs->open_count; i++) {
        const log_cursor *cursor = &logs->cursors[logs->open[i]], *best = &logs->cursors[next];
        if (cursor->has_line && (!best->has_line || cursor->line.wall_ns < best->line.wall_ns)) {
            next = logs->open[i];
        }
    }
    logs->last = next;
    logs->has_given = true;
    if (!logs->cursors[next].has_line) {
        return false;
    }
    *ret_line = logs->cursors[next].line;
    return true;
}

size_t bp_logs_count(const bp_logs *logs) {
    return logs->count;
}

const bp_log_source *bp_logs_source(const bp_logs *logs, size_t index) {
    return &logs->cursors[index].source;
}

void bp_log_line_print(const bp_log_line *line, uint64_t trigger_ns, bp_buffer *out) {
    bp_json json;
    bp_json_begin_as(&json, BP_JSON_RECORD, out);
    bp_json_quote(&json, true);
    bp_model_add_time(&json, "time", line->wall_ns);
    if (line->wall_ns != 0 && trigger_ns != 0) {
        int64_t ns = (int64_t)(line->wall_ns - trigger_ns);
        bp_json_add_number(&json, "from_trigger_secs", (double)ns / 1e9, 6);
    }
    bp_json_add_text(&json, "level", line->level > 0 ? bp_level_name((uint8_t)line->level) : NULL);
    bp_json_add_text(&json, "source", line->source->entry);
    bp_model_add_known_text(&json, "channel", line->channel);
    bp_json_quote(&json, line->source->is_ring);
    bp_json_add_bytes(&json, "message", line->message, line->message_bytes);
    bp_model_add_flag(&json, "continues", line->continues);
    bp_model_add_flag(&json, "cut", line->is_cut);
    (void)bp_json_finish(&json, NULL); /* what may fail is the buffer */
}
