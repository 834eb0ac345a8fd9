/*
 * What comes of a stream, read back from logs.jsonl.
 */
#include <errno.h>
#include <sys/wait.h>

#include "base/buffer.h"
#include "unit/logged_session.h"

static FILE *open_stream(bugpack_level level, const char *channel) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    FILE *stream = bugpack_log_stream(session, level, channel, &error);
    cr_assert(ne(ptr, stream, NULL), "%s", error.message);
    return stream;
}

TestSuite(log_stream, .init = logged_setup, .fini = teardown);

Test(log_stream, makes_a_record_of_each_line_of_a_stream) {
    FILE *stream = open_stream(BUGPACK_LEVEL_WARN, "gst");
    cr_assert(eq(int, fprintf(stream, "one %d\ntw", 1), 8));
    cr_assert(ge(int, fputs("o\r\n\nthree", stream), 0));
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "between");
    (void)fputc('\n', stream);
    cr_assert(eq(sz, fwrite("a\0b\xff\n", 1, 5, stream), 5));
    cr_assert(zero(int, fclose(stream)));
    expect_logged("warn gst \"one 1\"\nwarn gst \"two\"\nwarn gst \"\"\ninfo - \"between\"\n"
                  "warn gst \"three\"\nwarn gst \"a\xEE\xBC\x80"
                  "b\xEE\xBF\xBF\"\n");
}

Test(log_stream, makes_a_record_of_a_partial_line_at_a_flush_and_at_the_end) {
    FILE *stream = open_stream(BUGPACK_LEVEL_INFO, NULL);
    (void)fputs("connecting", stream);
    cr_assert(zero(int, fflush(stream)));
    (void)fputs(" ... done\nand", stream);
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "between");
    cr_assert(zero(int, fclose(stream)));
    expect_logged("info - \"connecting\",\"unfinished\":true\n"
                  "info - \" ... done\",\"continues\":true\n"
                  "info - \"between\"\ninfo - \"and\",\"unfinished\":true\n");
}

static void append_record(bp_buffer *expected, size_t length, const char *more) {
    (void)bp_buffer_append_text(expected, "info - \"");
    for (size_t i = 0; i < length; i++) {
        (void)bp_buffer_append_char(expected, 'x');
    }
    (void)bp_buffer_printf(expected, "%s\n", more);
}

/* A line of `length` x, written in one call and in one for each byte. */
static void expect_long_line(size_t length) {
    FILE *stream = open_stream(BUGPACK_LEVEL_INFO, NULL);
    char *line = malloc(length + 1);
    memset(line, 'x', length);
    line[length] = '\n';
    BUFFER(expected, 1 << 20);
    for (unsigned way = 0; way < 2; way++) {
        (void)fputs("before\n", stream);
        append_record(&expected, 0, "before\"");
        for (size_t at = 0; at <= length; at += way == 0 ? length + 1 : 1) {
            (void)fwrite(line + at, 1, way == 0 ? length + 1 : 1, stream);
        }
        size_t left = length;
        for (; left > BUGPACK_LOG_MESSAGE_MAX_BYTES; left -= BUGPACK_LOG_MESSAGE_MAX_BYTES) {
            append_record(&expected, BUGPACK_LOG_MESSAGE_MAX_BYTES,
                          left == length ? "\",\"unfinished\":true"
                                         : "\",\"continues\":true,\"unfinished\":true");
        }
        append_record(&expected, left, left == length ? "\"" : "\",\"continues\":true");
    }
    cr_assert(zero(int, fclose(stream)));
    expect_logged(bp_buffer_text(&expected));
    free(line);
    bugpack_close(session);
    open_session(); /* with an empty log */
}

Test(log_stream, cuts_a_long_line_into_records_at_the_same_places_however_it_is_written) {
    static const size_t lengths[] = {4095, 4096, 4097, 8191, 8192, 8193, 12288, 50000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        expect_long_line(lengths[i]);
    }
}

Test(log_stream, gives_a_stream_without_a_descriptor_that_keeps_errno) {
    FILE *stream = open_stream(BUGPACK_LEVEL_INFO, NULL);
    cr_assert(eq(int, fileno(stream), -1));
    errno = ENOTTY;
    (void)fputs("line\n", stream);
    cr_assert(eq(int, errno, ENOTTY));
    cr_assert(zero(int, ferror(stream)));
    cr_assert(zero(int, fclose(stream)));
    expect_logged("info - \"line\"\n");
}

Test(log_stream, records_a_stream_without_buffer_piece_by_piece) {
    FILE *stream = open_stream(BUGPACK_LEVEL_INFO, NULL);
    cr_assert(zero(int, setvbuf(stream, NULL, _IONBF, 0)));
    (void)fputs("a", stream);
    (void)fputs("b\n", stream);
    cr_assert(zero(int, fclose(stream)));
    expect_logged("info - \"a\",\"unfinished\":true\ninfo - \"b\",\"continues\":true\n");
}

Test(log_stream, refuses_a_stream_of_no_session_or_level) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(eq(ptr, bugpack_log_stream(NULL, BUGPACK_LEVEL_INFO, NULL, &error), NULL));
    cr_assert(eq(int, error.status, BUGPACK_ERR_INVALID));
    error.status = BUGPACK_OK;
    cr_assert(eq(ptr, bugpack_log_stream(session, BUGPACK_LEVEL_OFF, NULL, &error), NULL));
    cr_assert(eq(int, error.status, BUGPACK_ERR_INVALID));
    expect_logged("");
}

Test(log_stream, keeps_what_a_forked_child_writes_out_of_the_log) {
    FILE *stream = open_stream(BUGPACK_LEVEL_INFO, NULL);
    (void)fputs("pending", stream);
    pid_t child = fork();
    if (child == 0) {
        (void)fputs(" in the child\n", stream);
        bool is_inert = bugpack_log_stream(session, BUGPACK_LEVEL_INFO, NULL, NULL) == NULL;
        _exit(fclose(stream) == 0 && is_inert ? 0 : 1);
    }
    int status = -1;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(zero(int, status));
    (void)fputs(" in the parent\n", stream);
    cr_assert(zero(int, fclose(stream)));
    expect_logged("info - \"pending in the parent\"\n");
}
