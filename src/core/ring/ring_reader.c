#include "ring/ring_reader.h"

#include <string.h>

#include "ring/frame.h"

static const size_t window_bytes = 64 * 1024;

bugpack_status bp_ring_copy_to_file(bp_ring *ring, uint64_t until_ns, int dir_fd,
                                    const bp_cancel_token *token, bp_temp_file *ret_records,
                                    bp_ring_view *ret_view, bugpack_error *error) {
    bugpack_status status = bp_temp_file_open(ret_records, dir_fd, UINT64_MAX, error);
    ret_records->token = token;
    if (status == BUGPACK_OK) {
        status = bp_ring_copy(ring, until_ns, bp_temp_file_sink, ret_records, ret_view, error);
    }
    return status == BUGPACK_OK ? bp_temp_file_flush(ret_records, error) : status;
}

void bp_ring_reader_init(bp_ring_reader *reader, const bp_temp_file *temp_file) {
    *reader = (bp_ring_reader){.temp_file = temp_file};
    bp_buffer_init(&reader->window, BP_FRAME_CAPACITY_MAX);
}

void bp_ring_reader_release(bp_ring_reader *reader) {
    bp_buffer_release(&reader->window);
}

/* The next `byte_count` bytes of the file; NULL when it has fewer. */
static const char *see(bp_ring_reader *reader, size_t byte_count) {
    bp_buffer *window = &reader->window;
    if (window->size - reader->window_offset < byte_count) {
        bp_buffer_clear(window);
        reader->window_offset = 0;
        size_t wanted = byte_count > window_bytes ? byte_count : window_bytes;
        while (window->size < byte_count) {
            char *end = bp_buffer_reserve(window, wanted - window->size);
            int64_t got = end == NULL
                              ? -1
                              : bp_temp_file_read(reader->temp_file, reader->offset + window->size,
                                                  end, wanted - window->size);
            if (got <= 0) {
                return NULL;
            }
            bp_buffer_commit(window, (size_t)got);
        }
    }
    return window->data + reader->window_offset;
}

const bp_ring_record *bp_ring_reader_next(bp_ring_reader *reader, const void **ret_payload) {
    const char *at = see(reader, sizeof(bp_ring_record));
    if (at == NULL) {
        return NULL;
    }
    bp_ring_record record;
    memcpy(&record, at, sizeof record);
    uint64_t record_bytes = sizeof record + bp_frame_padded(record.payload_bytes);
    if (record_bytes > reader->temp_file->size - reader->offset) {
        return NULL;
    }
    at = see(reader, (size_t)record_bytes);
    if (at == NULL) {
        return NULL;
    }
    reader->offset += record_bytes;
    reader->window_offset += (size_t)record_bytes;
    *ret_payload = at + sizeof record;
    return (const void *)at;
}
