#include "inspect/summary_lines.h"

#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "json/literal.h"
#include "json/pick.h"

static const size_t line_max_bytes = (size_t)1 << 20;

void bp_line_stream_init(bp_line_stream *stream, bp_line_taker *take, bp_summary *summary) {
    *stream = (bp_line_stream){.take = take, .summary = summary};
    bp_buffer_init(&stream->rest, line_max_bytes);
}

void bp_line_stream_release(bp_line_stream *stream) {
    if (stream->rest.status == BUGPACK_OK && stream->rest.size > 0) {
        (void)stream->take(stream->summary, stream->rest.data, stream->rest.size);
    }
    bp_buffer_release(&stream->rest);
}

bugpack_status bp_line_stream_write(void *context, const void *bytes, size_t byte_count) {
    bp_line_stream *stream = context;
    bp_buffer *rest = &stream->rest;
    const char *at = bytes, *end = at + byte_count, *newline;
    while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        bugpack_status status = BUGPACK_OK;
        if (rest->size == 0 && rest->status == BUGPACK_OK) {
            status = stream->take(stream->summary, at, (size_t)(newline - at));
        } else if (bp_buffer_append(rest, at, (size_t)(newline - at)) == BUGPACK_OK) {
            status = stream->take(stream->summary, rest->data, rest->size);
        }
        if (status != BUGPACK_OK || rest->status == BUGPACK_ERR_NO_MEMORY) {
            return BUGPACK_ERR_NO_MEMORY;
        }
        bp_buffer_clear(rest);
        at = newline + 1;
    }
    (void)bp_buffer_append(rest, at, (size_t)(end - at));
    return rest->status == BUGPACK_ERR_NO_MEMORY ? BUGPACK_ERR_NO_MEMORY : BUGPACK_OK;
}

/* A member of the object on a line, whose value is a string or a number. */
typedef struct line_field {
    const char *key;     /* with its quotes */
    bp_json_token value; /* `byte_count` is 0 where there is none */
} line_field;

/* The end of the string whose opening quote is at `at`. */
static const char *end_of_string(const char *at, const char *end) {
    for (at++; (at = memchr(at, '"', (size_t)(end - at))) != NULL; at++) {
        const char *before = at;
        while (before[-1] == '\\') {
            before--;
        }
        if ((at - before) % 2 == 0) {
            return at + 1;
        }
    }
    return end;
}

/* The end of a value: a string, a number or word, or all that is between two brackets. */
static const char *end_of_value(const char *at, const char *end) {
    size_t depth = 0;
    do {
        if (*at == '"') {
            at = end_of_string(at, end);
        } else {
            depth += *at == '{' || *at == '[';
            depth -= depth > 0 && (*at == '}' || *at == ']');
            at++;
        }
    } while (at < end && (depth > 0 || (*at != ',' && *at != '}')));
    return at;
}

/*
 * Finds members of the object on a line. Lines are many, and most are only counted: the line is
 * read up to the last member that is wanted, and is not checked. What is found in a line that is no
 * JSON means nothing, but lies within the line.
 */
