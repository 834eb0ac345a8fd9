#include "diagnose/last_words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "base/utf8.h"
#include "diagnose/trace.h"

/* How runtimes begin what they say of an end, before a trace of any length; `line_max`: that many
 * lines at most, 0 for any. What a shell script survived, or a server tried again, may be further
 * back: such a line is looked for where there is none of the others. */
static const struct {
    const char *words;
    uint64_t line_max;
} endings[] = {{"terminate called", 0},                      /* libstdc++ */
               {"terminating due to uncaught exception", 0}, /* libc++ */
               {"Assertion `", 0},                           /* glibc */
               {"Assertion failed", 0},                      /* musl, macOS */
               {"detected ***", 0}, /* glibc's fortify and stack protector */
               {"***: terminated", 0},
               {"free(): ", 0},
               {"malloc(): ", 0},
               {"double free or corruption", 0},
               {"corrupted size vs. prev_size", 0},
               {"corrupted double-linked list", 0},
               {"munmap_chunk(): ", 0},
               {"realloc(): ", 0},
               {"ure virtual ", 0}, /* libstdc++, libc++: "pure virtual method called" */
               {"panicked at", 0},  /* Rust */
               {"panic: ", 0},      /* Go */
               {"fatal error: ", 0},
               {"Fatal error: ", 0}, /* PHP, Swift, OCaml */
               {"FATAL ERROR: ", 0}, /* V8 */
               {"Fatal Python error: ", 0},
               {"AssertionError [ERR_ASSERTION]: ", 0}, /* Node */
               {"Check failed: ", 0},                   /* glog, Abseil, Chromium */
               {" at pc=0x", 0},                        /* the signal that HotSpot caught */
               {"There is insufficient memory for the Java", 0},
               {"Exception in thread", 0}, /* Java, Python */
               {"+ Exception Group Traceback", 0},
               {"Sanitizer: ", 0},
               {"==    at 0x", 0}, /* valgrind, below its error */
               {"runtime error: ", 0},
               {"fatal: ", 8},                     /* git, and advice */
               {"Could not read package.json", 8}, /* npm */
               {"404 Not Found - ", 8},
               {" failed (", 8}, /* nginx: "bind() to 0.0.0.0:80 failed (98: …)" */
               {"ddress already in use", 16},
               {"error while loading shared libraries", 0}};

/* Lines that only say that something failed before, or what to try: how they begin, behind a number
 * if there is one, and what is in them. */
static const struct {
    const char *begin, *has;
} trailers[] = {{"make", ": *** ["},
                {"make", ": *** Waiting for unfinished jobs"},
                {"make", "not remade because of errors"},
                {"make", ": Leaving directory"},
                {"ninja: build stopped", ""},
                {"FAILED: ", ""},
                {"-- Configuring incomplete", ""}, /* CMake */
                {"See also \"", ""},
                {"compilation terminated.", ""},
                {"collect2: error: ld returned", ""},
                {"", "error: linker command failed"}, /* clang */
                {"make", ": warning: "},
                {"", ": all warnings being treated as errors"},
                {"note: ", ""}, /* Rust */
                {" error", ""}, /* "1 error" of javac, and clang */
                {" warning", "generated."},
                {"error: aborting due to", ""},
                {"error: could not compile", ""},
                {"For more information about this error", ""},
                {"Some errors have detailed explanations", ""},
                {"warning: build failed, waiting for other jobs", ""},
                {"exit status ", ""},                      /* go run */
                {"", "aborted due to compilation errors"}, /* Perl */
                {"BEGIN failed--compilation aborted", ""},
                {"Node.js v", ""},
                {"Emitted 'error' event", ""},
                {"}", ""},
                {"Require stack:", ""},
                {"- /", ""},
                {"npm ", "A complete log of this run"},
                {"tar: Exiting with failure status", ""},
                {"tar: Error is not recoverable", ""},
                {"tar: Child returned status", ""},
                {"rsync error: ", ""},
                {"rsync: connection unexpectedly closed", ""},
                {"", " bad configuration options"},    /* sshd */
                {"", "FATAL:  configuration file \""}, /* PostgreSQL: "contains errors" */
                {"", "LOG:  database system is shut down"},
                {"Run initdb or pg_basebackup", ""},
                {"", "[ERROR] Aborting"}, /* MySQL */
                {"FAILED (", ""},         /* unittest */
                {"Ran ", " test"},
                {"FAIL\t", ""}, /* go test */
                {"--- PASS: ", ""},
                {"--- SKIP: ", ""},
                {"=== ", "  Test"},
                {"ok  \t", ""},
                {"Use \"--rerun-failed", ""}, /* ctest */
                {"Errors while running CTest", ""},
                {"Output from these tests are in", ""},
                {"nginx: ", " test failed"},
                {"dpkg: error processing", ""},
                {"Errors were encountered while processing", ""},
                {"E: Sub-process ", ""}, /* apt */
                {"error: failed to push some refs", ""},
                {"+", " records in"}, /* dd */
                {"+", " records out"},
                {" bytes", " copied, "},
                {"stack traceback:", ""}, /* Lua, before its lines */
                {"Stack trace:", ""},
                {"Execution halted", ""}, /* R */
                {"Usage: ", ""},
                {"usage: ", ""},
                {"", "--help"}};

