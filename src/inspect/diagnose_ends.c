/* Diagnoses of how a process ended, what it said before, and what is missing from its report. */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "inspect/evidence.h"
#include "inspect/frames.h"
#include "model/fields.h"

/* --- what it said ------------------------------------------------------------------------- */

/* How runtimes begin what they say of an end: the cause is in this line or the next, and what
 * follows is a trace. Of others the last line is the cause, as of Python. */
static const struct {
    const char *words;
    bool goes_on;                                                /* in the next line */
} endings[] = {{"terminate called after throwing", true},        /* libstdc++ */
               {"terminating due to uncaught exception", false}, /* libc++ */
               {"terminate called", false},
               {"Assertion `", false},      /* glibc */
               {"Assertion failed", false}, /* musl, macOS */
               {"*** ", false},             /* glibc's fortify and stack protector */
               {"free(): ", false},
               {"malloc(): ", false},
               {"double free or corruption", false},
               {"corrupted ", false},
               {"munmap_chunk(): ", false},
               {"realloc(): ", false},
               {"panicked at", true}, /* Rust */
               {"panic: ", false},    /* Go */
               {"fatal error: ", false},
               {"Exception in thread", false}, /* Java */
               {"AddressSanitizer: ", false},
               {"ThreadSanitizer: ", false},
               {"runtime error: ", false},
               {"fatal: ", false},       /* git */
               {"Parse error: ", false}, /* SQLite */
               {"error while loading shared libraries", false}};

enum { words_bytes = 2 * BP_EVIDENCE_LINE_BYTES };

static const char *output_line(const bp_evidence *evidence, uint64_t number) {
    const char *line = evidence->output[number % BP_EVIDENCE_LINE_MAX];
    return line + strspn(line, " \t");
}

