/* Diagnoses of how a process ended, what it said before, and what is missing from its report. */

#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "diagnose/evidence.h"
#include "diagnose/trace.h"
#include "entries/frames.h"
#include "model/entry.h"
#include "model/fields.h"

/* --- what it said ------------------------------------------------------------------------- */

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

/* `searched_max`: words that are further back are no cause of the end, except in a trace. */
enum { words_bytes = 2 * BP_EVIDENCE_LINE_BYTES, searched_max = 256 };

static const char *output_line(const bp_evidence *evidence, uint64_t number) {
    const char *line = bp_output_line(evidence, number);
    return line + strspn(line, " \t");
}

/* The last one of so many output lines with one of these words, or NULL. */
static const char *find_line(const bp_evidence *evidence, uint64_t line_max,
                             const char *const *words, const char **ret_at) {
    uint64_t count = evidence->output_count;
    for (uint64_t i = 1; i <= count && i <= line_max; i++) {
        const char *line = output_line(evidence, count - i);
        for (size_t k = 0; words[k] != NULL; k++) {
            *ret_at = strstr(line, words[k]);
            if (*ret_at != NULL) {
                return line;
            }
        }
    }
    return NULL;
}

static bool ends_in_colon(const char *line) {
    return line[0] != '\0' && line[strlen(line) - 1] == ':';
}

static bool starts_with(const char *line, const char *words) {
    return strncmp(line, words, strlen(words)) == 0;
}

/* The line that a tool points at, as redis does in its configuration. lld begins what follows its
 * error so. */
static bool is_marked(const bp_evidence *evidence, uint64_t first, uint64_t at) {
    const char *before = at > first ? output_line(evidence, at - 1) : "";
    return starts_with(output_line(evidence, at), ">>> ") && !starts_with(before, ">>>") &&
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
    return starts_with(line, " failed") && point[0] == '.' && strspn(point + 1, digits) == 2 &&
           point[3] == 's';
}