static void find_fields(const char *line, size_t line_bytes, line_field *fields, size_t count) {
    const char *at = line, *end = line + line_bytes;
    size_t found = 0;
    while (found < count && at < end && (at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        const char *key = at;
        const char *key_end = end_of_string(at, end);
        for (at = key_end; at < end && (*at == ':' || *at == ' '); at++) {}
        if (at == end) {
            return;
        }
        const char *value = at;
        at = end_of_value(at, end);
        for (size_t i = 0; i < count; i++) {
            size_t key_bytes = strlen(fields[i].key);
            if ((size_t)(key_end - key) == key_bytes &&
                memcmp(key, fields[i].key, key_bytes) == 0) {
                fields[i].value = (bp_json_token){BP_JSON_SCALAR, value, (size_t)(at - value)};
                found++;
            }
        }
    }
}

/* Decodes a string of a line; what is malformed is "". */
static void decode(const bp_json_token *token, char *out, size_t out_bytes) {
    bp_buffer text;
    size_t at, length = 0;
    bp_buffer_init(&text, line_max_bytes);
    if (token->byte_count >= 2 && bp_utf8_is_valid(token->text, token->byte_count) &&
        bp_json_check_string((const unsigned char *)token->text, token->byte_count, &at) == NULL &&
        bp_json_token_text(token, &text)) {
        length = text.size < out_bytes
                     ? text.size
                     : bp_utf8_cut(bp_buffer_text(&text), text.size, out_bytes - 1);
    }
    memcpy(out, bp_buffer_text(&text), length);
    out[length] = '\0';
    bp_buffer_release(&text);
}

/* Whether a string, with its quotes, is what it is shown as: printable ASCII without an escape. */
static bool is_simple(const bp_json_token *token) {
    if (token->byte_count < 2 || token->text[0] != '"') {
        return false;
    }
    for (size_t i = 1; i + 1 < token->byte_count; i++) {
        if (token->text[i] < 0x20 || token->text[i] == 0x7F || token->text[i] == '\\') {
            return false;
        }
    }
    return true;
}

static void copy_text(const bp_json_token *token, char *out, size_t out_bytes) {
    if (is_simple(token) && token->byte_count - 2 < out_bytes) {
        memcpy(out, token->text + 1, token->byte_count - 2);
        out[token->byte_count - 2] = '\0';
    } else {
        decode(token, out, out_bytes);
    }
}

static uint64_t read_time(const bp_json_token *token) {
    char text[BP_CLOCK_ISO_BYTES];
    uint64_t wall_ns = 0;
    copy_text(token, text, sizeof text);
    (void)bp_clock_parse(text, &wall_ns);
    return wall_ns;
}

static bugpack_status add_sample(bp_summary *summary, const char *line, size_t line_bytes) {
    line_field fields[] = {{.key = "\"time\""}, {.key = "\"cpu_percent\""}, {.key = "\"rss_kb\""}};
    find_fields(line, line_bytes, fields, 3);
    bp_summary_sample sample = {.wall_ns = read_time(&fields[0].value)};
    uint64_t percent;
    if (sample.wall_ns == 0 || summary->sample_count == BP_SUMMARY_SAMPLE_MAX ||
        !bp_json_token_fixed(&fields[1].value, 2, &percent)) {
        return BUGPACK_OK;
    }
    sample.cpu_percent_100 = percent < UINT32_MAX ? (uint32_t)percent : UINT32_MAX;
    sample.has_rss = bp_json_token_fixed(&fields[2].value, 0, &sample.rss_kb);
    if (!bp_array_reserve(&summary->samples, summary->sample_count, &summary->sample_capacity)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    summary->samples[summary->sample_count++] = sample;
    return BUGPACK_OK;
}

static int read_level(const bp_json_token *token) {
    for (int level = BUGPACK_LEVEL_FATAL; level >= BUGPACK_LEVEL_TRACE; level--) {
        const char *name = bp_level_name((uint8_t)level);
        if (token->byte_count == strlen(name) + 2 &&
            memcmp(token->text + 1, name, token->byte_count - 2) == 0) {
            return level;
        }
    }
    return 0;
}

static bugpack_status add_record(bp_summary *summary, const char *line, size_t line_bytes) {
    line_field fields[] = {{.key = "\"time\""}, {.key = "\"level\""}};
    find_fields(line, line_bytes, fields, 2);
    int level = read_level(&fields[1].value);
    summary->level_counts[level]++;
    if (level < BUGPACK_LEVEL_WARN) {
        return BUGPACK_OK;
    }
    line_field texts[] = {{.key = "\"channel\""}, {.key = "\"message\""}};
    find_fields(line, line_bytes, texts, 2);
    bp_summary_record *record = &summary->records[summary->record_count++ % BP_SUMMARY_RECORD_MAX];
    record->wall_ns = read_time(&fields[0].value);
    record->level = level;
    copy_text(&texts[0].value, record->channel, sizeof record->channel);
    copy_text(&texts[1].value, record->message, sizeof record->message);
    uint64_t trigger_ns = summary->triggered_wall_ns;
    if (level >= BUGPACK_LEVEL_ERROR && trigger_ns != 0 && record->wall_ns <= trigger_ns &&
        trigger_ns - record->wall_ns <= BP_SUMMARY_RECENT_NS) {
        summary->recent_error_count++;
        summary->recent_error = *record;
    }
    return BUGPACK_OK;
}

static bp_summary_channel *find_channel(bp_summary *summary, const char *name) {
    for (size_t i = 0; i < summary->channel_count; i++) {
        if (strcmp(summary->channels[i].name, name) == 0) {
            return &summary->channels[i];
        }
    }
    if (summary->channel_count == BP_SUMMARY_CHANNEL_MAX) {
        return NULL;
    }
    bp_summary_channel *channel = &summary->channels[summary->channel_count++];
    (void)memcpy(channel->name, name, strlen(name) + 1);
    return channel;
}

static bugpack_status add_message(bp_summary *summary, const char *line, size_t line_bytes) {
    line_field fields[] = {{.key = "\"time\""},
                           {.key = "\"channel\""},
                           {.key = "\"direction\""},
                           {.key = "\"bytes\""}};
    char name[sizeof summary->channels[0].name];
    uint64_t byte_count = 0;
    find_fields(line, line_bytes, fields, 4);
    copy_text(&fields[1].value, name, sizeof name);
    bp_summary_channel *channel = find_channel(summary, name);
    if (channel == NULL) {
        summary->other_message_count++;
        return BUGPACK_OK;
    }
    size_t way = bp_json_token_is(&fields[2].value, "\"received\"");
    (void)bp_json_token_fixed(&fields[3].value, 0, &byte_count);
    channel->messages[way]++;
    channel->bytes[way] += byte_count;
    channel->last_wall_ns = read_time(&fields[0].value);
    return BUGPACK_OK;
}

const bp_summary_line_reader bp_summary_line_readers[] = {{"metrics-history.jsonl", add_sample},
                                                          {"logs.jsonl", add_record},
                                                          {"traffic-index.jsonl", add_message}};
const size_t bp_summary_line_reader_count =
    sizeof bp_summary_line_readers / sizeof bp_summary_line_readers[0];
