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
    screen.columns = is_known ? size.ws_col : is_terminal ? 80 : 0;
}

bool bp_screen_has_utf8(void) {
    return screen.has_utf8;
}

size_t bp_screen_columns_left(size_t used) {
    return screen.columns == 0 ? SIZE_MAX : used < screen.columns ? screen.columns - used : 0;
}

static void set_style(int style) {
    if (screen.has_colour) {
        (void)printf("\033[%dm", style);
    }
}

void bp_screen_print(int style, const char *format, ...) {
    size_t used = 0;
    char text[2048], escaped[4 * sizeof text];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *tab = text; (tab = strchr(tab, '\t')) != NULL;) {
        *tab = ' ';
    }
    bp_cli_escape(text, escaped, sizeof escaped);
    const char *end = escaped;
    while (*end != '\0') {
        bool is_safe;
        size_t length = bp_cli_next_character(end, &is_safe);
        used += length >= 3 ? 2 : 1;
        if (screen.columns > 0 && used > screen.columns) {
            break;
        }
        end += length;
    }
    set_style(style);
    (void)printf("%.*s", (int)(end - escaped), escaped);
    set_style(BP_SCREEN_PLAIN);
    (void)fputc('\n', stdout);
}

void bp_screen_heading(const char *title) {
    (void)fputc('\n', stdout);
    bp_screen_print(BP_SCREEN_BOLD, "%s", title);
}
