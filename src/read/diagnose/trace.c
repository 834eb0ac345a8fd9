#include "diagnose/trace.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "model/frame_text.h"

static const char digits[] = "0123456789";

enum { looked_at_max = 64 }; /* lines of a trace */

static bool is_indented(const char *line) {
    return line[0] == ' ' || line[0] == '\t';
}

/* `  File "/srv/app.py", line 12, in work`; faulthandler leaves the second comma out, and an error
 * of syntax the function. */
static bool take_python(const char *line, char out[BP_TRACE_PLACE_BYTES]) {
    static const char begin[] = "File \"", middle[] = "\", line ";
    char source[BP_EVIDENCE_LINE_BYTES], name[BP_FRAME_NAME_BYTES];
    line += strspn(line, " ");
    const char *end = bp_text_begins(line, begin) ? strstr(line, middle) : NULL;
    const char *number = end != NULL ? end + sizeof middle - 1 : "";
    size_t digit_count = strspn(number, digits);
    if (digit_count == 0 || digit_count > 9) {
        return false;
    }
    const char *path = line + sizeof begin - 1;
    (void)snprintf(source, sizeof source, "%.*s", (int)(end - path), path);
    const char *function = strstr(number, " in ");
    const bp_frame_text frame = {.symbol = function != NULL ? function + 4 : NULL,
                                 .source = source,
                                 .line = strtoull(number, NULL, 10),
                                 .is_python = true};
    if (bp_frame_is_of_library(&frame)) {
        return false;
    }
    if (function == NULL) {
        (void)snprintf(out, BP_TRACE_PLACE_BYTES, "%.80s:%" PRIu64, bp_file_base_name(source),
                       frame.line);
    } else {
        bp_frame_short_name(&frame, name);
        bp_utf8_copy(out, BP_TRACE_PLACE_BYTES, name);
    }
    return true;
}

/* True at the colon of "app.js:12", and not of "10.0.0.1:80". */
static bool is_behind_extension(const char *line, const char *colon) {
    const char *at = colon;
    while (at > line && isalnum((unsigned char)at[-1])) {
        at--;
    }
    return at > line && at[-1] == '.' && isalpha((unsigned char)at[0]);
}

/* The end of "app.js:12)"; or of ":1:7" or ":line 12" of .NET, which end the line. NULL for none.
 */
static const char *find_place_end(const char *line) {
    const char *found = NULL;
    bool is_second = false;
    for (const char *at = strchr(line, ':'); at != NULL; at = strchr(at, ':')) {
        const char *number = at + 1 + (bp_text_begins(at + 1, "line ") ? 5 : 0);
        const char *end = number + strspn(number, digits);
        bool is_number = end > number, is_last = is_second || number > at + 1;
        if (is_number && ((*end == ')' && (is_second || is_behind_extension(line, at))) ||
                          (*end == '\0' && is_last))) {
            found = *end == ')' ? end + 1 : end;
        }
        is_second = is_number && *end == ':';
        at = end;
    }
    return found;
}

/* Keeps a place; one in a package that was installed, only if there is none yet. */
static bool keep(bool is_own, const char *place, const char *end, char out[BP_TRACE_PLACE_BYTES]) {
    if (is_own || out[0] == '\0') {
        size_t length = bp_utf8_cut(place, (size_t)(end - place), BP_TRACE_PLACE_BYTES - 1);
        (void)snprintf(out, BP_TRACE_PLACE_BYTES, "%.*s", (int)length, place);
    }
    return is_own;
}

/* "    at work (/srv/app.js:1:7)" of Node, "\tat app.Main.work(Main.java:12)" of Java. */
static bool take_at(const char *line, char out[BP_TRACE_PLACE_BYTES]) {
    static const char *const libraries[] = {"java.", "javax.", "jdk.", "sun.", NULL};
    line += strspn(line, " \t");
    const char *end = find_place_end(line);
    if (!bp_text_begins(line, "at ") || bp_array_has_start(libraries, line + 3) || end == NULL ||
        strspn(line + 3, digits) > 0 || strstr(line, "node:") != NULL) {
        return false;
    }
    return keep(strstr(line, "/node_modules/") == NULL, line + 3, end, out);
}

