#include "inspect/summary_lines.h"

#include <pthread.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "inspect/json_lines.h"
#include "inspect/line_time.h"

static const uint64_t thread_min_bytes = (uint64_t)1 << 20;

double bp_summary_sample_cpu(const bp_summary_sample *sample) {
    return sample->cpu_percent_100 / 100.0;
}

double bp_summary_sample_memory(const bp_summary_sample *sample) {
    return sample->has_rss ? (double)sample->rss_kb / 1024 : -1;
}

bool bp_summary_channel_is_partial(const bp_summary_channel *channel) {
    return channel->recorded_count > channel->messages[0] + channel->messages[1];
}

static bugpack_status add_sample(void *context, const char *line, size_t line_bytes) {
    bp_summary *summary = context;
    bp_json_field fields[] = {{.key = "\"time\""},
                              {.key = "\"cpu_percent\""},
                              {.key = "\"rss_kb\""},
                              {.key = "\"bugpack_kb\""}};
    bp_json_line_find(line, line_bytes, fields, 4);
    bp_summary_sample sample = {.wall_ns = bp_json_line_time(&fields[0].value)};
    uint64_t percent;
    if (sample.wall_ns == 0 || summary->sample_count == BP_SUMMARY_SAMPLE_MAX ||
        !bp_json_token_fixed(&fields[1].value, 2, &percent)) {
        return BUGPACK_OK;
    }
    sample.cpu_percent_100 = percent < UINT32_MAX ? (uint32_t)percent : UINT32_MAX;
    sample.has_rss = bp_json_token_fixed(&fields[2].value, 0, &sample.rss_kb);
    if (bp_json_token_fixed(&fields[3].value, 0, &sample.own_kb) && sample.own_kb > sample.rss_kb) {
        sample.own_kb = sample.rss_kb;
    }
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

static bugpack_status add_record(void *context, const char *line, size_t line_bytes) {
    bp_summary *summary = context;
    bp_json_field fields[] = {{.key = "\"time\""}, {.key = "\"level\""}};
    bp_json_line_find(line, line_bytes, fields, 2);
    int level = read_level(&fields[1].value);
    summary->level_counts[level]++;
    if (level < BUGPACK_LEVEL_WARN) {
        return BUGPACK_OK;
    }
    bp_json_field texts[] = {{.key = "\"channel\""}, {.key = "\"message\""}};
    bp_json_line_find(line, line_bytes, texts, 2);
    bp_summary_record *record = &summary->records[summary->record_count++ % BP_SUMMARY_RECORD_MAX];
    record->wall_ns = bp_json_line_time(&fields[0].value);
    record->level = level;
    bp_json_line_text(&texts[0].value, record->channel, sizeof record->channel);
    bp_json_line_text(&texts[1].value, record->message, sizeof record->message);
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

static bugpack_status add_message(void *context, const char *line, size_t line_bytes) {
    bp_summary *summary = context;
    bp_json_field fields[] = {{.key = "\"time\""},
                              {.key = "\"channel\""},
                              {.key = "\"direction\""},
                              {.key = "\"bytes\""},
                              {.key = "\"seq\""}};
    char name[sizeof summary->channels[0].name];
    uint64_t byte_count = 0, number = 0;
    bp_json_line_find(line, line_bytes, fields, 5);
    bp_json_line_text(&fields[1].value, name, sizeof name);
    bp_summary_channel *channel = find_channel(summary, name);
    if (channel == NULL) {
        summary->other_message_count++;
        return BUGPACK_OK;
    }
    size_t way = bp_json_token_is(&fields[2].value, "\"received\"");
    (void)bp_json_token_fixed(&fields[3].value, 0, &byte_count);
    (void)bp_json_token_fixed(&fields[4].value, 0, &number);
    channel->recorded_count = number > channel->recorded_count ? number : channel->recorded_count;
    channel->messages[way]++;
    channel->bytes[way] += byte_count;
    uint64_t wall_ns = bp_json_line_time(&fields[0].value); /* the clock may have been set back */
    bool is_first =
        wall_ns != 0 && (channel->first_wall_ns == 0 || wall_ns < channel->first_wall_ns);
    channel->first_wall_ns = is_first ? wall_ns : channel->first_wall_ns;
    channel->last_wall_ns = wall_ns > channel->last_wall_ns ? wall_ns : channel->last_wall_ns;
    return BUGPACK_OK;
}

const char *const bp_summary_line_entries[BP_SUMMARY_LINES] = {"metrics-history.jsonl",
                                                               "logs.jsonl", "traffic-index.jsonl"};

/* Each fills parts of the summary that the others do not touch. */
static bp_json_line_taker *const takers[BP_SUMMARY_LINES] = {add_sample, add_record, add_message};

typedef struct line_job {
    bp_summary *summary;
    bp_summary_lines *lines;
    const char *entry;
    bp_json_line_taker *take;
    bool has_thread;
    pthread_t thread;
} line_job;

static void *run_job(void *context) {
    line_job *job = context;
    bp_line_stream stream;
    bp_line_stream_init(&stream, job->take, job->summary);
    job->lines->status = bp_report_file_stream(job->summary->report, job->entry, UINT64_MAX,
                                               bp_line_stream_write, &stream, &job->lines->failure);
    bp_line_stream_release(&stream);
    return NULL;
}

void bp_summary_read_lines(bp_summary *summary, bp_summary_lines lines[BP_SUMMARY_LINES]) {
    line_job jobs[BP_SUMMARY_LINES];
    for (size_t i = 0; i < BP_SUMMARY_LINES; i++) {
        uint64_t byte_count = 0;
        jobs[i] = (line_job){.summary = summary,
                             .lines = &lines[i],
                             .entry = bp_summary_line_entries[i],
                             .take = takers[i]};
        (void)bp_report_file_has(summary->report, jobs[i].entry, &byte_count);
        jobs[i].has_thread = lines[i].is_wanted && byte_count >= thread_min_bytes &&
                             pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]) == 0;
        if (lines[i].is_wanted && !jobs[i].has_thread) {
            (void)run_job(&jobs[i]);
        }
    }
    for (size_t i = 0; i < BP_SUMMARY_LINES; i++) {
        if (jobs[i].has_thread) {
            (void)pthread_join(jobs[i].thread, NULL);
        }
    }
}

