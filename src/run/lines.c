#include "run/lines.h"

#include <stdlib.h>

#include "recorder/line_splitter.h"

struct stream_lines {
    const bp_run_lines *lines;
    bp_run_stream stream;
    bp_line_splitter splitter;
};

struct bp_run_lines {
    bp_run_line_taker *take;
    void *context;
    struct stream_lines streams[BP_RUN_STREAM_COUNT];
};

static void take_line(void *context, const char *line, size_t line_bytes) {
    const struct stream_lines *stream = context;
    stream->lines->take(stream->lines->context, stream->stream, line, line_bytes);
}

bp_run_lines *bp_run_lines_new(bp_run_line_taker *take, void *context) {
    bp_run_lines *lines = calloc(1, sizeof *lines);
    if (lines == NULL) {
        return NULL;
    }
    lines->take = take;
    lines->context = context;
    for (size_t i = 0; i < BP_RUN_STREAM_COUNT; i++) {
        struct stream_lines *stream = &lines->streams[i];
        stream->lines = lines;
        stream->stream = (bp_run_stream)i;
        bp_line_splitter_init(&stream->splitter, take_line, stream);
    }
    return lines;
}

void bp_run_lines_free(bp_run_lines *lines) {
    free(lines);
}

void bp_run_lines_feed(bp_run_lines *lines, bp_run_stream stream, const char *bytes,
                       size_t byte_count) {
    bp_line_splitter_feed(&lines->streams[stream].splitter, bytes, byte_count);
}

void bp_run_lines_flush(bp_run_lines *lines) {
    for (size_t i = 0; i < BP_RUN_STREAM_COUNT; i++) {
        bp_line_splitter_flush(&lines->streams[i].splitter);
    }
}
