#include "hosts/spice/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *spice_quote(char *quoted, size_t size, const char *text) {
    size_t at = 0;
    quoted[at++] = '"';
    for (const char *c = text; *c != '\0' && at + 4 < size; c++) {
        if (*c == '"' || *c == '\\') {
            quoted[at++] = '\\';
        }
        quoted[at++] = *c >= ' ' && *c <= '~' ? *c : '?';
    }
    quoted[at++] = '"';
    quoted[at] = '\0';
    return quoted;
}

void spice_say(bool is_json, const char *event, const char *fields, const char *format, ...) {
    char text[4400];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    flockfile(stdout);
    if (is_json) {
        char quoted[2 * sizeof text];
        printf("{\"event\": \"%s\", \"text\": %s%s%s}\n", event,
               spice_quote(quoted, sizeof quoted, text), *fields ? ", " : "", fields);
    } else if (isatty(STDOUT_FILENO)) {
        printf("\r\033[K%s%s", text, strcmp(event, "second") == 0 ? "" : "\r\n");
    } else {
        printf("%s\n", text);
    }
    (void)fflush(stdout);
    funlockfile(stdout);
}