static const char digits[] = "0123456789";

static bool ends_in_colon(const char *line) {
    return line[0] != '\0' && line[strlen(line) - 1] == ':';
}

/* The line that a tool points at, as redis does in its configuration. lld begins what follows its
 * error so. */
static bool is_marked(const bp_evidence *evidence, uint64_t first, uint64_t at) {
    const char *before = at > first ? bp_output_text(evidence, at - 1) : "";
    return bp_text_begins(bp_output_text(evidence, at), ">>> ") && !bp_text_begins(before, ">>>") &&
           strstr(before, "error: ") == NULL;
}

/* "x.c:1:24: warning: …", "X.java:3: warning: …"; not what another program warns of, at a time of
 * day or of a host with its port. */
static bool is_of_compiler(const char *line) {
    static const char *const tools[] = {
        "cc1: ", "cc1plus: ", "clang: ", "ld: ", "ld.", "/usr/bin/ld:", NULL};
    const char *warning = strstr(line, ": warning: ");
    const char *end = warning != NULL ? warning : strstr(line, ": note: ");
    if (end == NULL || bp_array_has_start(tools, line) || strstr(line, ".java:") != NULL ||
        strstr(line, ":(.text+0x") != NULL) {
        return end != NULL;
    }
    const char *colon = line + strcspn(line, ":");
    size_t row = strspn(colon + 1, digits);
    size_t column = colon[1 + row] == ':' ? strspn(colon + row + 2, digits) : 0;
    return colon > line && !isdigit((unsigned char)colon[-1]) && row > 0 && column > 0 &&
           colon + row + column + 2 == end;
}

/* "1 failed, 2 passed in 0.03s", behind its number. */
static bool is_of_pytest(const char *line) {
    const char *time = strstr(line, " in ");
    const char *point = time != NULL ? time + 4 + strspn(time + 4, digits) : "";
    return bp_text_begins(line, " failed") && point[0] == '.' && strspn(point + 1, digits) == 2 &&
           point[3] == 's';
}

static bool is_trailer(const char *line) {
    line += strspn(line, digits);
    for (size_t i = 0; i < sizeof trailers / sizeof trailers[0]; i++) {
        if (bp_text_begins(line, trailers[i].begin) && strstr(line, trailers[i].has) != NULL) {
            return true;
        }
    }
    return is_of_compiler(line) || is_of_pytest(line) || strcmp(line, "FAIL") == 0; /* go test */
}

/* A line of a trace of addresses: of V8 ("10: 0x195e476 [node]"), of gdb and others ("#3  0x…"), of
 * backtrace_symbols(3) ("./a(f+0x21)[0x5591…]"); or a rule above or below one. */
static bool is_native_trace(const char *line) {
    size_t length = strlen(line), number = strspn(line, digits);
    const char *address = strstr(line, "[0x");
    bool is_of_glibc = address != NULL && strspn(address + 3, "0123456789abcdef") + 4 ==
                                              length - (size_t)(address - line);
    return (number > 0 && bp_text_begins(line + number, ": 0x")) ||
           (line[0] == '#' && line[1] >= '0' && line[1] <= '9') || is_of_glibc ||
           bp_text_begins(line, "-----") || bp_text_begins(line, "=====") ||
           bp_text_begins(line, "!!!!!");
}

/* "main.work(0x1)", above "\t/srv/app.go:12 +0x1d". */
static bool is_of_go(const bp_evidence *evidence, uint64_t number) {
    const char *next =
        number + 1 < evidence->output_count ? bp_output_line(evidence, number + 1) : "";
    const char *line = bp_output_line(evidence, number);
    return (bp_text_begins(line, "goroutine ") && isdigit((unsigned char)line[10])) ||
           (bp_text_begins(next, "\t/") && strstr(next, ".go:") != NULL);
}