/* "main.work(0x1)", and below it "\t/srv/app.go:12 +0x1d". */
static bool take_go(const char *function, const char *line, char out[BP_TRACE_PLACE_BYTES]) {
    static const char *const libraries[] = {
        "runtime.",  "runtime/",  "panic(",     "internal/",   "archive/", "bufio.",
        "bytes.",    "compress/", "container/", "context.",    "crypto/",  "database/sql",
        "encoding/", "errors.",   "fmt.",       "go/",         "hash/",    "html/",
        "image/",    "image.",    "io.",        "io/",         "log.",     "log/",
        "math.",     "math/",     "mime/",      "net.",        "net/",     "os.",
        "os/",       "path/",     "reflect.",   "regexp.",     "regexp/",  "slices.",
        "sort.",     "strconv.",  "strings.",   "sync.",       "sync/",    "syscall.",
        "testing.",  "text/",     "time.",      "created by ", "embed.",   "expvar.",
        "flag.",     "index/",    "iter.",      "maps.",       "plugin.",  "unicode/",
        "unique.",   "vendor/",   NULL};
    const char *end = strrchr(function, '(');
    if (line[0] != '\t' || end == NULL || bp_array_has_start(libraries, function)) {
        return false;
    }
    char text[2 * BP_EVIDENCE_LINE_BYTES];
    const char *place = bp_file_base_name(line + 1);
    int length = snprintf(text, sizeof text, "%.*s (%.*s)", (int)(end - function), function,
                          (int)strcspn(place, " "), place);
    return keep(strstr(line, "/pkg/mod/") == NULL, text, text + length, out);
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
    bool is_found = false;
    out[0] = '\0';
    while (!is_found && at > first && is_indented(bp_output_line(evidence, at - 1))) {
        at--;
        is_found = take_python(bp_output_line(evidence, at), out);
    }
    return is_found;
}

/* Lines between an error and its trace that are not indented. */
static bool is_between(const char *line) {
    static const char *const begins[] = {
        "[signal ", "[recovered]", "goroutine ", "Current thread ",
        "#",        "Thread 0x",   "+ ",         "- ", /* Node, of values that differ */
        NULL};
    return bp_array_has_start(begins, line);
}

/* The last "panic(" in the trace of a goroutine, above which is what ran after it; else `at`. */
static uint64_t find_panic(const bp_evidence *evidence, uint64_t at) {
    uint64_t found = at;
    for (uint64_t i = at + 1; i < evidence->output_count && i <= at + looked_at_max; i++) {
        const char *line = bp_output_line(evidence, i);
        if (bp_text_begins(line, "goroutine ")) {
            break;
        }
        found = bp_text_begins(line, "panic(") ? i : found;
    }
    return found;
}

void bp_trace_find_place(const bp_evidence *evidence, uint64_t first, uint64_t at,
                         char out[BP_TRACE_PLACE_BYTES]) {
    bool is_found = false, is_of_go = false, is_near = true;
    if (find_above(evidence, first, at, out)) {
        return;
    }
    for (uint64_t i = at + 1;
         i < evidence->output_count && i <= at + looked_at_max && is_near && !is_found; i++) {
        const char *line = bp_output_line(evidence, i), *before = bp_output_line(evidence, i - 1);
        bool begins_of_go = bp_text_begins(line, "goroutine ");
        if (is_of_go && begins_of_go) {
            break; /* another one */
        }
        if (begins_of_go) {
            i = find_panic(evidence, i);
            is_of_go = true;
            continue;
        }
        if (bp_text_begins(before, "# Problematic frame:") && strlen(line) > 5) {
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
