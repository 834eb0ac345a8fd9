#include "unit/logged_session.h"

#include "base/buffer.h"

void logged_setup(void) {
    setup();
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.log_level = BUGPACK_LEVEL_TRACE;
    open_session();
}

/* Copies what stands between `before` and `after` in a line; "-" when it is not there. */
static void copy_between(const char *line, const char *before, const char *after, bp_buffer *out) {
    const char *end = strchr(line, '\n');
    const char *at = strstr(line, before);
    if (at == NULL || at > end) {
        (void)bp_buffer_append_char(out, '-');
    } else {
        at += strlen(before);
        (void)bp_buffer_append(out, at, (size_t)(strstr(at, after) - at));
    }
    (void)bp_buffer_append_char(out, ' ');
}

void expect_logged(const char *expected) {
    take(NULL);
    char *text = report_read(taken.path, "logs.jsonl", NULL);
    cr_assert(ne(ptr, text, NULL));
    BUFFER(out, 1 << 20);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        copy_between(line, "\"level\":\"", "\"", &out);
        copy_between(line, "\"channel\":\"", "\"", &out);
        const char *message = strstr(line, "\"message\":") + strlen("\"message\":");
        (void)bp_buffer_append(&out, message, (size_t)(strstr(message, "}\n") - message));
        (void)bp_buffer_append_char(&out, '\n');
    }
    free(text);
    cr_assert(eq(str, bp_buffer_text(&out), expected));
}