/* The last output line with one of these words, or NULL. */
static const char *find_line(const bp_evidence *evidence, const char *const *words,
                             const char **ret_at) {
    uint64_t count = evidence->output_count;
    uint64_t kept = count < BP_EVIDENCE_LINE_MAX ? count : BP_EVIDENCE_LINE_MAX;
    for (uint64_t i = 1; i <= kept; i++) {
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

static bool begins_end(const char *line, bool *ret_goes_on) {
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (strstr(line, endings[i].words) != NULL) {
            *ret_goes_on = endings[i].goes_on;
            return true;
        }
    }
    return false;
}

/* What it said of its end, or without that its last line, if any line will do, or what glibc kept
 * in memory for a crash handler; false with "" for none. */
static bool find_last_words(const bp_evidence *evidence, bool takes_any, char out[words_bytes]) {
    uint64_t count = evidence->output_count;
    uint64_t at = count > BP_EVIDENCE_LINE_MAX ? count - BP_EVIDENCE_LINE_MAX : 0;
    bool goes_on = false;
    out[0] = '\0';
    while (at < count && !begins_end(output_line(evidence, at), &goes_on)) {
        at++;
    }
    if (count == 0 || (at == count && !takes_any)) {
        const char *message = bp_json_tree_text_or(evidence->crash, "abort_message", "");
        bp_utf8_copy(out, words_bytes, message);
        return out[0] != '\0';
    }
    at = at < count ? at : count - 1;
    goes_on = goes_on && at + 1 < count;
    (void)snprintf(out, words_bytes, "%s%s%s", output_line(evidence, at), goes_on ? " " : "",
                   goes_on ? output_line(evidence, at + 1) : "");
    return true;
}

void bp_diagnose_last_words(bp_evidence *evidence) {
    char words[words_bytes];
    if (find_last_words(evidence, true, words)) {
        bp_find_in(evidence, evidence->output_count > 0 ? "logs.jsonl" : "crash.json",
                   "its last words: %s", words);
    }
}

/* --- the end ------------------------------------------------------------------------------ */

/* The cause where it is known, and else what the code of the signal means. Who calls abort says
 * why before: that is the cause. */
void bp_diagnose_crash(bp_evidence *evidence) {
    char summary[224], frames[BP_FRAME_LIST_BYTES], own[BP_FRAME_NAME_BYTES], cause[words_bytes];
    enum { cause_max = 160 };
    const bp_json_tree *backtrace = bp_json_tree_object(evidence->crash, "backtrace");
    if (evidence->crash == NULL) {
        return;
    }
    bp_utf8_copy(summary, sizeof summary,
                 bp_json_tree_text_or(evidence->crash, "summary", "of an unknown signal"));
    bp_utf8_copy(cause, sizeof cause, bp_json_tree_text_or(evidence->crash, "cause", ""));
    if (strcmp(bp_json_tree_text_or(evidence->crash, "name", ""), "SIGABRT") == 0) {
        char words[words_bytes];
        if (find_last_words(evidence, false, words)) {
            bp_utf8_copy(cause, sizeof cause, words);
        }
    }
    cause[bp_utf8_cut(cause, strlen(cause), cause_max)] = '\0'; /* the rest has to fit */
    bp_frames_print(backtrace, evidence->finder, frames);
    bp_frames_print_own(backtrace, evidence->finder, own);
    char *meaning = strstr(summary, "): "); /* behind the thread */
    if (cause[0] != '\0' && meaning != NULL) {
        meaning[1] = '\0';
    }
    bp_find(evidence, "crash%s%s: %s%s%s%s%s", own[0] != '\0' ? " in " : "", own, cause,
            cause[0] != '\0' ? ": " : "", summary, frames[0] != '\0' ? ", in " : "", frames);
}

void bp_diagnose_disconnect(bp_evidence *evidence) {
    char channel[64];
    if (evidence->disconnect != NULL) {
        bp_utf8_copy(channel, sizeof channel,
                     bp_json_tree_text_or(evidence->disconnect, "channel", "?"));
        bp_find(evidence, "the channel \"%s\" was lost: %s", channel,
                bp_json_tree_text_or(evidence->disconnect, "error", "no error was given"));
    }
}

/* What a signal means that a limit of the process leads to, or its use of the kernel. */
static const struct {
    const char *name, *meaning;
} meanings[] = {
    {"SIGSYS", ": probably a filter (seccomp) refused a system call"},
    {"SIGXFSZ", ": probably it wrote beyond its limit of the size of files"},
    {"SIGXCPU", ": probably it used up its limit of CPU time"},
    {"SIGPIPE", ": probably nobody reads any more what it wrote to a pipe or socket"},
};

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
    bp_find(evidence, "it died of %s%s%s", signal,
            bp_json_tree_is_true(end, "core_dumped") ? " (core dumped)" : "", meaning);
}

/* The exit status; 0 also for a process that did not exit. */
static uint64_t exit_status(const bp_evidence *evidence) {
    uint64_t status = 0;
    char signal[BP_SIGNAL_BYTES];
    if (!bp_exit_signal(evidence->metadata, signal)) {
        (void)bp_json_tree_uint(bp_json_tree_object(evidence->metadata, "exit"), "status", &status);
    }
    return status;
}

/* What a shell means by it (POSIX.1-2017, 2.8.2); nothing for one that is the program's. */
void bp_diagnose_exit_status(bp_evidence *evidence) {
    uint64_t status = exit_status(evidence);
    const char *words = "";
    const char *signal =
        status > 128 && status < 160 ? bp_model_signal_name((int)status - 128) : NULL;
    if (status == 0) {
        return;
    }
    if (status == 127) {
        words = ", a shell's word for a command that was not found";
    } else if (status == 126) {
        words = ", a shell's word for a command that cannot be executed";
    } else if (signal != NULL) {
        words = ", a shell's word for a child that died of ";
    }
    bool has_line = evidence->output_count > 0;
    bp_find(evidence, "it ended with exit status %" PRIu64 "%s%s%s%s", status, words,
            signal != NULL ? signal : "", has_line ? "; its last line: " : "",
            has_line ? output_line(evidence, evidence->output_count - 1) : "");
}

