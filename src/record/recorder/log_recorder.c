#include "recorder/log_recorder.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "model/fields.h"
#include "platform/thread.h"
#include "redact/redactor.h"
#include "ring/ring_reader.h"

/* Flags of a record, as the files of earlier versions have them. */
enum { was_cut = 1, continues = 2, unfinished = 4 };

/* A record: this, then channel, thread name and message without a NUL. */
typedef struct log_header {
    uint64_t tid;
    uint32_t message_bytes;
    uint8_t channel_bytes;
    uint8_t thread_bytes;
    uint8_t level;
    uint8_t flags;
} log_header;

struct bp_log_recorder {
    bp_ring *ring;
    atomic_int level;
    size_t message_max_bytes; /* limited by a small ring */
};

bugpack_status bp_log_recorder_new(bp_ring *ring, bugpack_level level,
                                   bp_log_recorder **ret_recorder, bugpack_error *error) {
    bp_log_recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL) {
        return bp_fail_memory(error, "make a log");
    }
    recorder->ring = ring;
    size_t beside_bytes = sizeof(log_header) + BUGPACK_CHANNEL_MAX_BYTES + BP_THREAD_NAME_BYTES;
    size_t room_bytes = bp_ring_payload_max(ring) - beside_bytes;
    recorder->message_max_bytes =
        room_bytes < BUGPACK_LOG_MESSAGE_MAX_BYTES ? room_bytes : BUGPACK_LOG_MESSAGE_MAX_BYTES;
    atomic_init(&recorder->level, (int)level);
    *ret_recorder = recorder;
    return BUGPACK_OK;
}

void bp_log_recorder_close(bp_log_recorder *recorder) {
    /* So that no more messages are formatted. */
    atomic_store_explicit(&recorder->level, INT_MAX, memory_order_relaxed);
    bp_ring_close(recorder->ring);
}

void bp_log_recorder_free(bp_log_recorder *recorder) {
    if (recorder != NULL) {
        bp_ring_free(recorder->ring);
        free(recorder);
    }
}

bool bp_log_recorder_wants(const bp_log_recorder *recorder, bugpack_level level) {
    return (int)level >= atomic_load_explicit(&recorder->level, memory_order_relaxed) &&
           level <= BUGPACK_LEVEL_FATAL;
}

void bp_log_recorder_set_level(bp_log_recorder *recorder, bugpack_level level) {
    atomic_store_explicit(&recorder->level, (int)level, memory_order_relaxed);
}

void bp_log_recorder_append(bp_log_recorder *recorder, bugpack_level level, const char *channel,
                            const void *message, size_t message_bytes, unsigned part) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    size_t thread_bytes = 0;
    const char *thread = bp_thread_recent_name(now_ns, &thread_bytes);
    size_t kept = bp_utf8_cut(message, message_bytes, recorder->message_max_bytes);
    size_t given = channel == NULL ? 0 : strnlen(channel, BUGPACK_CHANNEL_MAX_BYTES + 1);
    size_t channel_bytes = bp_utf8_cut(channel, given, BUGPACK_CHANNEL_MAX_BYTES);
    bool is_cut = (part & BP_PART_WAS_CUT) != 0 || kept < message_bytes || channel_bytes < given;
    unsigned flags = (is_cut ? was_cut : 0u) |
                     ((part & BUGPACK_PART_CONTINUES) != 0 ? continues : 0u) |
                     ((part & BUGPACK_PART_UNFINISHED) != 0 ? unfinished : 0u);
    log_header header = {.tid = bp_thread_id(),
                         .message_bytes = (uint32_t)kept,
                         .channel_bytes = (uint8_t)channel_bytes,
                         .thread_bytes = (uint8_t)thread_bytes,
                         .level = (uint8_t)level,
                         .flags = (uint8_t)flags};
    /* iovec has no const form; the ring only reads. */
    const struct iovec parts[] = {
        {.iov_base = &header, .iov_len = sizeof header},
        {.iov_base = (void *)(uintptr_t)channel, .iov_len = channel_bytes},
        {.iov_base = (void *)(uintptr_t)thread, .iov_len = thread_bytes},
        {.iov_base = (void *)(uintptr_t)message, .iov_len = kept}};
    const bp_ring_entry entry = {
        .monotonic_ns = now_ns, .parts = parts, .part_count = sizeof parts / sizeof parts[0]};
    (void)bp_ring_append_entry(recorder->ring, &entry);
}

