#include "recorder/log_recorder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "platform/thread.h"
#include "json/json.h"

struct bp_log_recorder {
    bp_ring *ring;
    bugpack_level level;
    size_t message_max_bytes; /* so that each record fits its ring */
};

/* How a record lies in the ring: this, then channel, thread name and message without any NUL. */
typedef struct log_header {
    uint64_t tid;
    uint32_t message_bytes;
    uint8_t channel_bytes;
    uint8_t thread_bytes;
    uint8_t level;
    uint8_t is_cut;
} log_header;

/* The ring refuses a record over a limit of its own, and what is refused cannot be told of. */
static size_t message_max_bytes(const bp_ring *ring) {
    const size_t beside = sizeof(log_header) + BUGPACK_CHANNEL_MAX_BYTES + BP_THREAD_NAME_BYTES;
    size_t room = bp_ring_payload_max_bytes(ring) - beside;
    return room < BUGPACK_LOG_MESSAGE_MAX_BYTES ? room : BUGPACK_LOG_MESSAGE_MAX_BYTES;
}

bugpack_status bp_log_recorder_new(size_t capacity_bytes, bugpack_level level,
                                   bp_log_recorder **ret_recorder, bugpack_error *error) {
    bp_log_recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL) {
        return bp_fail_memory(error, "make a log");
    }
    recorder->level = level;
    bugpack_status status = bp_ring_new(capacity_bytes, &recorder->ring, error);
    if (status != BUGPACK_OK) {
        free(recorder);
        return status;
    }
    recorder->message_max_bytes = message_max_bytes(recorder->ring);
    *ret_recorder = recorder;
    return BUGPACK_OK;
}

void bp_log_recorder_free(bp_log_recorder *recorder) {
    if (recorder != NULL) {
        bp_ring_free(recorder->ring);
        free(recorder);
    }
}

bool bp_log_recorder_wants(const bp_log_recorder *recorder, bugpack_level level) {
    return level >= recorder->level && level <= BUGPACK_FATAL;
}

void bp_log_recorder_append(bp_log_recorder *recorder, bugpack_level level, const char *channel,
                            const void *message, size_t message_bytes, bool was_cut) {
    char thread[BP_THREAD_NAME_BYTES];
    bp_thread_name(thread);
    size_t kept = bp_utf8_cut(message, message_bytes, recorder->message_max_bytes);
    size_t given_bytes = channel == NULL ? 0 : strnlen(channel, BUGPACK_CHANNEL_MAX_BYTES + 1);
    size_t channel_bytes = bp_utf8_cut(channel, given_bytes, BUGPACK_CHANNEL_MAX_BYTES);
    log_header header = {.tid = bp_thread_id(),
                         .message_bytes = (uint32_t)kept,
                         .channel_bytes = (uint8_t)channel_bytes,
                         .thread_bytes = (uint8_t)strlen(thread),
                         .level = (uint8_t)level,
                         .is_cut = was_cut || kept < message_bytes || channel_bytes < given_bytes};
    /* iovec has no const form; the ring only reads. */
    const struct iovec parts[] = {
        {.iov_base = &header, .iov_len = sizeof header},
        {.iov_base = (void *)(uintptr_t)channel, .iov_len = channel_bytes},
        {.iov_base = thread, .iov_len = header.thread_bytes},
        {.iov_base = (void *)(uintptr_t)message, .iov_len = kept}};
    (void)bp_ring_append(recorder->ring, 0, parts, sizeof parts / sizeof parts[0]);
}

uint64_t bp_log_recorder_mark(bp_log_recorder *recorder) {
    (void)recorder;
    return bp_clock_monotonic_ns();
}

static const char *level_name(uint8_t level) {
    static const char *const names[] = {"trace", "debug", "info", "warn", "error", "fatal"};
    return level < sizeof names / sizeof names[0] ? names[level] : "unknown";
}

/* Streamed, not built as a tree: a report may hold a hundred thousand of these. */
static void print_record(const bp_ring_record *record, uint64_t wall_ns, const log_header *header,
                         const char *text, bp_buffer *out) {
    char time[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(wall_ns, time);
    (void)bp_buffer_printf(out,
                           "{\"seq\":%llu,\"time\":\"%s\",\"monotonic_ns\":%llu,\"level\":\"%s\"",
                           (unsigned long long)record->sequence, time,
                           (unsigned long long)record->monotonic_ns, level_name(header->level));
    if (header->channel_bytes > 0) {
        (void)bp_buffer_append_text(out, ",\"channel\":");
        (void)bp_json_append_string(out, text, header->channel_bytes);
    }
    text += header->channel_bytes;
    (void)bp_buffer_printf(out, ",\"tid\":%llu,\"thread\":", (unsigned long long)header->tid);
    (void)bp_json_append_string(out, text, header->thread_bytes);
    text += header->thread_bytes;
    (void)bp_buffer_append_text(out, ",\"message\":");
    (void)bp_json_append_string(out, text, header->message_bytes);
    (void)bp_buffer_append_text(out, header->is_cut ? ",\"truncated\":true}\n" : "}\n");
}

static bugpack_status keep(void *buffer, const void *bytes, size_t byte_count) {
    return bp_buffer_append(buffer, bytes, byte_count);
}

bugpack_status bp_log_recorder_print(bp_log_recorder *recorder, uint64_t mark, bp_buffer *out,
                                     bp_log_extent *ret_extent, bugpack_error *error) {
    bp_buffer copy;
    bp_buffer_init(&copy, SIZE_MAX / 4);
    bp_log_extent extent = {0};
    bugpack_status status = bp_ring_copy(recorder->ring, mark, keep, &copy, &extent.view, error);
    bp_instant now = bp_clock_now();
    for (size_t offset = 0; status == BUGPACK_OK && offset < copy.size;) {
        const bp_ring_record *record = (const void *)(copy.data + offset);
        const char *payload = copy.data + offset + sizeof *record;
        log_header header;
        memcpy(&header, payload, sizeof header);
        uint64_t wall_ns = now.wall_ns - (now.monotonic_ns - record->monotonic_ns);
        print_record(record, wall_ns, &header, payload + sizeof header, out);
        if (extent.from_wall_ns == 0) {
            extent.from_wall_ns = wall_ns;
        }
        extent.to_wall_ns = wall_ns;
        offset += sizeof *record + ((record->payload_bytes + 7u) & ~(size_t)7);
    }
    bp_buffer_release(&copy);
    if (status == BUGPACK_OK && out->status != BUGPACK_OK) {
        status = bp_fail_memory(error, "write the log");
    }
    if (status == BUGPACK_OK) {
        *ret_extent = extent;
    }
    return status;
}