void bp_diagnose_not_found(bp_evidence *evidence) {
    static const char *const words[] = {"not found", "No such file or directory", NULL};
    const char *at;
    const char *line = exit_status(evidence) == 127 ? find_line(evidence, words, &at) : NULL;
    if (line != NULL && strstr(line, "shared librar") == NULL) {
        bp_find(evidence, "a command was not found: %s", line);
    }
}

/* As the loaders of glibc and musl say it. */
void bp_diagnose_library(bp_evidence *evidence) {
    static const char *const words[] = {
        "error while loading shared libraries: ", "Error loading shared library ", NULL};
    const char *at;
    if (exit_status(evidence) == 127 && find_line(evidence, words, &at) != NULL) {
        at = strstr(at, words[0]) == at ? at + strlen(words[0]) : at + strlen(words[1]);
        int length = (int)strcspn(at, ":");
        bp_find(evidence, "the library \"%.*s\" could not be loaded%s", length, at, at + length);
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
            find_line(evidence, deaths[i].words, &at) != NULL) {
            bp_find(evidence,
                    "a child of it died, probably of %s: its exit status is %" PRIu64
                    ", and its output has \"%s\"",
                    bp_model_signal_name(deaths[i].number), status, deaths[i].words[0]);
        }
    }
}

/* The groups of the process; their counts are since they began, and so may be of other processes.
 */
void bp_diagnose_oom_killed(bp_evidence *evidence) {
    char signal[BP_SIGNAL_BYTES], path[121];
    bool was_child = exit_status(evidence) == 128 + SIGKILL;
    bool was_killed = bp_exit_signal(evidence->metadata, signal) && strcmp(signal, "SIGKILL") == 0;
    const bp_json_tree *cgroup =
        bp_json_tree_first(bp_json_tree_array(evidence->system, "cgroups"));
    for (; cgroup != NULL && (was_killed || was_child); cgroup = bp_json_tree_next(cgroup)) {
        uint64_t kills;
        if (bp_json_tree_uint(bp_json_tree_object(cgroup, "memory"), "oom_kills", &kills) &&
            kills > 0) {
            bp_utf8_copy(path, sizeof path, bp_json_tree_text_or(cgroup, "path", "?"));
            bp_find(evidence,
                    "%s was probably killed for lack of memory, for which the kernel has killed "
                    "%" PRIu64 " in the control group \"%s\" since that began",
                    was_child ? "a child of it" : "it", kills, path);
            return;
        }
    }
}

void bp_diagnose_died(bp_evidence *evidence) {
    char signal[BP_SIGNAL_BYTES];
    bool has_died =
        strcmp(bp_json_tree_text_or(evidence->metadata, "session_end", ""), "died") == 0;
    if (has_died && exit_status(evidence) == 0 && !bp_exit_signal(evidence->metadata, signal)) {
        bp_find(evidence, "the process died; its rings were recovered");
    }
}

void bp_diagnose_log_errors(bp_evidence *evidence) {
    if (evidence->recent_error_count > 0) {
        bp_find(evidence, "%" PRIu64 " error%s in the %d s before the trigger, the last: %s",
                evidence->recent_error_count, evidence->recent_error_count == 1 ? "" : "s",
                (int)(BP_EVIDENCE_RECENT_NS / BP_NS_PER_SEC), evidence->recent_error);
    }
}

/* --- triggers ----------------------------------------------------------------------------- */

void bp_diagnose_gap(bp_evidence *evidence) {
    const char *key = bp_json_tree_text(evidence->metadata, "gap_key");
    if (key != NULL) {
        bp_find(evidence, "the first occurrence of the gap \"%s\"", key);
    }
}