/* A trace, a line of source with its number, as Rust's, or one above a caret. */
static bool is_continuation(const bp_evidence *evidence, uint64_t number) {
    const char *line = bp_output_line(evidence, number);
    size_t row_bytes = strspn(line, digits);
    bool is_above_caret = number + 1 < evidence->output_count &&
                          bp_output_text(evidence, number + 1)[0] == '^' &&
                          bp_output_line(evidence, number + 1)[0] != '^';
    return line[0] == ' ' || line[0] == '\t' || is_above_caret || is_native_trace(line) ||
           is_of_go(evidence, number) || bp_text_begins(line, ">>> ") ||
           (row_bytes > 0 && bp_text_begins(line + row_bytes, " |"));
}

/* Words of a line that says what went wrong, in lower case. */
static const char *const troubles[] = {
    "error",     "fail",     "fatal",    "cannot",   "could not", "unable",    "invalid",
    "denied",    "refused",  "abort",    "panic",    "not ",      "n't ",      "no such",
    "exception", "missing",  "timeout",  "time out", "timed out", ": out of ", "out of memory",
    "ran out",   "too many", "exceeded", "corrupt",  NULL};

static bool is_of_trouble(const char *line) {
    bool is_found = false;
    for (size_t i = 0; !is_found && troubles[i] != NULL; i++) {
        is_found = strcasestr(line, troubles[i]) != NULL;
    }
    return is_found;
}

static const char *find_word(const char *line, const char *word) {
    size_t length = strlen(word);
    const char *at = strstr(line, word);
    while (at != NULL && ((at > line && isalnum((unsigned char)at[-1])) ||
                          isalnum((unsigned char)at[length]) || at[length] == '_')) {
        at = strstr(at + 1, word);
    }
    return at;
}

/* A line of a service whose level says that all is well. */
static bool has_calm_level(const char *line) {
    static const char *const levels[] = {"INFO",  "info]",  "level=info",
                                         "DEBUG", "NOTICE", "notice]"};
    const char *at = NULL;
    for (size_t i = 0; at == NULL && i < sizeof levels / sizeof levels[0]; i++) {
        at = find_word(line, levels[i]);
    }
    char before[BP_EVIDENCE_LINE_BYTES];
    (void)snprintf(before, sizeof before, "%.*s", at != NULL ? (int)(at - line) : 0, line);
    return at != NULL && !is_of_trouble(before); /* not "ERROR: no table INFO" */
}

/* Such a line, or one of a service that ends, by the end of the line. */
static bool is_aside(const char *line) {
    static const char *const ends[] = {"shutting down", "exiting", "stopped", "stopping"};
    size_t length = strlen(line);
    bool is_found = false;
    while (length > 0 && ispunct((unsigned char)line[length - 1])) {
        length--;
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end = strlen(ends[i]);
        is_found =
            is_found || (length >= end && strncasecmp(line + length - end, ends[i], end) == 0);
    }
    return has_calm_level(line) || (is_found && !is_of_trouble(line));
}

/* Of the last lines the last one that says what went wrong, as standard output is mostly results.
 */
static uint64_t find_trouble(const bp_evidence *evidence, uint64_t first) {
    enum { looked_at_max = 8 };
    uint64_t count = evidence->output_count;
    for (uint64_t at = count; at > first && count - at < looked_at_max; at--) {
        const char *line = bp_output_text(evidence, at - 1);
        if (is_of_trouble(line) && !has_calm_level(line) && !is_trailer(line) &&
            !is_continuation(evidence, at - 1)) {
            return at - 1;
        }
    }
    return count;
}

/* True if a line follows that is no part of a report of an exception: of its message, which ends
 * where the trace begins, or the one line below the trace of Python. */
static bool is_followed(const bp_evidence *evidence, uint64_t at) {
    static const char *const begins[] = {"Caused by: ", "Exception in thread", NULL};
    bool is_of_message = true, is_of_python = false;
    for (at++; at < evidence->output_count; at++) {
        const char *line = bp_output_text(evidence, at);
        if (is_continuation(evidence, at)) {
            is_of_message = false;
        } else if (bp_text_begins(line, "Traceback (most")) {
            is_of_python = true;
        } else if (bp_array_has_start(begins, line)) {
            is_of_message = true;
        } else if (!is_of_message && !is_of_python) {
            return true;
        } else {
            is_of_python = is_of_python && is_of_message;
        }
    }
    return false;
}

/* What the program said may have been no end: a panic in other words, or one that was recovered; an
 * error of valgrind, or in another thread, before a reason of its own. */