/* Streamed, not built as a tree: a report may have a hundred thousand of these. */
static void print_record(const bp_ring_record *record, const log_header *header, const char *text,
                         uint64_t wall_offset_ns, bp_buffer *out) {
    static const struct {
        unsigned flag;
        const char *key;
    } flags[] = {{was_cut, "truncated"}, {continues, "continues"}, {unfinished, "unfinished"}};
    bp_json json;
    bp_json_begin_as(&json, BP_JSON_RECORD, out);
    bp_json_add_uint(&json, "seq", record->sequence);
    bp_model_add_time(&json, "time", record->monotonic_ns + wall_offset_ns);
    bp_json_add_uint(&json, "monotonic_ns", record->monotonic_ns);
    bp_json_add_text(&json, "level", bp_level_name(header->level));
    if (header->channel_bytes > 0) {
        bp_json_add_bytes(&json, "channel", text, header->channel_bytes);
    }
    text += header->channel_bytes;
    bp_json_add_uint(&json, "tid", header->tid);
    bp_json_add_bytes(&json, "thread", text, header->thread_bytes);
    text += header->thread_bytes;
    bp_json_add_bytes(&json, "message", text, header->message_bytes);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        bp_model_add_flag(&json, flags[i].key, (header->flags & flags[i].flag) != 0);
    }
    (void)bp_json_finish(&json, NULL); /* what may fail is the buffer */
}

/* A recovered file may claim anything: the lengths must add up to the payload. */
static bool read_header(const bp_ring_record *record, const void *payload, log_header *ret_header) {
    if (record->payload_bytes < sizeof *ret_header) {
        return false;
    }
    memcpy(ret_header, payload, sizeof *ret_header);
    uint64_t claimed = sizeof *ret_header + (uint64_t)ret_header->channel_bytes +
                       ret_header->thread_bytes + ret_header->message_bytes;
    return claimed == record->payload_bytes;
}

typedef struct following {
    bp_log_reader *reader;
    void *context;
} following;

static bugpack_status read_lines(void *context, const void *bytes, size_t byte_count) {
    const following *to = context;
    const char *at = bytes, *end = at + byte_count;
    while (at < end) {
        const bp_ring_record *record = (const void *)at;
        const char *text = at + sizeof *record + sizeof(log_header);
        log_header header;
        if (read_header(record, record + 1, &header)) {
            const bp_log_text line = {.channel = text,
                                      .message = text + header.channel_bytes + header.thread_bytes,
                                      .channel_bytes = header.channel_bytes,
                                      .message_bytes = header.message_bytes,
                                      .sequence = record->sequence,
                                      .monotonic_ns = record->monotonic_ns};
            to->reader(to->context, &line);
        }
        at += sizeof *record + ((size_t)record->payload_bytes + 7) / 8 * 8;
    }
    return BUGPACK_OK;
}

void bp_log_recorder_follow(bp_log_recorder *recorder, bp_ring_follower *follower, size_t max_bytes,
                            bp_log_reader *reader, void *context, uint64_t *ret_lost_count,
                            bool *ret_is_rest) {
    following to = {reader, context};
    *ret_lost_count = 0;
    *ret_is_rest = false;
    (void)bp_ring_follow(recorder->ring, follower, max_bytes, read_lines, &to, ret_lost_count,
                         ret_is_rest, NULL);
}

bugpack_status bp_log_print(const bp_temp_file *records, uint64_t wall_offset_ns, bp_sink *sink,
                            void *context, bugpack_error *error) {
    bp_ring_reader reader;
    bp_buffer line;
    const void *payload = NULL;
    const bp_ring_record *record;
    bugpack_status status = BUGPACK_OK;
    bp_ring_reader_init(&reader, records);
    bp_buffer_init(&line, (size_t)1 << 20);
    while (status == BUGPACK_OK && (record = bp_ring_reader_next(&reader, &payload)) != NULL) {
        log_header header;
        if (read_header(record, payload, &header)) {
            bp_buffer_clear(&line);
            print_record(record, &header, (const char *)payload + sizeof header, wall_offset_ns,
                         &line);
            status = line.status != BUGPACK_OK ? line.status : sink(context, line.data, line.size);
        }
    }
    /* The reader cannot tell the end from what it could not read. */
    bool is_whole = reader.offset == records->size;
    bp_ring_reader_release(&reader);
    bp_buffer_release(&line);
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "cannot write the log: %s", bugpack_status_name(status));
    }
    return is_whole ? BUGPACK_OK
                    : bp_fail(error, BUGPACK_ERR_IO, "the copied log could not be read back");
}