/* Automatic triggers shortly before the one of this report, which are listed below the findings. */
void bp_diagnose_triggers(bp_evidence *evidence) {
    size_t near_count = 0;
    uint64_t newest_ns = 0, now_ns = evidence->triggered_wall_ns;
    char newest[121] = "";
    const char *own_key = bp_json_tree_text_or(
        evidence->metadata, "gap_key", bp_json_tree_text_or(evidence->metadata, "channel", ""));
    for (const bp_json_tree *row =
             bp_json_tree_first(bp_json_tree_array(evidence->manifest, "triggers"));
         row != NULL; row = bp_json_tree_next(row)) {
        const char *type = bp_json_tree_text_or(row, "report_type", ""),
                   *key = bp_json_tree_text_or(row, "key", "");
        const char *last = bp_json_tree_text(row, "last");
        uint64_t last_ns = 0;
        bool is_near = last != NULL && now_ns != 0 && bp_clock_parse(last, &last_ns) &&
                       last_ns <= now_ns && now_ns - last_ns <= BP_EVIDENCE_RECENT_NS;
        if (is_near && strcmp(type, "auto-snapshot") != 0 && strcmp(key, own_key) != 0) {
            near_count++;
            if (last_ns >= newest_ns) {
                newest_ns = last_ns;
                bp_utf8_copy(newest, sizeof newest, key);
            }
        }
    }
    if (near_count > 0) {
        bp_find(evidence,
                "%zu other gap%s or disconnect%s in the %d s before the trigger, the last "
                "%.1f s before: \"%s\"",
                near_count, near_count == 1 ? "" : "s", near_count == 1 ? "" : "s",
                (int)(BP_EVIDENCE_RECENT_NS / BP_NS_PER_SEC), (double)(now_ns - newest_ns) / 1e9,
                newest);
    }
}

/* --- what is missing ---------------------------------------------------------------------- */

void bp_diagnose_no_manifest(bp_evidence *evidence) {
    if (evidence->manifest == NULL) {
        bp_find(evidence, "not there: nothing says what is missing");
    }
}

/* Whether a manifest line says that something is lost. What an entry could not have is in the
 * manifest alone: a complete report lacks only what was turned off or was not there, and a process
 * that has ended has no more threads. */
static bool is_loss(const bp_evidence *evidence, const bp_json_tree *line) {
    const char *status = bp_json_tree_text_or(line, "status", "?");
    bool has_ended = bp_json_tree_object(evidence->metadata, "exit") != NULL;
    return strcmp(status, "ok") != 0 && strcmp(status, "disabled") != 0 &&
           !(has_ended && (strcmp(status, "omitted") == 0 || strcmp(status, "truncated") == 0));
}

/* The first line from `line` on that is a loss for that reason, or NULL. */
static const bp_json_tree *find_loss(const bp_evidence *evidence, const bp_json_tree *line,
                                     const char *reason) {
    while (line != NULL && (!is_loss(evidence, line) ||
                            strcmp(bp_json_tree_text_or(line, "reason", ""), reason) != 0)) {
        line = bp_json_tree_next(line);
    }
    return line;
}

/* Entries that are lost, those of one reason in one finding. */
void bp_diagnose_missing(bp_evidence *evidence) {
    enum { looked_at_max = BP_FINDING_MAX }; /* each is compared with all others */
    const bp_json_tree *first =
        bp_json_tree_first(bp_json_tree_array(evidence->manifest, "artefacts"));
    size_t looked_at = 0;
    if (bp_json_tree_is_true(evidence->manifest, "complete")) {
        return;
    }
    for (const bp_json_tree *line = first; line != NULL && looked_at < looked_at_max;
         line = bp_json_tree_next(line)) {
        const char *reason = bp_json_tree_text_or(line, "reason", "no reason is given");
        size_t more_count = 0;
        char more[32] = "";
        if (!is_loss(evidence, line)) {
            continue;
        }
        looked_at++;
        const bp_json_tree *other = find_loss(evidence, first, reason);
        if (bp_json_tree_text(line, "reason") != NULL && other != line) {
            continue; /* said already */
        }
        other = find_loss(evidence, bp_json_tree_next(line), reason);
        for (; other != NULL; other = find_loss(evidence, bp_json_tree_next(other), reason)) {
            more_count++;
        }
        if (more_count > 0) {
            (void)snprintf(more, sizeof more, ", and %zu more entr%s", more_count,
                           more_count == 1 ? "y" : "ies");
        }
        bp_find_in(evidence, bp_json_tree_text_or(line, "name", "?"), "%.20s%s: %s",
                   bp_json_tree_text_or(line, "status", "?"), more, reason);
    }
}
