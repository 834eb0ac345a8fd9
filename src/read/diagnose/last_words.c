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
} trailers[] = {{"", ": *** ["}, /* make */
                {"", ": *** Waiting for unfinished jobs"},
                {"", "not remade because of errors"},
                {"", ": Leaving directory"},
                {"ninja: build stopped", ""},
                {"FAILED: ", ""},
                {"-- Configuring incomplete", ""}, /* CMake */
                {"See ", ""},                      /* CMake, systemctl, docker */
                {"compilation terminated.", ""},
                {"collect2: error: ld returned", ""},
                {"", "error: linker command failed"}, /* clang */
                {"make", ": warning: "},
                {"", ": all warnings being treated as errors"},
                {"note: ", ""}, /* Rust, and pip */
                {"hint: ", ""},
                {"", "o see a list of "},
                {"", "or more information "},
                {"more information ", ""}, /* PostgreSQL */
                {"The Apache error log may", ""},
                {"", "ee above for "},
                {"", "full stack trace "},
                {"[ERROR] [Help ", ""}, /* Maven */
                {"[ERROR] -> [Help ", ""},
                {"[ERROR] Re-run Maven", ""},
                {"", "test failed, to rerun"},
                {"Traceback (most recent", ""},
                {"", " above exception"}, /* between two of Python */
                {"Call Stack (most recent", ""},
                {"In file included from ", ""},
                {"", " function ‘"},
                {" error", ""}, /* "1 error" of javac, and clang */
                {" warning", "generated."},
                {"error: aborting due to", ""},
                {"error: could not compile", ""},
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
                {"npm ", "/_logs/"},
                {"Found ", " error"}, /* tsc */
                {"Errors  Files", ""},
                {"webpack ", " compiled with "},
                {"Target //", " failed to build"}, /* Bazel */
                {"Use --verbose_failures", ""},
                {"Action '", "' failed."}, /* apachectl */
                {"As a reminder, ", ""},   /* cargo */
                {"N: ", ""},               /* apt */
                {"tar: Exiting with failure status", ""},
                {"tar: Error is not recoverable", ""},
                {"tar: Child returned status", ""},
                {"rsync error: ", ""},
                {"rsync: connection unexpectedly closed", ""},
                {"", " bad configuration options"},    /* sshd */
                {"", "FATAL:  configuration file \""}, /* PostgreSQL: "contains errors" */
                {"", "LOG:  database system is shut down"},
                {"Run initdb or pg_basebackup", ""},
                {"", "] HINT:  "},
                {"", "] Aborting"},   /* MySQL */
                {"BUILD FAILED", ""}, /* Gradle */
                {"FAILURE: Build failed", ""},
                {"* Try:", ""},
                {"* Get more help", ""},
                {"> Run with --", ""},
                {"[  ", ""}, /* GoogleTest */
                {"[ RUN ", ""},
                {"[=====", ""},
                {"# fail ", ""},  /* TAP */
                {"FAILED (", ""}, /* unittest */
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
                {"+", " records in"},    /* dd */
                {"+", " records out"},
                {" bytes", " copied, "},
                {"stack traceback:", ""}, /* Lua, before its lines */
                {"Stack trace:", ""},
                {"Execution halted", ""}, /* R */
                {"", "--help"}};

static const char digits[] = "0123456789";