static bool is_trailer(const char *line) {
    line += strspn(line, digits);
    for (size_t i = 0; i < sizeof trailers / sizeof trailers[0]; i++) {
        if (starts_with(line, trailers[i].begin) && strstr(line, trailers[i].has) != NULL) {
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
    return (number > 0 && starts_with(line + number, ": 0x")) ||
           (line[0] == '#' && line[1] >= '0' && line[1] <= '9') || is_of_glibc ||
           starts_with(line, "-----") || starts_with(line, "=====") || starts_with(line, "!!!!!");
}

/* "main.work(0x1)", above "\t/srv/app.go:12 +0x1d". */
static bool is_of_go(const bp_evidence *evidence, uint64_t number) {
    const char *next =
        number + 1 < evidence->output_count ? bp_output_line(evidence, number + 1) : "";
    const char *line = bp_output_line(evidence, number);
    return (starts_with(line, "goroutine ") && isdigit((unsigned char)line[10])) ||
           (starts_with(next, "\t/") && strstr(next, ".go:") != NULL);
}

/* A trace, a line of source with its number, as Rust's, or one above a caret. */
static bool is_continuation(const bp_evidence *evidence, uint64_t number) {
    const char *line = bp_output_line(evidence, number);
    size_t row_bytes = strspn(line, digits);
    bool is_above_caret = number + 1 < evidence->output_count &&
                          output_line(evidence, number + 1)[0] == '^' &&
                          bp_output_line(evidence, number + 1)[0] != '^';
    return line[0] == ' ' || line[0] == '\t' || is_above_caret || is_native_trace(line) ||
           is_of_go(evidence, number) || starts_with(line, ">>> ") ||
           (row_bytes > 0 && starts_with(line + row_bytes, " |"));
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
        const char *line = output_line(evidence, at - 1);
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
        const char *line = output_line(evidence, at);
        if (is_continuation(evidence, at)) {
            is_of_message = false;
        } else if (starts_with(line, "Traceback (most")) {
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
    const char *newest = output_line(evidence, count - 1);
    if (starts_with(words, "panic: ")) {
        return words > output_line(evidence, at) ||
               (at + 2 < count && starts_with(output_line(evidence, at + 2), "runtime/debug."));
    }
    if (starts_with(words, "==    at 0x")) {
        return !starts_with(newest, "==") && is_of_trouble(newest);
    }
    bool may_go_on = starts_with(words, "+ Exception Group") ||
                     (starts_with(words, "Exception in thread") &&
                      !starts_with(words, "Exception in thread \"main\""));
    return may_go_on && is_followed(evidence, at);
}

/* Where a line begins the end, of all lines or of those that have a place near it; else the count.
 */
static uint64_t find_ending(const bp_evidence *evidence, uint64_t first, bool is_near) {
    enum { marked_max = 3 };
    uint64_t count = evidence->output_count;
    for (uint64_t at = first; at < count; at++) {
        const char *line = output_line(evidence, at);
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
    uint64_t first = count > searched_max ? count - searched_max : 0;
    while (first > oldest && is_continuation(evidence, first)) {
        first--;
    }
    return first;
}

/* Of the line where the report of a tool was found, the line of it that says most: the summary of a
 * sanitizer has the place, and the error of valgrind stands above its trace. */
static uint64_t find_headline(const bp_evidence *evidence, uint64_t first, uint64_t at) {
    const char *line = output_line(evidence, at);
    if (strstr(line, "==    at 0x") != NULL && at > first) {
        return at - 1;
    }
    for (uint64_t i = evidence->output_count; starts_with(line, "+ Exception Group") && i > at;
         i--) {
        const char *error = output_line(evidence, i - 1);
        if (starts_with(error, "| ") && error[2] != ' ') {
            return i - 1;
        }
    }
    const char *above = at > first ? output_line(evidence, at - 1) : "";
    if (ends_in_colon(above) && is_of_trouble(above)) {
        return at - 1; /* "AssertionError: Expected values to be strictly equal:" */
    }
    for (uint64_t i = at; strstr(line, "Sanitizer: ") != NULL && i < evidence->output_count; i++) {
        if (starts_with(output_line(evidence, i), "SUMMARY: ")) {
            return i;
        }
    }
    return at;
}

/* The end of what the last command of ninja said that failed, which others may follow; else the
 * count. */
static uint64_t find_end(const bp_evidence *evidence, uint64_t first) {
    uint64_t count = evidence->output_count;
    if (count > first && starts_with(output_line(evidence, count - 1), "ninja: build stopped")) {
        for (uint64_t at = count - 1; at > first; at--) {
            uint64_t end = at + 1; /* below the command */
            while (end < count - 1 && output_line(evidence, end)[0] != '[') {
                end++;
            }
            if (starts_with(output_line(evidence, at - 1), "FAILED: ") && end > at + 1) {
                return end;
            }
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
        const char *line = output_line(evidence, at - 1);
        bool is_over = is_trailer(line);
        is_of_tests = is_of_tests || is_of_pytest(line + strspn(line, digits));
        if (!is_over && !is_continuation(evidence, at - 1)) {
            found = has_failed ? at - 1 : count;
            break;
        }
        has_failed = has_failed || is_over;
    }
    bool looks_further =
        found == count ? is_stdout : is_of_tests || is_aside(output_line(evidence, found));
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
    const char *line = output_line(evidence, at);
    uint64_t next = at + 1, count = evidence->output_count;
    for (uint64_t i = count; i > next; i--) {
        if (starts_with(bp_output_line(evidence, i - 1), "Caused by: ") ||
            starts_with(output_line(evidence, i - 1), "[cause]: ")) {
            return i - 1;
        }
    }
    if (next < count && starts_with(output_line(evidence, next), "Traceback (most recent")) {
        do {
            next++;
        } while (next < count && is_continuation(evidence, next));
    }
    if (next == count) {
        return at;
    }
    const char *rest = output_line(evidence, next);
    if (starts_with(line, "--- FAIL: ") && !is_continuation(evidence, next)) {
        return at > 0 && is_continuation(evidence, at - 1) ? at - 1 : at; /* go test -v */
    }
    bool belongs =
        ends_in_colon(line) || starts_with(line, ">>> ") || starts_with(line, "--- FAIL: ");
    return belongs || starts_with(rest, "what():") || starts_with(rest, "--> ") ? next : at;
}

/* libstdc++ says in two lines what is one sentence. False where the line is none of it. */
static bool join_exception(const char *line, const char *rest, char out[words_bytes]) {
    static const char begin[] = "terminate called after throwing an instance of '";
    static const char message[] = "what():";
    if (!starts_with(line, begin)) {
        return false;
    }
    const char *type = line + sizeof begin - 1;
    rest += starts_with(rest, message) ? sizeof message - 1 : 0;
    rest += strspn(rest, " ");
    (void)snprintf(out, words_bytes, "uncaught exception %.*s%s%s", (int)strcspn(type, "'"), type,
                   rest[0] != '\0' ? ": " : "", rest);
    return true;
}

/* The last output about the end, and where its trace leads; or the abort message of glibc. False
 * with "" for none. */
static bool find_last_words(const bp_evidence *evidence, bool takes_any, char out[words_bytes],
                            char place[BP_TRACE_PLACE_BYTES]) {
    uint64_t at = find_cause(evidence, takes_any);
    place[0] = '\0';
    if (at == evidence->output_count) {
        bp_utf8_copy(out, words_bytes, bp_json_tree_text_or(evidence->crash, "abort_message", ""));
        return out[0] != '\0';
    }
    uint64_t rest_at = find_rest(evidence, at);
    const char *rest = rest_at != at ? output_line(evidence, rest_at) : "";
    bp_trace_find_place(evidence, find_first(evidence), rest_at, place);
    if (place[0] == '\0') {
        bp_trace_find_place(evidence, find_first(evidence), at, place);
    }
    const char *line = output_line(evidence, at);
    line += starts_with(line, "| ") ? 2 : 0; /* of a group of exceptions */
    if (!join_exception(line, rest, out)) {
        (void)snprintf(out, words_bytes, "%s%s%s", line, rest[0] != '\0' ? " " : "", rest);
    }
    size_t length = strlen(out);
    if (place[0] != '\0' && length > 1 && out[length - 1] == '.' && out[length - 2] != '.') {
        out[length - 1] = '\0'; /* the place follows */
    }
    return true;
}

/* Without output there is the message of glibc at most, which the crash has as its cause. */
void bp_diagnose_last_words(bp_evidence *evidence) {
    char words[words_bytes], place[BP_TRACE_PLACE_BYTES];
    if (evidence->output_count > 0 && find_last_words(evidence, true, words, place)) {
        bp_find(evidence, "its last words: {}{[; in {}]}", BP_TEXT(words), BP_TEXT(place));
    }
}

/* --- the end ------------------------------------------------------------------------------ */

/* The cause where it is known, and else what the code of the signal means. Who calls abort says
 * why before: that is the cause. */
void bp_diagnose_crash(bp_evidence *evidence) {
    char frames[BP_FRAME_LIST_BYTES], own[BP_FRAME_NAME_BYTES], cause[words_bytes];
    const bp_json_tree *backtrace = bp_json_tree_object(evidence->crash, "backtrace");
    if (evidence->crash == NULL) {
        return;
    }
    bp_utf8_copy(cause, sizeof cause, bp_json_tree_text_or(evidence->crash, "cause", ""));
    if (strcmp(bp_json_tree_text_or(evidence->crash, "name", ""), "SIGABRT") == 0) {
        char words[words_bytes], unused[BP_TRACE_PLACE_BYTES];
        bool is_of_exception = starts_with(cause, "uncaught exception ");
        if (find_last_words(evidence, false, words, unused) &&
            (!is_of_exception || starts_with(words, "uncaught exception "))) {
            bp_utf8_copy(cause, sizeof cause, words);
        }
    }
    bp_frames_print(backtrace, evidence->finder, NULL, frames);
    bp_frames_print_own(backtrace, evidence->finder, own);
    const bp_json_tree *thread = bp_json_tree_object(evidence->crash, "thread");
    const char *name = bp_json_tree_text_or(thread, "name", "");
    uint64_t tid;
    if (cause[0] != '\0' && name[0] != '\0' && bp_json_tree_uint(thread, "tid", &tid)) {
        const char *signal = bp_json_tree_text_or(evidence->crash, "name", "?");
        bp_find(evidence, "crash{[ in {}]}: {}: {}{[ at {}]} in thread {} ({}){[, in {}]}",
                BP_TEXT(own), BP_TEXT(cause), BP_TEXT(signal),
                BP_TEXT(bp_json_tree_text(evidence->crash, "address")), BP_TEXT(name), BP_TID(tid),
                BP_TEXT(frames));
    } else {
        const char *summary =
            bp_json_tree_text_or(evidence->crash, "summary", "of an unknown signal");
        bp_find(evidence, "crash{[ in {}]}: {[{}: ]}{}{[, in {}]}", BP_TEXT(own), BP_TEXT(cause),
                BP_TEXT(summary), BP_TEXT(frames));
    }
}

/* Its name, and its error. */
static void list_channel(const bp_json_tree *channel, size_t max_bytes,
                         bp_argument *ret_arguments) {
    ret_arguments[0] = BP_CUT_TEXT(bp_json_tree_text_or(channel, "channel", "?"), 63);
    ret_arguments[1] =
        BP_CUT_TEXT(bp_json_tree_text_or(channel, "error", "no error was given"), max_bytes);
}

void bp_diagnose_disconnect(bp_evidence *evidence) {
    enum { named_max_count = 3 };
    bp_argument arguments[3 + 2 * named_max_count + 1] = {{.kind = BP_ARGUMENT_END}};
    size_t at = 2;
    uint64_t count = 0;
    if (evidence->disconnect == NULL) {
        return;
    }
    BP_JSON_EACH (other, bp_json_tree_rows(evidence->disconnect, "others")) {
        if (count++ < named_max_count) {
            list_channel(other, 80, &arguments[at]);
            at += 2;
        }
    }
    list_channel(evidence->disconnect, BP_SENTENCE_TEXT_BYTES, arguments);
    for (; at < 2 + 2 * named_max_count; at++) {
        arguments[at] = BP_TEXT("");
    }
    arguments[at] = BP_COUNT(count > named_max_count ? count - named_max_count : 0);
    bp_find_as(evidence, evidence->running, "disconnect-cause.json",
               "the channel \"{}\" was lost: {}{[; then \"{}\": {}]}{[; then \"{}\": {}]}{[; then "
               "\"{}\": {}]}{[; and {} others]}",
               arguments);
}

/* Signals that the kernel sends for a limit or a refused call. */
static const struct {
    const char *name, *meaning;
} meanings[] = {
    {"SIGSYS", ": probably a filter (seccomp) refused a system call"},
    {"SIGXFSZ", ": probably it wrote beyond its limit of the size of files"},
    {"SIGXCPU", ": probably it used up its limit of CPU time"},
    {"SIGPIPE", ": probably nobody reads any more what it wrote to a pipe or socket"},
};

/* The CPU time in ms of a process that was killed at its hard limit of it, where the kernel sends
 * SIGKILL (setrlimit(2)); 0: it was not. For the limit the kernel counts ticks, which run ahead of
 * the time that was used where a hypervisor takes some of it. */
static double cpu_ms_at_limit(const bp_evidence *evidence, const char *signal,
                              uint64_t limit_secs) {
    static const double least_share = 0.8, late_max_ms = 1000;
    double cpu_ms = 0, limit_ms = (double)limit_secs * 1000;
    (void)bp_json_tree_number(bp_json_tree_object(evidence->metadata, "exit"), "cpu_ms", &cpu_ms);
    bool is_at_limit = cpu_ms >= limit_ms * least_share && cpu_ms <= limit_ms + late_max_ms;
    return strcmp(signal, "SIGKILL") == 0 && limit_secs > 0 && is_at_limit ? cpu_ms : 0;
}

/* Nothing where `crash` has the same signal, and more of it. */
void bp_diagnose_killed(bp_evidence *evidence) {
    const bp_json_tree *end = bp_json_tree_object(evidence->metadata, "exit");
    char signal[BP_SIGNAL_BYTES];
    const char *meaning = "";
    if (!bp_exit_signal(evidence->metadata, signal) ||
        strcmp(bp_json_tree_text_or(evidence->crash, "name", ""), signal) == 0) {
        return;
    }
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        meaning = strcmp(signal, meanings[i].name) == 0 ? meanings[i].meaning : meaning;
    }
    bool has_core = bp_json_tree_is_true(end, "core_dumped");
    uint64_t limit_secs = bp_limit(evidence->process, "Max cpu time", "hard");
    double cpu_ms = cpu_ms_at_limit(evidence, signal, limit_secs);
    bp_find(evidence,
            "it died of {}{}{}{[: probably at its hard limit of {} s of CPU time]}{[, of which it "
            "used {}]}",
            BP_TEXT(signal), BP_TEXT(has_core ? " (core dumped)" : ""), BP_TEXT(meaning),
            BP_COUNT(cpu_ms > 0 ? limit_secs : 0), BP_SECS(cpu_ms));
}

/* Why the command could not be executed; NULL where it could. */
static const char *not_executed(const bp_evidence *evidence) {
    return bp_json_tree_text(bp_json_tree_object(evidence->metadata, "exit"), "not_executed");
}

/* The exit status; 0 also for a process that did not exit. */
static uint64_t exit_status(const bp_evidence *evidence) {
    const bp_json_tree *end = bp_json_tree_object(evidence->metadata, "exit");
    char signal[BP_SIGNAL_BYTES];
    bool has_exited = !bp_exit_signal(evidence->metadata, signal) && not_executed(evidence) == NULL;
    return has_exited ? bp_json_tree_uint_or(end, "status", 0) : 0;
}

void bp_diagnose_not_executed(bp_evidence *evidence) {
    if (not_executed(evidence) != NULL) {
        bp_find(evidence, "the command could not be executed: {}", BP_TEXT(not_executed(evidence)));
    }
}

/* True if the command was a shell itself, whose own word its exit status is. */
static bool was_shell(const bp_evidence *evidence) {
    static const char *const shells[] = {"sh",  "bash", "dash", "ash",  "ksh",
                                         "zsh", "fish", "mksh", "tcsh", NULL};
    return bp_array_has_text(shells, bp_json_tree_text_or(evidence->metadata, "process_name", ""));
}

/* With the meaning that shells give it (POSIX.1-2017, 2.8.2). */
void bp_diagnose_exit_status(bp_evidence *evidence) {
    static const char *const refusals[] = {"ermission denied", "annot execute", "xec format error",
                                           "s a directory", NULL};
    const char *at;
    uint64_t status = exit_status(evidence);
    const char *words = "";
    const char *name = bp_json_tree_text_or(evidence->metadata, "process_name", "");
    const char *signal =
        status > 128 && status < 160 ? bp_model_signal_name((int)status - 128) : NULL;
    if (status == 0) {
        return;
    }
    if (status == 126 && find_line(evidence, searched_max, refusals, &at) != NULL) {
        words = ", a shell's word for a command that cannot be executed";
    } else if (status == 127 && was_shell(evidence)) {
        words = ", a shell's word for a command that was not found";
    } else if (status == 124 && strcmp(name, "timeout") == 0) {
        words = ", the word of timeout(1) for a command that took too long";
    } else if (signal != NULL) {
        words = ", a shell's word for a child that died of ";
    }
    bp_find(evidence, "it ended with exit status {}{}{}", BP_COUNT(status), BP_TEXT(words),
            BP_TEXT(signal));
}

void bp_diagnose_not_found(bp_evidence *evidence) {
    enum { near_max = 8 }; /* what a program had not found long before is no reason */
    static const char *const words[] = {"not found", "No such file or directory", NULL};
    const char *at;
    const char *line =
        exit_status(evidence) == 127 ? find_line(evidence, near_max, words, &at) : NULL;
    if (line != NULL && strstr(line, "shared librar") == NULL) {
        bp_find(evidence, "a command was not found: {}", BP_TEXT(line));
    }
}

/* As the loaders of glibc and musl say it. */
void bp_diagnose_library(bp_evidence *evidence) {
    static const char *const words[] = {
        "error while loading shared libraries: ", "Error loading shared library ", NULL};
    const char *at;
    char library[BP_EVIDENCE_LINE_BYTES];
    if (exit_status(evidence) == 127 && find_line(evidence, searched_max, words, &at) != NULL) {
        at = strstr(at, words[0]) == at ? at + strlen(words[0]) : at + strlen(words[1]);
        size_t length = strcspn(at, ":");
        bp_utf8_copy_ends(library, sizeof library, at, length);
        bp_find(evidence, "the library \"{}\" could not be loaded{}", BP_TEXT(library),
                BP_TEXT(at + length));
    }
}

/* How a shell names the signal that a child died of (strsignal(3)), before its own exit. */
static const struct {
    int number;
    const char *words[2];
} deaths[] = {
    {SIGILL, {"Illegal instruction", NULL}},
    {SIGTRAP, {"Trace/breakpoint trap", NULL}},
    {SIGABRT, {"Aborted", NULL}},
    {SIGBUS, {"Bus error", NULL}},
    {SIGFPE, {"Floating point", NULL}},
    {SIGKILL, {"Killed", NULL}},
    {SIGSEGV, {"Segmentation fault", NULL}},
    {SIGTERM, {"Terminated", NULL}},
    {SIGSYS, {"Bad system call", NULL}},
};

void bp_diagnose_child_killed(bp_evidence *evidence) {
    uint64_t status = exit_status(evidence);
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        const char *at;
        if (status == 128 + (uint64_t)deaths[i].number &&
            find_line(evidence, searched_max, deaths[i].words, &at) != NULL) {
            bp_find(evidence,
                    "a child of it died, probably of {}: its exit status is {}, and its output has "
                    "\"{}\"",
                    BP_TEXT(bp_model_signal_name(deaths[i].number)), BP_COUNT(status),
                    BP_TEXT(deaths[i].words[0]));
        }
    }
}

/* The words by which a program says that its child died of SIGKILL: make, gcc, Python, Node, Rust,
 * and those that name the exit status of a shell. */
static bool has_lost_child(const bp_evidence *evidence) {
    enum { near_max = 16 };
    static const char *const words[] = {
        "Killed", "SIGKILL", "ignal 9", "ignal: 9", "137", "terminated abruptly", NULL};
    const char *at;
    uint64_t status = exit_status(evidence);
    return status == 128 + SIGKILL ||
           (status != 0 && find_line(evidence, near_max, words, &at) != NULL);
}

/* The group of the process, or the first one above, that ran out of memory while the session was
 * open; or NULL. */
static const bp_json_tree *find_oom_group(const bp_evidence *evidence, uint64_t *ret_kills) {
    BP_JSON_EACH (cgroup, bp_json_tree_rows(evidence->system, "cgroups")) {
        const bp_json_tree *memory = bp_json_tree_object(cgroup, "memory");
        if (bp_json_tree_uint(memory, "session_oom_kills", ret_kills) && *ret_kills > 0) {
            return cgroup;
        }
    }
    return NULL;
}

static bool died_of_sigkill(const bp_evidence *evidence) {
    char signal[BP_SIGNAL_BYTES];
    return bp_exit_signal(evidence->metadata, signal) && strcmp(signal, "SIGKILL") == 0;
}

/* The kernel counts its kills while the session is open: those in the groups of the process, or, if
 * these are not known, those of the machine. */
void bp_diagnose_oom_killed(bp_evidence *evidence) {
    bool was_killed = died_of_sigkill(evidence);
    const char *subject = was_killed ? "it" : "a child of it";
    uint64_t kills = 0;
    if (!was_killed && !has_lost_child(evidence)) {
        return;
    }
    const bp_json_tree *group = find_oom_group(evidence, &kills);
    if (group != NULL) {
        const bp_json_tree *memory = bp_json_tree_object(group, "memory");
        bp_find(evidence,
                "{} was probably killed for lack of memory: meanwhile the kernel killed {} "
                "process{|es} for it in the control group \"{}\"{[, which may use {} MiB]}",
                BP_TEXT(subject), BP_COUNT(kills),
                BP_CUT_TEXT(bp_json_tree_text_or(group, "path", ""), 120),
                BP_COUNT(bp_json_tree_uint_or(memory, "max_bytes", 0) >> 20));
    } else if (bp_json_tree_uint(bp_json_tree_object(evidence->system, "memory"),
                                 "oom_kills_in_session", &kills) &&
               kills > 0) {
        bp_find(evidence,
                "{} was probably killed for lack of memory: meanwhile the kernel killed {} "
                "process{|es} of this machine for it",
                BP_TEXT(subject), BP_COUNT(kills));
    }
}

/* Where the end of the process does not name it. What was killed before the process was observed
 * may have been of last month. */
void bp_diagnose_cgroup_kills(bp_evidence *evidence) {
    uint64_t kills = 0;
    const bp_json_tree *group = find_oom_group(evidence, &kills);
    if (group != NULL && !died_of_sigkill(evidence) && !has_lost_child(evidence)) {
        bp_find(evidence,
                "the control group \"{}\" ran out of memory while it was observed: the kernel "
                "killed {} process{|es}",
                BP_CUT_TEXT(bp_json_tree_text_or(group, "path", ""), 120), BP_COUNT(kills));
    }
}

void bp_diagnose_died(bp_evidence *evidence) {
    char signal[BP_SIGNAL_BYTES];
    bool has_died =
        strcmp(bp_json_tree_text_or(evidence->metadata, "session_end", ""), "died") == 0;
    if (has_died && evidence->crash == NULL && exit_status(evidence) == 0 &&
        !bp_exit_signal(evidence->metadata, signal)) {
        bp_find(
            evidence,
            "the process ended without closing its session, and no handler saw why: it exited, or "
            "was killed; what it had recorded was recovered",
            BP_END);
    }
}

void bp_diagnose_log_errors(bp_evidence *evidence) {
    if (evidence->recent_error_count > 0) {
        bp_find(evidence,
                "{} error{|s} in the {} before the trigger{[ and the {} after it]}, the last: {}",
                BP_COUNT(evidence->recent_error_count), BP_NUMBER(BP_EVIDENCE_RECENT_SECS, 0, " s"),
                bp_evidence_rest(evidence), BP_TEXT(evidence->recent_error));
    }
}

/* --- triggers ----------------------------------------------------------------------------- */

void bp_diagnose_gap(bp_evidence *evidence) {
    const char *key = bp_json_tree_text(evidence->metadata, "gap_key");
    if (key != NULL) {
        bp_find(evidence, "the first occurrence of the gap \"{}\"", BP_TEXT(key));
    }
}

void bp_diagnose_condition(bp_evidence *evidence) {
    const bp_json_tree *condition = bp_json_tree_object(evidence->metadata, "condition");
    if (condition != NULL) {
        bp_find(evidence, "the condition \"{}\" became true: {}",
                BP_TEXT(bp_json_tree_text_or(condition, "text", "?")),
                BP_TEXT(bp_json_tree_text_or(condition, "found", "?")));
    }
}

/* Automatic triggers shortly before the one of this report, which are listed below the findings. */
void bp_diagnose_triggers(bp_evidence *evidence) {
    size_t near_count = 0;
    uint64_t newest_ns = 0, now_ns = evidence->triggered_wall_ns;
    const char *newest = "";
    const char *own_key = bp_json_tree_text_or(
        evidence->metadata, "gap_key",
        bp_json_tree_text_or(evidence->metadata, "channel",
                             bp_json_tree_text_or(evidence->hang, "name", "")));
    BP_JSON_EACH (row, bp_json_tree_rows(evidence->manifest, "triggers")) {
        const char *type = bp_json_tree_text_or(row, "report_type", ""),
                   *key = bp_json_tree_text_or(row, "key", "");
        const char *last = bp_json_tree_text(row, "last");
        uint64_t last_ns = 0;
        bool is_near = last != NULL && now_ns != 0 && bp_clock_parse(last, &last_ns) &&
                       last_ns <= now_ns && now_ns - last_ns <= BP_EVIDENCE_RECENT_NS;
        if (is_near && strcmp(type, "auto-snapshot") != 0 && strcmp(type, "condition") != 0 &&
            strcmp(key, own_key) != 0) {
            near_count++;
            if (last_ns >= newest_ns) {
                newest_ns = last_ns;
                newest = key;
            }
        }
    }
    if (near_count > 0) {
        bp_find(
            evidence,
            "{} other gap{|s}, disconnect{|s} or hang{|s} in the {} before the trigger, the last "
            "{} before: \"{}\"",
            BP_COUNT(near_count), BP_NUMBER(BP_EVIDENCE_RECENT_SECS, 0, " s"),
            BP_NUMBER((double)(now_ns - newest_ns) / 1e9, 1, " s"), BP_CUT_TEXT(newest, 120));
    }
}

/* --- what is missing ---------------------------------------------------------------------- */

void bp_diagnose_no_manifest(bp_evidence *evidence) {
    if (evidence->manifest == NULL) {
        bp_find(evidence, "it is not there, so that what else is missing is not known", BP_END);
    }
}

/* True for an entry that should be in the report, and is not or in part. What there was nothing of,
 * was refused or turned off is in the manifest alone; and a process that has ended has no more
 * threads. */
static bool is_loss(const bp_evidence *evidence, const bp_json_tree *line) {
    const char *status = bp_json_tree_text_or(line, "status", "?");
    bool has_ended = bp_json_tree_object(evidence->metadata, "exit") != NULL;
    bool has_failed = strcmp(status, "failed") == 0 || strcmp(status, "timed_out") == 0;
    return has_failed || (!has_ended && bp_json_tree_is_true(line, "missing"));
}

/* True if two lines say the same: for one reason, or of one further process, which has ended or may
 * not be looked at. */
static bool is_same_loss(const bp_json_tree *line, const bp_json_tree *other) {
    const char *reason = bp_json_tree_text(line, "reason");
    const char *name = bp_json_tree_text_or(line, "name", "");
    size_t length = bp_entry_folder_bytes(name);
    return (reason != NULL && strcmp(bp_json_tree_text_or(other, "reason", ""), reason) == 0) ||
           (length > 0 && strncmp(bp_json_tree_text_or(other, "name", ""), name, length) == 0);
}

/* The first loss from `from` on, before `end` (NULL: all), that says what `line` says; or NULL. */
static const bp_json_tree *find_same(const bp_evidence *evidence, const bp_json_tree *from,
                                     const bp_json_tree *end, const bp_json_tree *line) {
    while (from != end && !(is_loss(evidence, from) && is_same_loss(line, from))) {
        from = bp_json_tree_next(from);
    }
    return from != end ? from : NULL;
}

/* Entries that are lost, those that say the same in one finding. */
void bp_diagnose_missing(bp_evidence *evidence) {
    enum { looked_at_max = BP_FINDING_MAX }; /* each is compared with all others */
    const bp_json_tree *first = bp_json_tree_rows(evidence->manifest, "artefacts");
    size_t looked_at = 0;
    for (const bp_json_tree *line = first; line != NULL && looked_at < looked_at_max;
         line = bp_json_tree_next(line)) {
        size_t more_count = 0;
        if (!is_loss(evidence, line)) {
            continue;
        }
        looked_at++;
        if (find_same(evidence, first, line, line) != NULL) {
            continue; /* said already */
        }
        for (const bp_json_tree *other = line;
             (other = find_same(evidence, bp_json_tree_next(other), NULL, line)) != NULL;) {
            more_count++;
        }
        bp_find_in(evidence, bp_json_tree_text_or(line, "name", "?"),
                   "{}{[, and {} more entr{y|ies}]}: {}",
                   BP_CUT_TEXT(bp_json_tree_text_or(line, "status", "?"), 20), BP_COUNT(more_count),
                   BP_TEXT(bp_json_tree_text_or(line, "reason", "no reason is given")));
    }
}
