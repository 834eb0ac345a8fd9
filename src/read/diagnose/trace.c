#include "diagnose/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/utf8.h"
#include "model/frame_text.h"

static bool starts_with(const char *line, const char *words) {
    return strncmp(line, words, strlen(words)) == 0;
}

static bool is_indented(const char *line) {
    return line[0] == ' ' || line[0] == '\t';
}

/* `  File "/srv/app.py", line 12, in work`; faulthandler leaves the second comma out, and an error
 * of syntax the function. Keeps what is there where the file comes with Python. */
static bool take_python(const char *line, char out[BP_TRACE_PLACE_BYTES]) {
    static const char begin[] = "File \"", middle[] = "\", line ";
    char source[BP_EVIDENCE_LINE_BYTES], name[BP_FRAME_NAME_BYTES];
    line += strspn(line, " ");
    const char *end = starts_with(line, begin) ? strstr(line, middle) : NULL;
    const char *number = end != NULL ? end + sizeof middle - 1 : "";
    size_t digits = strspn(number, "0123456789");
    if (digits == 0 || digits > 9) {
        return false;
    }
    const char *path = line + sizeof begin - 1;
    (void)snprintf(source, sizeof source, "%.*s", (int)(end - path), path);
    const char *function = strstr(number, " in ");
    const bp_frame_text frame = {.symbol = function != NULL ? function + 4 : NULL,
                                 .source = source,
                                 .line = strtoull(number, NULL, 10),
                                 .is_python = true};
    bool is_own = !bp_frame_is_of_library(&frame);
    if (function == NULL) {
        (void)snprintf(out, BP_TRACE_PLACE_BYTES, "%.80s:%" PRIu64, bp_file_base_name(source),
                       frame.line);
    } else if (is_own || out[0] == '\0') {
        bp_frame_short_name(&frame, name);
        bp_utf8_copy(out, BP_TRACE_PLACE_BYTES, name);
    }
    return is_own;
}

/* "    at work (/srv/app.js:1:7)" of Node, "\tat app.Main.work(Main.java:12)" of Java. */
static bool take_at(const char *line, char out[BP_TRACE_PLACE_BYTES]) {
    static const char *const libraries[] = {"java.", "javax.", "jdk.", "sun.", NULL};
    line += strspn(line, " \t");
    if (!starts_with(line, "at ") || bp_array_has_start(libraries, line + 3) ||
        strchr(line, ':') == NULL || strstr(line, "node:") != NULL) {
        return false;
    }
    bp_utf8_copy(out, BP_TRACE_PLACE_BYTES, line + 3);
    return true;
}

/* "main.work(0x1)", and below it "\t/srv/app.go:12 +0x1d". */
static bool take_go(const char *function, const char *line, char out[BP_TRACE_PLACE_BYTES]) {
    static const char *const libraries[] = {"runtime.", "panic(", "internal/", "sync.", NULL};
    const char *end = strrchr(function, '(');
    if (line[0] != '\t' || end == NULL || bp_array_has_start(libraries, function)) {
        return false;
    }
    const char *place = bp_file_base_name(line + 1);
    (void)snprintf(out, BP_TRACE_PLACE_BYTES, "%.*s (%.*s)", (int)(end - function), function,
                   (int)strcspn(place, " "), place);
    return true;
}

static bool is_of_valgrind(const char *line) {
    return strstr(line, "==    at 0x") != NULL || strstr(line, "==    by 0x") != NULL;
}

/* "==123==    at 0x109330: main (app.c:12)" of valgrind, whose own malloc and free are above. */
static bool take_valgrind(const char *line, char out[BP_TRACE_PLACE_BYTES]) {
    static const char *const libraries[] = {"vgpreload", "vg_replace_", "/libc.so", "/libstdc++.so",
                                            NULL};
    const char *function = is_of_valgrind(line) ? strstr(line, ": ") : NULL;
    for (size_t i = 0; function != NULL && libraries[i] != NULL; i++) {
        function = strstr(line, libraries[i]) == NULL ? function : NULL;
    }
    if (function != NULL) {
        bp_utf8_copy(out, BP_TRACE_PLACE_BYTES, function + 2);
    }
    return function != NULL;
}

/* The trace of Python is above its error, and has the innermost function last. */
static bool find_above(const bp_evidence *evidence, uint64_t first, uint64_t at,
                       char out[BP_TRACE_PLACE_BYTES]) {
    bool is_own = false;
    out[0] = '\0';
    while (!is_own && at > first && is_indented(bp_output_line(evidence, at - 1))) {
        at--;
        is_own = take_python(bp_output_line(evidence, at), out);
    }
    return out[0] != '\0';
}

/* Lines between an error and its trace that are not indented. */
static bool is_between(const char *line) {
    static const char *const begins[] = {"[signal ", "[recovered]", "goroutine ", "Current thread ",
                                         "#",        "Thread 0x",   NULL};
    return bp_array_has_start(begins, line);
}

void bp_trace_find_place(const bp_evidence *evidence, uint64_t first, uint64_t at,
                         char out[BP_TRACE_PLACE_BYTES]) {
    enum { looked_at_max = 64 };
    bool is_found = false, is_of_go = false, is_near = true;
    if (find_above(evidence, first, at, out)) {
        return;
    }
    for (uint64_t i = at + 1;
         i < evidence->output_count && i <= at + looked_at_max && is_near && !is_found; i++) {
        const char *line = bp_output_line(evidence, i), *before = bp_output_line(evidence, i - 1);
        is_of_go = is_of_go || starts_with(line, "goroutine ");
        if (starts_with(before, "# Problematic frame:") && strlen(line) > 5) {
            bp_utf8_copy(out, BP_TRACE_PLACE_BYTES, line + 5);
            is_found = true;
        } else if (is_of_go) {
            is_found = take_go(before, line, out);
        } else {
            is_found = take_python(line, out) || take_at(line, out) || take_valgrind(line, out);
        }
        is_near = is_of_go || is_indented(line) || is_between(line) || is_of_valgrind(line);
    }
}