static bool ends_in_colon(const char *line) {
    return bp_text_ends(line, ":") || bp_text_ends(line, ": Failure"); /* of GoogleTest */
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

/* "1 failed, 2 passed in 0.03s", "== 1 error in 0.11s ==". */
static bool is_of_pytest(const char *line) {
    const char *time = strstr(line, " in ");
    const char *point = time != NULL ? time + 4 + strspn(time + 4, digits) : "";
    line += strspn(line, "= 0123456789");
    return (bp_text_begins(line, "failed") || bp_text_begins(line, "error")) && point[0] == '.' &&
           strspn(point + 1, digits) == 2 && point[3] == 's';
}

static bool is_usage(const char *line) {
    return strncasecmp(line, "usage:", 6) == 0 || bp_text_begins(line, "Usage of ");
}

static bool is_trailer(const char *line) {
    line += strspn(line, digits);
    for (size_t i = 0; i < sizeof trailers / sizeof trailers[0]; i++) {
        if (bp_text_begins(line, trailers[i].begin) && strstr(line, trailers[i].has) != NULL) {
            return true;
        }
    }
    return is_usage(line) || is_of_compiler(line) || is_of_pytest(line) ||
           strcmp(line, "FAIL") == 0; /* go test */
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

/* Without letters, as a rule; or with the level of a line alone. */
static bool is_blank(const char *line) {
    const char *end = line[0] == '[' ? strchr(line, ']') : NULL;
    line = end != NULL ? end : line;
    while (*line != '\0' && !isalnum((unsigned char)*line) && (unsigned char)*line < 0x80) {
        line++;
    }
    return *line == '\0';
}

/* A trace, a line of source with its number, as Rust's, or one above a caret. */
static bool is_continuation(const bp_evidence *evidence, uint64_t number) {
    const char *line = bp_output_line(evidence, number);
    if (bp_text_begins(bp_output_text(evidence, number), "! [")) {
        return false; /* git: " ! [rejected]" */
    }
    size_t row_bytes = strspn(line, digits);
    bool is_above_caret = number + 1 < evidence->output_count &&
                          strspn(bp_output_text(evidence, number + 1), "^~") > 0 &&
                          bp_output_line(evidence, number + 1)[0] != '^';
    return line[0] == ' ' || line[0] == '\t' || is_above_caret || is_native_trace(line) ||
           is_blank(line) || bp_text_begins(line, "[ERROR]   ") /* Maven */ ||
           is_of_go(evidence, number) || bp_text_begins(line, ">>> ") ||
           (row_bytes > 0 && bp_text_begins(line + row_bytes, " |"));
}

/* Words of a line that says what went wrong, in lower case. */
static const char *const troubles[] = {
    "error",       "fail",           "fatal",       "cannot",      "could not",   "unable",
    "invalid",     "denied",         "refused",     "abort",       "panic",       "not ",
    "'t ",         "no such",        "exception",   "missing",     "timeout",     "time out",
    "timed out",   ": out of ",      "ran out",     "out of mem",  "too many",    "exceeded",
    "corrupt",     "bad ",           "wrong ",      "unknown ",    "unexpected",  "unrecognized ",
    "undefined ",  "reject",         "conflict",    "mismatch",    "malformed",   "no space",
    "already ",    "is a directory", "file exists", "busy",        "unreachable", "reset by",
    "tion lost",   "lost conn",      "closed by",   "broken pipe", "read-only",   "terminated by",
    "exited with", "exit status",    "exit code",   "giving up",   NULL};

static bool has_any(const char *line, const char *const *words) {
    while (*words != NULL && strcasestr(line, *words) == NULL) {
        words++;
    }
    return *words != NULL;
}

/* True if the word of trouble is a part of another, as in "terror", a name, as of a file, or a
 * count of none: "no errors", "0 failed", "errors=0", "\"error\": null". */
static bool is_harmless(const char *line, const char *at) {
    static const char *const names[] = {
        "failover",   "failsafe",    "fail-",        "error.log",     "error_log", "error-log",
        "errors.log", "exit code 0", "exit code: 0", "exit status 0", NULL};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t before = (size_t)(at - line);
    bool is_part = before > 0 && isalpha((unsigned char)at[-1]) && islower((unsigned char)at[0]);
    bool is_none = before > 1 && at[-1] == ' ' &&
                   ((before > 2 && strncasecmp(at - 3, "no", 2) == 0 &&
                     (before == 3 || !isalpha((unsigned char)at[-4]))) ||
                    (at[-2] == '0' && (before == 2 || strchr(" (:,", at[-3]) != NULL)));
    const char *end = at + strspn(at, letters);
    const char *value = end + strspn(end, "\"=: ");
    size_t bytes = bp_text_begins(value, "null") ? 4 : value[0] == '0';
    bool is_zero =
        value > end && bytes > 0 &&
        (strchr(",;)}]", value[bytes]) != NULL || (end[0] == '=' && value[bytes] == ' '));
    return is_part || is_none || is_zero || bp_array_has_start(names, at);
}

static bool is_of_trouble(const char *line) {
    for (size_t i = 0; troubles[i] != NULL; i++) {
        const char *at = strcasestr(line, troubles[i]);
        while (at != NULL && is_harmless(line, at)) {
            at = strcasestr(at + 1, troubles[i]);
        }
        if (at != NULL) {
            return true;
        }
    }
    return false;
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
    static const char *const levels[] = {"INFO",    "info]",    "level=info", "DEBUG",  "NOTICE",
                                         "notice]", "\"info\"", "debug1",     "System]"};
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

/* A line that begins with the name of an exception, as of Python. */
static bool is_exception(const char *line) {
    size_t length =
        strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    return length > 5 && line[length] == ':' &&
           (strncmp(line + length - 5, "Error", 5) == 0 ||
            (length > 9 && strncmp(line + length - 9, "Exception", 9) == 0));
}

/* True if it is a label of the line: "error:", "[ERROR]", "KeyError:", "level=error". */
static bool has_error_label(const char *line) {
    static const char *const labels[] = {"error", "fatal", "exception", "critical", "panic",
                                         "emerg", "alert", "rejected",  NULL};
    bool is_found = bp_text_begins(line, "not ok ") || bp_text_ends(line, ": Failure");
    for (size_t i = 0; labels[i] != NULL; i++) {
        const char *at = line;
        while (!is_found && (at = strcasestr(at, labels[i])) != NULL) {
            const char *end = at + strlen(labels[i]);
            is_found = (isupper((unsigned char)at[1]) && !isalnum((unsigned char)*end)) ||
                       (*end != '\0' && strchr(":][\"", *end) != NULL) ||
                       (at > line && at[-1] == '=');
            at = end;
        }
    }
    return is_found;
}

/* True if the line may be a cause by its words, and does not say that the program went on. */
static bool may_be_cause(const bp_evidence *evidence, uint64_t at) {
    static const char *const others[] = {"continuing", "ignor",     "skipping",     "retry",
                                         "panic: ",    "in thread", "-CRITICAL **", "libGL error",
                                         "ALSA lib ",  NULL};
    const char *line = bp_output_text(evidence, at);
    const char *warning = strcasestr(line, "warning"), *error = strcasestr(line, "error");
    bool is_warning = warning != NULL && (error == NULL || warning < error);
    return is_of_trouble(line) && !is_warning && strchr(line, ' ') != NULL &&
           !has_any(line, others) && !has_calm_level(line) && !is_trailer(line) &&
           (is_exception(line) || !is_continuation(evidence, at));
}

/* Words of a program that went on after a trouble. */
static const char *const survived[] = {"falling back", "trying again", "retrying", "reconnected",
                                       NULL};

/* Finds the last line that says what went wrong: any such line near the end, and further back one
 * with a label. Standard output is mostly results, and a log of a clean end may follow. */
static uint64_t find_trouble(const bp_evidence *evidence, uint64_t first) {
    enum { looked_at_max = 8 };
    uint64_t count = evidence->output_count;
    for (uint64_t at = count; at > first; at--) {
        const char *line = bp_output_text(evidence, at - 1);
        bool is_of_diff = evidence->is_output_stdout && strcspn(line, "<>+-") == 0;
        bool is_near = count - at < looked_at_max;
        if (may_be_cause(evidence, at - 1) && !is_of_diff && (is_near || has_error_label(line))) {
            return at - 1;
        }
        if (at < count && has_any(line, survived) &&
            !is_aside(bp_output_text(evidence, count - 1))) {
            break;
        }
    }
    return count;
}

/* True if it says that another process failed, which had its own words. */
static bool is_of_child(const char *line) {
    static const char *const words[] = {"exit status", "exit code", "exited with", "hild ", NULL};
    return has_any(line, words);
}

/* The same first word, as "tar:" or "[ERROR]". */
static bool is_same_speaker(const char *line, const char *other) {
    size_t length = strcspn(line, " ");
    return !isdigit((unsigned char)line[0]) && strncmp(line, other, length + 1) == 0;
}

/* The first of the lines of trouble that end with `at`: it led to the others, as of commands in a
 * pipe, or is what they are about. Lines between them may say more of the first, unless they say
 * that it was survived. Of an exception only the one that it was raised for, or the words of a
 * child. */
static uint64_t find_earliest(const bp_evidence *evidence, uint64_t first, uint64_t at) {
    enum { looked_at_max = 8, between_max = 3 };
    const char *line = bp_output_text(evidence, at);
    bool is_chained = !is_exception(line) || is_of_child(line);
    uint64_t found = at;
    for (uint64_t i = at, seen = 0, between = 0; i > first && seen < looked_at_max; i--) {
        const char *text = bp_output_text(evidence, i - 1);
        is_chained = is_chained || strstr(text, " above exception") != NULL;
        if (may_be_cause(evidence, i - 1)) {
            bool is_near = between == 0 &&
                           (strstr(text, ": ") != NULL || ends_in_colon(text) || text[0] == '[');
            bool belongs = is_near || is_of_child(line) || has_error_label(text) ||
                           is_same_speaker(text, line);
            if (!belongs || !is_chained) {
                break;
            }
            found = i - 1;
            between = 0;
            seen++;
            if (is_exception(text)) {
                break;
            }
        } else if (!is_trailer(text) && !is_continuation(evidence, i - 1)) {
            between++;
            seen++;
            if (between > between_max || has_calm_level(text) || has_any(text, survived)) {
                break;
            }
        }
    }
    return found;
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

/* True if the program went on after these words: it quoted a panic, or recovered from it; or an
 * error of valgrind or of another thread stands before a reason of its own. */
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

/* Finds the line that says most in the report of a tool: the summary of a sanitizer has the place,
 * and the error of valgrind stands above its trace. */
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

/* The line of the usage that ends the output, which a reason stands above; else the count. */
static uint64_t find_usage(const bp_evidence *evidence, uint64_t first) {
    for (uint64_t at = evidence->output_count; at > first && !may_be_cause(evidence, at - 1);
         at--) {
        if (is_usage(bp_output_line(evidence, at - 1))) {
            return at - 1;
        }
    }
    return evidence->output_count;
}

/* The end of what the last command of ninja said that failed, which others may follow, or of what
 * stands above a usage; else the count. */
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
    return find_usage(evidence, first);
}

/* The last line before `end` that is no mere continuation or trailer; the count for none. */
static uint64_t find_last(const bp_evidence *evidence, uint64_t first, uint64_t end,
                          bool has_failed, bool *ret_is_of_tests) {
    for (uint64_t at = end; at > first; at--) {
        const char *line = bp_output_text(evidence, at - 1);
        bool is_over = is_trailer(line);
        *ret_is_of_tests = *ret_is_of_tests || is_of_pytest(line);
        if (!is_over && !is_continuation(evidence, at - 1)) {
            return has_failed ? at - 1 : evidence->output_count;
        }
        has_failed = has_failed || is_over;
    }
    return evidence->output_count;
}

/* Finds the reason that pytest prints above its summary, where the summary has none; else `at`. */
static uint64_t find_reason(const bp_evidence *evidence, uint64_t first, uint64_t at) {
    bool has_none = strstr(bp_output_text(evidence, at), " - ") == NULL;
    for (uint64_t i = at; has_none && i > first; i--) {
        if (bp_text_begins(bp_output_line(evidence, i - 1), "E  ")) {
            return i - 1;
        }
    }
    return at;
}

/* Lines that say why: the first, another that followed from it, and the last line; or the same. */
typedef struct cause {
    uint64_t at, then_at, last_at;
    bool is_sure; /* false: nothing but that something failed */
} cause;

/* The last line with a meaning of its own, or one before that says more. */
static cause find_lines(const bp_evidence *evidence, uint64_t first, bool takes_any) {
    uint64_t count = evidence->output_count, end = find_end(evidence, first);
    bool is_stdout = evidence->is_output_stdout, is_of_tests = false;
    bool has_failed = (takes_any && !is_stdout) || end < count;
    uint64_t last = find_last(evidence, first, end, has_failed, &is_of_tests);
    if (!takes_any) {
        return (cause){last, last, last, true};
    }
    const char *line = last < count ? bp_output_text(evidence, last) : "";
    bool is_over = is_of_tests || is_aside(line), is_neutral = !is_of_trouble(line);
    bool looks_further = last < count ? is_over || is_neutral : is_stdout;
    uint64_t trouble = looks_further ? find_trouble(evidence, first) : last;
    if (trouble == count && last == count) {
        uint64_t newest = end > first ? end - 1 : first;
        newest = is_stdout ? count : newest;
        return (cause){newest, newest, newest, false};
    }
    if (trouble == count) {
        return (cause){last, last, end < count && is_neutral ? end : last, true};
    }
    if (is_of_tests) {
        return (cause){find_reason(evidence, first, trouble), trouble, trouble, true};
    }
    uint64_t earliest = find_earliest(evidence, first, trouble);
    bool ends_in_last = last < count && is_neutral && !is_over;
    return (cause){earliest, trouble, ends_in_last ? last : trouble, true};
}

/* Where a runtime begins to say why, or else the last lines. Without `takes_any`, only where a
 * trailer follows; the count of all for none. */
static cause find_cause(const bp_evidence *evidence, bool takes_any) {
    uint64_t count = evidence->output_count, first = find_first(evidence);
    uint64_t found = find_ending(evidence, first, false);
    found = found == count ? find_ending(evidence, first, true) : found;
    cause lines = {found, found, found, true};
    if (found == count && count > first) {
        lines = find_lines(evidence, first, takes_any);
    }
    uint64_t headline = lines.at < count ? find_headline(evidence, first, lines.at) : count;
    lines.last_at = lines.last_at == lines.at ? headline : lines.last_at;
    lines.then_at = lines.then_at == lines.at ? headline : lines.then_at;
    lines.at = headline;
    return lines;
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
    while (strcmp(line, "Caused by:") == 0 && next + 1 < count &&
           is_continuation(evidence, next + 1)) {
        next++; /* the root of Rust's anyhow */
    }
    if (next == count) {
        return at;
    }
    for (uint64_t i = next; is_of_child(line) && i < count && is_continuation(evidence, i); i++) {
        const char *said = bp_output_text(evidence, i);
        if (has_error_label(said) && !is_trailer(said)) {
            return i; /* of the linker, below the error of Rust */
        }
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

/* A line of the cause with what belongs to it. */
static void print_line(const bp_evidence *evidence, uint64_t at, uint64_t rest_at,
                       char out[BP_LAST_WORDS_BYTES]) {
    const char *line = bp_output_text(evidence, at);
    const char *rest = rest_at != at ? bp_output_text(evidence, rest_at) : "";
    bool goes_on = ends_in_colon(rest) && rest_at + 1 < evidence->output_count;
    line += bp_text_begins(line, "| ") ? 2 : 0; /* of a group of exceptions */
    if (bp_text_begins(line, "E  ")) {
        line += 1 + strspn(line + 1, " "); /* of pytest */
    }
    if (!join_exception(line, rest, out)) {
        (void)snprintf(out, BP_LAST_WORDS_BYTES, "%s%s%s%s%s", line, rest[0] != '\0' ? " " : "",
                       rest, goes_on ? " " : "",
                       goes_on ? bp_output_text(evidence, rest_at + 1) : "");
    }
}

/* True unless nothing of it speaks of a trouble. */
static bool find_in(const bp_evidence *evidence, bool takes_any, char out[BP_LAST_WORDS_BYTES],
                    char place[BP_TRACE_PLACE_BYTES]) {
    cause found = find_cause(evidence, takes_any);
    if (found.at == evidence->output_count) {
        return false;
    }
    uint64_t first = find_first(evidence), rest_at = find_rest(evidence, found.last_at);
    const uint64_t places[] = {rest_at, found.last_at, found.then_at, found.at};
    for (size_t i = 0; place[0] == '\0' && i < sizeof places / sizeof places[0]; i++) {
        bp_trace_find_place(evidence, first, places[i], place);
    }
    print_line(evidence, found.at, find_rest(evidence, found.at), out);
    const uint64_t further[] = {found.at, found.then_at, found.last_at};
    for (size_t i = 1; i < sizeof further / sizeof further[0]; i++) {
        uint64_t at = further[i];
        if (at == further[i - 1] || strstr(out, bp_output_text(evidence, at)) != NULL) {
            continue;
        }
        char begin[BP_EVIDENCE_LINE_BYTES], end[BP_LAST_WORDS_BYTES];
        bp_utf8_copy_ends(begin, sizeof begin, out, strlen(out));
        print_line(evidence, at, find_rest(evidence, at), end);
        int length = (int)strlen(begin) - bp_text_ends(begin, ".");
        (void)snprintf(out, BP_LAST_WORDS_BYTES, "%.*s; then %s", length, begin, end);
    }
    size_t length = strlen(out);
    if (place[0] != '\0' && length > 1 && out[length - 1] == '.' && out[length - 2] != '.') {
        out[length - 1] = '\0'; /* the place follows */
    }
    return found.is_sure;
}

bool bp_last_words_find(const bp_evidence *evidence, bool takes_any, char out[BP_LAST_WORDS_BYTES],
                        char place[BP_TRACE_PLACE_BYTES]) {
    char words[BP_LAST_WORDS_BYTES], other[BP_TRACE_PLACE_BYTES] = "";
    out[0] = '\0';
    place[0] = '\0';
    if (find_in(evidence, takes_any, out, place)) {
        return true;
    }
    bp_evidence results = *evidence;
    results.output = evidence->results;
    results.output_count = evidence->result_count;
    results.is_output_stdout = true;
    if (takes_any && results.output_count > 0 && find_in(&results, true, words, other)) {
        bp_utf8_copy(out, BP_LAST_WORDS_BYTES, words);
        bp_utf8_copy(place, BP_TRACE_PLACE_BYTES, other);
    } else if (out[0] == '\0') {
        bp_utf8_copy(out, BP_LAST_WORDS_BYTES,
                     bp_json_tree_text_or(evidence->crash, "abort_message", ""));
    }
    return out[0] != '\0';
}