static bool was_survived(const bp_evidence *evidence, uint64_t at, const char *words) {
    uint64_t count = evidence->output_count;
    const char *newest = bp_output_text(evidence, count - 1);
    if (bp_text_begins(words, "panic: ")) {
        return words > bp_output_text(evidence, at) ||
               (at + 2 < count &&
                bp_text_begins(bp_output_text(evidence, at + 2), "runtime/debug."));
    }
    if (bp_text_begins(words, "==    at 0x")) {
        return !bp_text_begins(newest, "==") && is_of_trouble(newest);
    }
    bool may_go_on = bp_text_begins(words, "+ Exception Group") ||
                     (bp_text_begins(words, "Exception in thread") &&
                      !bp_text_begins(words, "Exception in thread \"main\""));
    return may_go_on && is_followed(evidence, at);
}

/* Where a line begins the end, of all lines or of those that have a place near it; else the count.
 */
static uint64_t find_ending(const bp_evidence *evidence, uint64_t first, bool is_near) {
    enum { marked_max = 3 };
    uint64_t count = evidence->output_count;
    for (uint64_t at = first; at < count; at++) {
        const char *line = bp_output_text(evidence, at);
        for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
            bool is_wanted = is_near ? count - at <= endings[i].line_max : endings[i].line_max == 0;
            const char *words = is_wanted ? strstr(line, endings[i].words) : NULL;
            if (words != NULL && !was_survived(evidence, at, words)) {
                return at;
            }
        }
        if (is_near && count - at <= marked_max && is_marked(evidence, first, at)) {
            return at;
        }
    }
    return count;
}

/* The first line that may say why. A trace that is longer, as of a recursion, is searched up to the
 * line that it belongs to. */
static uint64_t find_first(const bp_evidence *evidence) {
    uint64_t count = evidence->output_count;
    uint64_t oldest = count > BP_EVIDENCE_LINE_MAX ? count - BP_EVIDENCE_LINE_MAX : 0;
    uint64_t first = count > BP_LAST_WORDS_SEARCHED_MAX ? count - BP_LAST_WORDS_SEARCHED_MAX : 0;
    while (first > oldest && is_continuation(evidence, first)) {
        first--;
    }
    return first;
}

/* Of the line where the report of a tool was found, the line of it that says most: the summary of a
 * sanitizer has the place, and the error of valgrind stands above its trace. */
static uint64_t find_headline(const bp_evidence *evidence, uint64_t first, uint64_t at) {
    const char *line = bp_output_text(evidence, at);
    if (strstr(line, "==    at 0x") != NULL && at > first) {
        return at - 1;
    }
    for (uint64_t i = evidence->output_count; bp_text_begins(line, "+ Exception Group") && i > at;
         i--) {
        const char *error = bp_output_text(evidence, i - 1);
        if (bp_text_begins(error, "| ") && error[2] != ' ') {
            return i - 1;
        }
    }
    const char *above = at > first ? bp_output_text(evidence, at - 1) : "";
    if (ends_in_colon(above) && is_of_trouble(above)) {
        return at - 1; /* "AssertionError: Expected values to be strictly equal:" */
    }
    for (uint64_t i = at; strstr(line, "Sanitizer: ") != NULL && i < evidence->output_count; i++) {
        if (bp_text_begins(bp_output_text(evidence, i), "SUMMARY: ")) {
            return i;
        }
    }
    return at;
}

/* The end of what the last command of ninja said that failed, which others may follow; else the
 * count. */
static uint64_t find_end(const bp_evidence *evidence, uint64_t first) {
    uint64_t count = evidence->output_count;
    bool is_of_ninja = count > first &&
                       bp_text_begins(bp_output_text(evidence, count - 1), "ninja: build stopped");
    for (uint64_t at = count - 1; is_of_ninja && at > first; at--) {
        uint64_t command = at, end = at + 1;
        if (!bp_text_begins(bp_output_text(evidence, command - 1), "FAILED: ")) {
            continue;
        }
        while (end < count - 1 && bp_output_text(evidence, end)[0] != '[') {
            end++;
        }
        if (end > command + 1) {
            return end;
        }
    }
    return count;
}

/* The line that says why: where a runtime begins to, or else the last one that is not a mere
 * continuation or trailer. Without `takes_any`, only where a trailer follows it; the count of all
 * for none. */
