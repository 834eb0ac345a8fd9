#include "cli/screen.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/output.h"

/* The screen: how wide it is, and what it can show. */
static struct {
    size_t columns; /* 0: a line is never cut */
    bool has_colour, has_utf8;
} screen;

static bool is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return strstr(value, "UTF-8") != NULL || strstr(value, "utf8") != NULL;
        }
    }
    return false;
}

void bp_screen_look(void) {
    struct winsize size;
    bool is_terminal = bp_cli_is_terminal(STDOUT_FILENO);
    screen.has_colour = is_terminal && bp_cli_wants_colour();
    screen.has_utf8 = is_utf8();
    bool is_known = is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    screen.columns = is_terminal ? 80 : 0;
    if (is_known) {
        screen.columns = size.ws_col;
    }
}

bool bp_screen_has_utf8(void) {
    return screen.has_utf8;
}

size_t bp_screen_columns_left(size_t used) {
    if (screen.columns == 0) {
        return SIZE_MAX;
    }
    return used < screen.columns ? screen.columns - used : 0;
}

static void set_style(int style) {
    if (screen.has_colour) {
        (void)printf("\033[%dm", style);
    }
}

/* Where the text ends that fits behind `used` columns. */
static const char *find_fit(const char *text, size_t used) {
    while (*text != '\0') {
        bool is_safe;
        size_t length = bp_cli_next_character(text, &is_safe);
        used += length >= 3 ? 2 : 1;
        if (screen.columns > 0 && used > screen.columns) {
            break;
        }
        text += length;
    }
    return text;
}

/* Escapes a text into one line. */
static void format_line(char *out, size_t out_bytes, const char *format, va_list arguments)
    BUGPACK_PRINTF(3, 0);
static void format_line(char *out, size_t out_bytes, const char *format, va_list arguments) {
    char text[2048];
    (void)vsnprintf(text, sizeof text, format, arguments);
    for (char *tab = text; (tab = strchr(tab, '\t')) != NULL;) {
        *tab = ' ';
    }
    bp_cli_escape(text, out, out_bytes);
}

enum { line_bytes = 4 * 2048 };

static void put_line(int style, const char *text, const char *end) {
    set_style(style);
    (void)printf("%.*s", (int)(end - text), text);
    set_style(BP_SCREEN_PLAIN);
    (void)fputc('\n', stdout);
}

void bp_screen_print(int style, const char *format, ...) {
    char text[line_bytes];
    va_list arguments;
    va_start(arguments, format);
    format_line(text, sizeof text, format, arguments);
    va_end(arguments);
    put_line(style, text, find_fit(text, 0));
}

void bp_screen_wrap(int style, size_t indent, const char *format, ...) {
    char text[line_bytes];
    va_list arguments;
    va_start(arguments, format);
    format_line(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *at = text;
    for (size_t used = 0; *at != '\0'; used = indent) {
        const char *fit = find_fit(at, used), *end = fit;
        while (*fit != '\0' && *fit != ' ' && end > at && end[-1] != ' ') {
            end--;
        }
        end = end > at ? end : fit; /* a word that is longer than the line */
        end = end > at ? end : at + strlen(at);
        (void)printf("%*s", (int)used, "");
        put_line(style, at, end);
        at = end + strspn(end, " ");
    }
}

void bp_screen_heading(const char *title) {
    (void)fputc('\n', stdout);
    bp_screen_print(BP_SCREEN_BOLD, "%s", title);
}
