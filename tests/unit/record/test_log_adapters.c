/*
 * What comes of a stream, of GLib's shape and of syslog's, read back from logs.jsonl.
 */
#include <errno.h>
#include <sys/wait.h>

#include "base/buffer.h"
#include "support/not_tried.h"
#include "unit/logged_session.h"

static FILE *open_stream(bugpack_level level, const char *channel) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    FILE *stream = bugpack_log_stream(session, level, channel, &error);
    cr_assert(ne(ptr, stream, NULL), "%s", error.message);
    return stream;
}

TestSuite(log_adapters, .init = logged_setup, .fini = teardown);

Test(log_adapters, makes_a_record_of_each_line_of_a_stream) {
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

Test(log_adapters, makes_a_record_of_a_partial_line_at_a_flush_and_at_the_end) {
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
    bp_buffer expected;
    bp_buffer_init(&expected, 1 << 20);
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
    bp_buffer_release(&expected);
    free(line);
    bugpack_close(session);
    open_session(); /* with an empty log */
}

Test(log_adapters, cuts_a_long_line_into_records_at_the_same_places_however_it_is_written) {
    static const size_t lengths[] = {4095, 4096, 4097, 8191, 8192, 8193, 12288, 50000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        expect_long_line(lengths[i]);
    }
}

Test(log_adapters, gives_a_stream_without_a_descriptor_that_keeps_errno) {
    FILE *stream = open_stream(BUGPACK_LEVEL_INFO, NULL);
    cr_assert(eq(int, fileno(stream), -1));
    errno = ENOTTY;
    (void)fputs("line\n", stream);
    cr_assert(eq(int, errno, ENOTTY));
    cr_assert(zero(int, ferror(stream)));
    cr_assert(zero(int, fclose(stream)));
    expect_logged("info - \"line\"\n");
}

Test(log_adapters, records_a_stream_without_buffer_piece_by_piece) {
    FILE *stream = open_stream(BUGPACK_LEVEL_INFO, NULL);
    cr_assert(zero(int, setvbuf(stream, NULL, _IONBF, 0)));
    (void)fputs("a", stream);
    (void)fputs("b\n", stream);
    cr_assert(zero(int, fclose(stream)));
    expect_logged("info - \"a\",\"unfinished\":true\ninfo - \"b\",\"continues\":true\n");
}

Test(log_adapters, refuses_a_stream_of_no_session_or_level) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(eq(ptr, bugpack_log_stream(NULL, BUGPACK_LEVEL_INFO, NULL, &error), NULL));
    cr_assert(eq(int, error.status, BUGPACK_ERR_INVALID));
    error.status = BUGPACK_OK;
    cr_assert(eq(ptr, bugpack_log_stream(session, BUGPACK_LEVEL_OFF, NULL, &error), NULL));
    cr_assert(eq(int, error.status, BUGPACK_ERR_INVALID));
    expect_logged("");
}

Test(log_adapters, keeps_what_a_forked_child_writes_out_of_the_log) {
    FILE *stream = open_stream(BUGPACK_LEVEL_INFO, NULL);
    (void)fputs("pending", stream);
    pid_t child = fork();
    if (child == 0) {
        (void)fputs(" in the child\n", stream);
        bool is_inert = bugpack_log_stream(session, BUGPACK_LEVEL_INFO, NULL, NULL) == NULL;
        bugpack_log_glib("child", 1 << 4, "child", session);
        bugpack_syslog(session, 3, "child");
        _exit(fclose(stream) == 0 && is_inert ? 0 : 1);
    }
    int status = -1;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(zero(int, status));
    (void)fputs(" in the parent\n", stream);
    cr_assert(zero(int, fclose(stream)));
    expect_logged("info - \"pending in the parent\"\n");
}

Test(log_adapters, takes_the_levels_of_glib) {
    static const int flags[] = {1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 0};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        /* recursion and fatal, which say nothing of how severe it is */
        bugpack_log_glib("Gtk", flags[i] | 1 << 0 | 1 << 1, "m", session);
    }
    bugpack_log_glib(NULL, 1 << 4 | 1 << 7, "no domain, 100 %s", session);
    bugpack_log_glib("Gtk", 1 << 4, NULL, session);
    bugpack_log_glib("Gtk", 1 << 4, "nobody listens", NULL);
    expect_logged("fatal Gtk \"m\"\nerror Gtk \"m\"\nwarn Gtk \"m\"\ninfo Gtk \"m\"\n"
                  "info Gtk \"m\"\ndebug Gtk \"m\"\ninfo Gtk \"m\"\ninfo Gtk \"m\"\n"
                  "warn - \"no domain, 100 %s\"\n");
}

Test(log_adapters, takes_the_priorities_of_syslog_whatever_the_facility) {
    for (int priority = 0; priority < 8; priority++) {
        bugpack_syslog(session, priority | (priority * 3) << 3, "p%d\n", priority);
    }
    bugpack_syslog(NULL, 3, "nobody listens");
    expect_logged("fatal - \"p0\"\nfatal - \"p1\"\nfatal - \"p2\"\nerror - \"p3\"\n"
                  "warn - \"p4\"\ninfo - \"p5\"\ninfo - \"p6\"\ndebug - \"p7\"\n");
}

BUGPACK_PRINTF(1, 2)
static void wrap(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bugpack_logv(session, BUGPACK_LEVEL_WARN, "wrapped", format, arguments);
    va_end(arguments);
    va_start(arguments, format);
    bugpack_vsyslog(session, 3, format, arguments);
    va_end(arguments);
}

Test(log_adapters, takes_the_arguments_of_a_function_that_wraps_it) {
    wrap("%s %d", "one", 2);
    expect_logged("warn wrapped \"one 2\"\nerror - \"one 2\"\n");
}

/* "%m" is an extension that a pedantic compiler warns of. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
Test(log_adapters, expands_the_error_of_the_moment_and_keeps_it) {
    char probe[64];
    errno = ENOENT;
    (void)snprintf(probe, sizeof probe, "open: %m (%d)", 7);
    if (strcmp(probe, "open: No such file or directory (7)") != 0) {
        not_tried("this C library's printf does not know %%m");
    }
    errno = ENOENT;
    bugpack_syslog(session, 3, "open: %m (%d)", 7);
    cr_assert(eq(int, errno, ENOENT));
    expect_logged("error - \"open: No such file or directory (7)\"\n");
}
#pragma GCC diagnostic pop

Test(log_adapters, says_where_syslog_was_too_long) {
    char text[BUGPACK_LOG_MESSAGE_MAX_BYTES + 100];
    memset(text, 'x', sizeof text);
    const int most = BUGPACK_LOG_MESSAGE_MAX_BYTES;
    bugpack_syslog(session, 6, "%.*s\n", most, text);
    bugpack_syslog(session, 6, "%.*s", most + 1, text);
    bugpack_syslog(session, 6, "%.*s", most + 90, text);
    BUFFER(expected, 1 << 20);
    append_record(&expected, most, "\"");
    append_record(&expected, most, "\",\"truncated\":true");
    append_record(&expected, most, "\",\"truncated\":true");
    expect_logged(bp_buffer_text(&expected));
}