static uint64_t find_cause(const bp_evidence *evidence, bool takes_any) {
    uint64_t count = evidence->output_count;
    uint64_t first = find_first(evidence);
    bool is_stdout = evidence->is_output_stdout;
    bool has_failed = takes_any && !is_stdout;
    uint64_t found = find_ending(evidence, first, false);
    found = found == count ? find_ending(evidence, first, true) : found;
    bool is_any = takes_any && found == count, is_of_tests = false;
    uint64_t end = find_end(evidence, first);
    has_failed = has_failed || end < count;
    for (uint64_t at = end; found == count && at > first; at--) {
        const char *line = bp_output_text(evidence, at - 1);
        bool is_over = is_trailer(line);
        is_of_tests = is_of_tests || is_of_pytest(line + strspn(line, digits));
        if (!is_over && !is_continuation(evidence, at - 1)) {
            found = has_failed ? at - 1 : count;
            break;
        }
        has_failed = has_failed || is_over;
    }
    bool looks_further =
        found == count ? is_stdout : is_of_tests || is_aside(bp_output_text(evidence, found));
    if (is_any && looks_further) {
        uint64_t trouble = find_trouble(evidence, first);
        found = trouble < count ? trouble : found;
    } else if (is_any && found == count && count > first) {
        found = count - 1;
    }
    return found < count ? find_headline(evidence, first, found) : count;
}

/* Its root in Java and Node, or the next line where that belongs to it, without a trace between
 * them; `at` for nothing more. */
static uint64_t find_rest(const bp_evidence *evidence, uint64_t at) {
    const char *line = bp_output_text(evidence, at);
    uint64_t next = at + 1, count = evidence->output_count;
    for (uint64_t i = count; i > next; i--) {
        if (bp_text_begins(bp_output_line(evidence, i - 1), "Caused by: ") ||
            bp_text_begins(bp_output_text(evidence, i - 1), "[cause]: ")) {
            return i - 1;
        }
    }
    if (next < count && bp_text_begins(bp_output_text(evidence, next), "Traceback (most recent")) {
        do {
            next++;
        } while (next < count && is_continuation(evidence, next));
    }
    if (next == count) {
        return at;
    }
    const char *rest = bp_output_text(evidence, next);
    if (bp_text_begins(line, "--- FAIL: ") && !is_continuation(evidence, next)) {
        return at > 0 && is_continuation(evidence, at - 1) ? at - 1 : at; /* go test -v */
    }
    bool belongs =
        ends_in_colon(line) || bp_text_begins(line, ">>> ") || bp_text_begins(line, "--- FAIL: ");
    return belongs || bp_text_begins(rest, "what():") || bp_text_begins(rest, "--> ") ? next : at;
}

/* libstdc++ says in two lines what is one sentence. False where the line is none of it. */
static bool join_exception(const char *line, const char *rest, char out[BP_LAST_WORDS_BYTES]) {
    static const char begin[] = "terminate called after throwing an instance of '";
    static const char message[] = "what():";
    if (!bp_text_begins(line, begin)) {
        return false;
    }
    const char *type = line + sizeof begin - 1;
    rest += bp_text_begins(rest, message) ? sizeof message - 1 : 0;
    rest += strspn(rest, " ");
    (void)snprintf(out, BP_LAST_WORDS_BYTES, "uncaught exception %.*s%s%s", (int)strcspn(type, "'"),
                   type, rest[0] != '\0' ? ": " : "", rest);
    return true;
}

bool bp_last_words_find(const bp_evidence *evidence, bool takes_any, char out[BP_LAST_WORDS_BYTES],
                        char place[BP_TRACE_PLACE_BYTES]) {
    uint64_t at = find_cause(evidence, takes_any);
    place[0] = '\0';
    if (at == evidence->output_count) {
        bp_utf8_copy(out, BP_LAST_WORDS_BYTES,
                     bp_json_tree_text_or(evidence->crash, "abort_message", ""));
        return out[0] != '\0';
    }
    uint64_t rest_at = find_rest(evidence, at);
    const char *rest = rest_at != at ? bp_output_text(evidence, rest_at) : "";
    bp_trace_find_place(evidence, find_first(evidence), rest_at, place);
    if (place[0] == '\0') {
        bp_trace_find_place(evidence, find_first(evidence), at, place);
    }
    const char *line = bp_output_text(evidence, at);
    line += bp_text_begins(line, "| ") ? 2 : 0; /* of a group of exceptions */
    if (!join_exception(line, rest, out)) {
        (void)snprintf(out, BP_LAST_WORDS_BYTES, "%s%s%s", line, rest[0] != '\0' ? " " : "", rest);
    }
    size_t length = strlen(out);
    if (place[0] != '\0' && length > 1 && out[length - 1] == '.' && out[length - 2] != '.') {
        out[length - 1] = '\0'; /* the place follows */
    }
    return true;
}
