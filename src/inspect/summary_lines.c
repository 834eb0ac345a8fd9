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

/*
 * The value of the first member called `key`, which has its quotes and its colon. A quote in a text
 * is escaped, so the key of a line that is JSON cannot be found inside one. Lines are many, and
 * most are only counted: none is parsed as a whole.
 */
static bool find_value(const char *line, size_t line_bytes, const char *key,
                       bp_json_token *ret_token) {
    size_t key_bytes = strlen(key);
    const char *end = line + line_bytes;
    const char *at = memmem(line, line_bytes, key, key_bytes);
    if (at == NULL) {
        return false;
    }
    for (at += key_bytes; at < end && *at == ' '; at++) {}
    const char *last = at;
    if (at < end && *at == '"') {
        for (last++; last < end && *last != '"'; last++) {
            last += *last == '\\';
        }
        last++;
    } else {
        while (last < end && ((*last >= '0' && *last <= '9') || *last == '.')) {
            last++;
        }
    }
    *ret_token = (bp_json_token){BP_JSON_SCALAR, at, (size_t)(last - at)};
    return last <= end && last > at;
}

/* Decodes a string of a line; what is malformed is "". */
static void decode(const bp_json_token *token, char *out, size_t out_bytes) {
    bp_buffer text;
    size_t at, length = 0;
    bp_buffer_init(&text, line_max_bytes);
    if (bp_utf8_is_valid(token->text, token->byte_count) &&
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

static void find_text(const char *line, size_t line_bytes, const char *key, char *out,
                      size_t out_bytes) {
    bp_json_token token;
    out[0] = '\0';
    if (!find_value(line, line_bytes, key, &token)) {
        return;
    }
    if (is_simple(&token) && token.byte_count - 2 < out_bytes) {
        memcpy(out, token.text + 1, token.byte_count - 2);
        out[token.byte_count - 2] = '\0';
    } else {
        decode(&token, out, out_bytes);
    }
}

static bool find_fixed(const char *line, size_t line_bytes, const char *key, unsigned decimals,
                       uint64_t *ret_value) {
    bp_json_token token;
    return find_value(line, line_bytes, key, &token) &&
           bp_json_token_fixed(&token, decimals, ret_value);
}

static uint64_t find_time(const char *line, size_t line_bytes) {
    char text[BP_CLOCK_ISO_BYTES];
    uint64_t wall_ns = 0;
    find_text(line, line_bytes, "\"time\":", text, sizeof text);
    (void)bp_clock_parse(text, &wall_ns);
    return wall_ns;
}

static bugpack_status add_sample(bp_summary *summary, const char *line, size_t line_bytes) {
    bp_summary_sample sample = {.wall_ns = find_time(line, line_bytes)};
    uint64_t percent;
    if (sample.wall_ns == 0 || summary->sample_count == BP_SUMMARY_SAMPLE_MAX ||
        !find_fixed(line, line_bytes, "\"cpu_percent\":", 2, &percent)) {
        return BUGPACK_OK;
    }
    sample.cpu_percent_100 = percent < UINT32_MAX ? (uint32_t)percent : UINT32_MAX;
    sample.has_rss = find_fixed(line, line_bytes, "\"rss_kb\":", 0, &sample.rss_kb);
    if (!bp_array_reserve(&summary->samples, summary->sample_count, &summary->sample_capacity)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    summary->samples[summary->sample_count++] = sample;
    return BUGPACK_OK;
}

static int find_level(const char *line, size_t line_bytes) {
    bp_json_token token;
    if (find_value(line, line_bytes, "\"level\":", &token)) {
        for (int level = BUGPACK_LEVEL_TRACE; level <= BUGPACK_LEVEL_FATAL; level++) {
            const char *name = bp_level_name((uint8_t)level);
            if (token.byte_count == strlen(name) + 2 &&
                memcmp(token.text + 1, name, token.byte_count - 2) == 0) {
                return level;
            }
        }
    }
    return 0;
}

static bugpack_status add_record(bp_summary *summary, const char *line, size_t line_bytes) {
    int level = find_level(line, line_bytes);
    summary->level_counts[level]++;
    if (level < BUGPACK_LEVEL_WARN) {
        return BUGPACK_OK;
    }
    bp_summary_record record = {.wall_ns = find_time(line, line_bytes), .level = level};
    find_text(line, line_bytes, "\"channel\":", record.channel, sizeof record.channel);
    find_text(line, line_bytes, "\"message\":", record.message, sizeof record.message);
    summary->records[summary->record_count++ % BP_SUMMARY_RECORD_MAX] = record;
    uint64_t trigger_ns = summary->triggered_wall_ns;
    if (level >= BUGPACK_LEVEL_ERROR && trigger_ns != 0 && record.wall_ns <= trigger_ns &&
        trigger_ns - record.wall_ns <= BP_SUMMARY_RECENT_NS) {
        summary->recent_error_count++;
        summary->recent_error = record;
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
    char name[sizeof summary->channels[0].name], direction[16];
    uint64_t byte_count = 0;
    find_text(line, line_bytes, "\"channel\":", name, sizeof name);
    find_text(line, line_bytes, "\"direction\":", direction, sizeof direction);
    bp_summary_channel *channel = find_channel(summary, name);
    if (channel == NULL) {
        summary->other_message_count++;
        return BUGPACK_OK;
    }
    size_t way = strcmp(direction, "received") == 0;
    (void)find_fixed(line, line_bytes, "\"bytes\":", 0, &byte_count);
    channel->messages[way]++;
    channel->bytes[way] += byte_count;
    channel->last_wall_ns = find_time(line, line_bytes);
    return BUGPACK_OK;
}

const bp_summary_line_reader bp_summary_line_readers[] = {{"metrics-history.jsonl", add_sample},
                                                          {"logs.jsonl", add_record},
                                                          {"traffic-index.jsonl", add_message}};
const size_t bp_summary_line_reader_count =
    sizeof bp_summary_line_readers / sizeof bp_summary_line_readers[0];
