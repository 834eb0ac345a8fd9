#include "unit/logged_session.h"

#include "base/buffer.h"
#include "support/report_reader.h"
#include "unit/unit.h"

logged open_logged(void) {
    logged made = {.session = NULL};
    cr_assert(temp_dir_make(&made.dir));
    bugpack_options options = quick_options(&made.dir);
    options.sample_window_ms = BUGPACK_OFF;
    options.log_level = BUGPACK_LEVEL_TRACE;
    made.session = open_session(&options);
    return made;
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

static bp_buffer close_logged(logged *made) {
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    cr_assert(zero(int, bugpack_report(made->session, NULL, &result)), "%s", result.error.message);
    char *text = report_read(result.path, "logs.jsonl", NULL);
    cr_assert(ne(ptr, text, NULL));
    bp_buffer out;
    bp_buffer_init(&out, 1 << 20);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        copy_between(line, "\"level\":\"", "\"", &out);
        copy_between(line, "\"channel\":\"", "\"", &out);
        const char *message = strstr(line, "\"message\":") + strlen("\"message\":");
        (void)bp_buffer_append(&out, message, (size_t)(strstr(message, "}\n") - message));
        (void)bp_buffer_append_char(&out, '\n');
    }
    free(text);
    bugpack_close(made->session);
    temp_dir_remove(&made->dir);
    return out;
}

void expect_logged(logged *made, const char *expected) {
    bp_buffer text = close_logged(made);
    cr_assert(eq(str, bp_buffer_text(&text), expected));
    bp_buffer_release(&text);
}