bugpack_status bp_summary_keep_tail(void *context, const void *bytes, size_t byte_count) {
    const size_t tail_bytes = BP_SUMMARY_TAIL_BYTES;
    bp_buffer *tail = context;
    const char *next = bytes;
    if (byte_count > tail_bytes) {
        next += byte_count - tail_bytes;
        byte_count = tail_bytes;
    }
    if (tail->size + byte_count > tail_bytes) {
        size_t kept = tail_bytes - byte_count;
        memmove(tail->data, tail->data + tail->size - kept, kept);
        tail->size = kept;
    }
    return bp_buffer_append(tail, next, byte_count);
}

bp_log_errors bp_log_errors_count(const bp_buffer *tail, uint64_t trigger_ns) {
    const bp_line_clock clock = {.until_ns = trigger_ns};
    const char *at = bp_buffer_text(tail), *end = at + tail->size, *next;
    bp_log_errors errors = {.is_cut = tail->size == BP_SUMMARY_TAIL_BYTES, .condition = ""};
    for (; at < end; at = next) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t used = 0;
        bp_line_time time = {0};
        next = newline != NULL ? newline + 1 : end;
        while (at < next && *at == '\0') { /* of a power cut; the line behind them is whole */
            at++;
        }
        size_t length = (size_t)((newline != NULL ? newline : end) - at);
        bool is_recent = bp_line_time_read(at, length, &clock, &time, &used) &&
                         time.wall_ns <= trigger_ns &&
                         trigger_ns - time.wall_ns <= BP_SUMMARY_RECENT_NS;
        if (is_recent && bp_line_level(at + used, length - used) >= BUGPACK_LEVEL_ERROR) {
            errors.count++;
            errors.condition = time.lacks_zone ? " if its times are in UTC" : errors.condition;
            errors.last = at + used;
            errors.last_bytes = length - used;
        }
    }
    return errors;
}
