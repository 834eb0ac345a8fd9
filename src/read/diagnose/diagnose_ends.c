/* Diagnoses of how a process ended, what it said before, and what is missing from its report. */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "base/utf8.h"
#include "diagnose/evidence.h"
#include "diagnose/last_words.h"
#include "diagnose/trace.h"
#include "entries/frames.h"
#include "model/entry.h"
#include "model/fields.h"

/* --- what it said ------------------------------------------------------------------------- */

/* The last one of so many output lines with one of these words, or NULL. */
static const char *find_line(const bp_evidence *evidence, uint64_t line_max,
                             const char *const *words, const char **ret_at) {
    uint64_t count = evidence->output_count;
    for (uint64_t i = 1; i <= count && i <= line_max; i++) {
        const char *line = bp_output_text(evidence, count - i);
        for (size_t k = 0; words[k] != NULL; k++) {
            *ret_at = strstr(line, words[k]);
            if (*ret_at != NULL) {
                return line;
            }
        }
    }
    return NULL;
}

/* Without output there is the message of glibc at most, which the crash has as its cause. */
void bp_diagnose_last_words(bp_evidence *evidence) {
    char words[BP_LAST_WORDS_BYTES], place[BP_TRACE_PLACE_BYTES];
    if (evidence->output_count > 0 && bp_last_words_find(evidence, true, words, place)) {
        bp_find(evidence, "its last words: {}{[; in {}]}", BP_TEXT(words), BP_TEXT(place));
    }
}

/* --- the end ------------------------------------------------------------------------------ */

/* The cause where it is known, and else what the code of the signal means. Who calls abort says
 * why before: that is the cause. */
void bp_diagnose_crash(bp_evidence *evidence) {
    char frames[BP_FRAME_LIST_BYTES], own[BP_FRAME_NAME_BYTES], cause[BP_LAST_WORDS_BYTES];
    const bp_json_tree *backtrace = bp_json_tree_object(evidence->crash, "backtrace");
    if (evidence->crash == NULL) {
        return;
    }
    bp_utf8_copy(cause, sizeof cause, bp_json_tree_text_or(evidence->crash, "cause", ""));
    if (strcmp(bp_json_tree_text_or(evidence->crash, "name", ""), "SIGABRT") == 0) {
        char words[BP_LAST_WORDS_BYTES], unused[BP_TRACE_PLACE_BYTES];
        bool is_of_exception = bp_text_begins(cause, "uncaught exception ");
        if (bp_last_words_find(evidence, false, words, unused) &&
            (!is_of_exception || bp_text_begins(words, "uncaught exception "))) {
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
    if (status == 126 && find_line(evidence, BP_LAST_WORDS_SEARCHED_MAX, refusals, &at) != NULL) {
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
    bool is_script = line != NULL && (strstr(line, "required file not found") != NULL ||
                                      strstr(line, "bad interpreter") != NULL);
    if (line != NULL && strstr(line, "shared librar") == NULL) {
        bp_find(evidence, "{} was not found: {}",
                BP_TEXT(is_script ? "the interpreter or loader of a command" : "a command"),
                BP_TEXT(line));
    }
}

/* As the loaders of glibc and musl say it. */
void bp_diagnose_library(bp_evidence *evidence) {
    static const char *const words[] = {
        "error while loading shared libraries: ", "Error loading shared library ", NULL};
    const char *at;
    char library[BP_EVIDENCE_LINE_BYTES];
    if (exit_status(evidence) == 127 &&
        find_line(evidence, BP_LAST_WORDS_SEARCHED_MAX, words, &at) != NULL) {
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
            find_line(evidence, BP_LAST_WORDS_SEARCHED_MAX, deaths[i].words, &at) != NULL) {
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
