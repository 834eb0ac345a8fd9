/* Diagnoses of what happens too often. */

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "diagnose/evidence.h"

static double wakes_per_sec(const bp_evidence *evidence, const bp_thread *thread) {
    return thread->voluntary_switches / evidence->window_ms * 1000;
}

/* True if its kernel stack is in such a call: one whose timer is fast hardly ever sleeps in it. */
static bool was_in_pause(const bp_thread *thread) {
    bool is_found = false;
    BP_JSON_EACH (frame, bp_json_tree_rows(thread->row, "kernel_stack")) {
        const char *name = bp_json_tree_value(frame);
        is_found =
            is_found || strstr(name, "sys_pause") != NULL || strstr(name, "sigsuspend") != NULL;
    }
    return is_found;
}

/* The signal of a timer for which a thread returns from a call that only signals end, as pause, and
 * that the process handles; NULL for none, and where it handles one that another process may send.
 */
static const char *find_timer_signal(const bp_evidence *evidence, const bp_thread *thread) {
    static const char *const calls[] = {"pause", "rt_sigsuspend", NULL};
    static const char *const signals[] = {"SIGALRM", "SIGVTALRM", "SIGPROF", NULL};
    static const char *const others[] = {"SIGCHLD", "SIGUSR1", "SIGUSR2", "SIGIO", NULL};
    const bp_json_tree *handlers = bp_json_tree_rows(evidence->waits, "signal_handlers");
    const char *found = NULL;
    bool is_awake = thread->syscall[0] == '\0';
    if (bp_array_has_text(calls, thread->syscall) || (is_awake && was_in_pause(thread))) {
        BP_JSON_EACH (handler, handlers) {
            const char *name = bp_json_tree_value(handler);
            if (bp_array_has_text(others, name)) {
                return NULL;
            }
            found = bp_array_has_text(signals, name) ? name : found;
        }
    }
    return found;
}

const char *bp_thread_busy_timer(const bp_evidence *evidence, const bp_thread *thread) {
    return thread->system_ms * 2 >= thread->cpu_ms ? find_timer_signal(evidence, thread) : NULL;
}

/*
 * True if nobody but the clock wakes it so often: it is in a call that only time or a timer ends,
 * as a read of a timerfd; in poll or epoll_wait with a limit that explains the rate; or on a futex
 * with a limit, while no other thread runs often or long enough to wake it.
 */
static bool is_woken_by_time(const bp_evidence *evidence, const bp_thread *thread) {
    const char *call = thread->syscall;
    const char *channel = bp_json_tree_text_or(thread->row, "wait_channel", "");
    bool is_poll = strcmp(call, "poll") == 0, is_read = strcmp(call, "read") == 0;
    const bp_json_tree *read =
        is_read ? bp_evidence_file(evidence, strtoull(bp_thread_call_argument(thread, 0), NULL, 16))
                : NULL;
    if (strcmp(bp_json_tree_text_or(read, "kind", ""), "timerfd") == 0 ||
        bp_thread_only_sleeps(thread) || strcmp(channel, "hrtimer_nanosleep") == 0 ||
        find_timer_signal(evidence, thread) != NULL) {
        return true;
    }
    if (is_poll || strcmp(call, "epoll_wait") == 0 || strcmp(call, "epoll_pwait") == 0) {
        const char *limit = bp_thread_call_argument(thread, is_poll ? 2 : 3);
        unsigned long limit_ms = strtoul(limit, NULL, 16);
        return limit_ms > 0 && wakes_per_sec(evidence, thread) * (double)limit_ms <= 1100;
    }
    const char *limit = bp_thread_call_argument(thread, 3);
    if (strcmp(call, "futex") != 0 || limit[0] == '\0' || strcmp(limit, "0x0") == 0) {
        return false;
    }
    double other_switches = 0, other_cpu_ms = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *other = &evidence->threads[i];
        bool is_counted = other != thread && other->is_measured;
        other_switches += is_counted ? other->voluntary_switches : 0;
        other_cpu_ms += is_counted ? other->cpu_ms : 0;
    }
    return other_switches * 10 <= thread->voluntary_switches && other_cpu_ms <= thread->cpu_ms;
}

/* The monitor of Go's scheduler sleeps for 20 us at a time while others work ("sysmon" in
 * runtime/proc.go). An executable of Go has no C library, as a rule. */
static bool is_of_go(const bp_evidence *evidence, const char *function) {
    bool has_library = bp_evidence_has_object(evidence, "/libc.so") ||
                       bp_evidence_has_object(evidence, "/ld-musl");
    return strncmp(function, "runtime.", strlen("runtime.")) == 0 ||
           (function[0] == '\0' && !has_library);
}

/* A loop of control, as of sound or of a machine, has to wake often, and has a priority for it. A
 * few threads that wake so often may hand a lock to each other, and all be asleep when they are
 * looked at. */
void bp_diagnose_idle_wakeups(bp_evidence *evidence) {
    enum { pool_min = 8 };
    static const double rate_min = 500, window_min_ms = 500, work_max_ms = 0.1, spin_percent = 90;
    static const char *const policies[] = {"other", "batch", "idle", NULL};
    const bp_thread *worst = NULL;
    char function[BP_FRAME_NAME_BYTES] = "";
    uint64_t count = 0, often_count = 0;
    /* A tracer, as strace, stops it at each of its calls. */
    bool is_traced = bp_json_tree_object(evidence->waits, "traced_by") != NULL;
    for (size_t i = 0; i < evidence->thread_count && evidence->window_ms >= window_min_ms; i++) {
        const bp_thread *thread = &evidence->threads[i];
        const bp_json_tree *scheduling = bp_json_tree_object(thread->row, "scheduling");
        char own[BP_FRAME_NAME_BYTES];
        double rate = thread->is_own || is_traced ? 0 : wakes_per_sec(evidence, thread);
        often_count += rate * 2 >= rate_min;
        if (rate < rate_min || thread->is_born || thread->cpu_ms < 0 ||
            (thread->cpu_ms > work_max_ms * thread->voluntary_switches &&
             (thread->cpu_percent >= spin_percent ||
              bp_thread_busy_timer(evidence, thread) == NULL)) ||
            !bp_array_has_text(policies, bp_json_tree_text_or(scheduling, "policy", "")) ||
            !is_woken_by_time(evidence, thread)) {
            continue;
        }
        bp_thread_print_function(evidence, thread, own);
        if (is_of_go(evidence, own)) {
            return;
        }
        if (worst == NULL || thread->voluntary_switches > worst->voluntary_switches) {
            worst = thread;
            memcpy(function, own, sizeof function);
        }
        count++;
    }
    if (count == often_count && (count == 1 || count >= pool_min)) {
        bp_find(evidence,
                "thread {} woke {} times a second{}: it waits for a moment "
                "at a time{[, in {}]}{[, called by {}]}{[, for its handler of {}]}; it used {} of "
                "one CPU{[; {} more thread{|s} do the same]}",
                bp_thread_argument(worst), BP_NUMBER(wakes_per_sec(evidence, worst), 0, ""),
                BP_TEXT(worst->cpu_percent < 10 ? " and did next to nothing" : ""),
                BP_TEXT(worst->syscall), BP_TEXT(function),
                BP_TEXT(find_timer_signal(evidence, worst)), BP_NUMBER(worst->cpu_percent, 1, " %"),
                BP_COUNT(count - 1));
    }
}

/* True if it may serve others: then each child may be one of them. */
static bool may_serve(const bp_evidence *evidence) {
    for (size_t i = 0; i < evidence->files.count; i++) {
        const bp_json_tree *socket = bp_json_tree_object(evidence->files.rows[i], "socket");
        if (strcmp(bp_json_tree_text_or(socket, "state", ""), "listening") == 0) {
            return true;
        }
    }
    return !bp_evidence_has_all_files(evidence);
}

/* True if it may read the work of its children from standard input, as xargs does. */
static bool has_input(const bp_evidence *evidence) {
    static const char *const kinds[] = {"file", "pipe", "fifo", "socket", NULL};
    const char *kind = bp_json_tree_text_or(bp_evidence_file(evidence, 0), "kind", "");
    return bp_array_has_text(kinds, kind);
}

/* The command of the children that fails most; NULL where they run more than two. Forks count where
 * nothing is executed: the others were seen a moment too early. */
static const bp_json_tree *find_command(const bp_json_tree *children) {
    const bp_json_tree *worst = NULL, *fork = NULL;
    uint64_t worst_failed = 0, count = 0;
    BP_JSON_EACH (command, bp_json_tree_rows(children, "commands")) {
        uint64_t seen = bp_json_tree_uint_or(command, "count", 0);
        uint64_t failed = bp_json_tree_uint_or(command, "failed", 0);
        bool is_own = bp_json_tree_is_true(command, "own");
        fork = is_own ? command : fork;
        count += !is_own && seen > 0;
        if (!is_own && failed > worst_failed) {
            worst = command;
            worst_failed = failed;
        }
    }
    bool has_more = bp_json_tree_is_true(children, "has_more_commands") || count > 2;
    return has_more ? NULL : count > 0 ? worst : fork;
}

/*
 * A program that is started again and again and fails at once. What works starts programs with
 * other arguments, in other folders, of other names (make, find, configure), or reads what they are
 * to do (xargs, a loop of a shell over lines). Who starts one, as `head`, may end it by a signal.
 * Status 1 may be an answer, as of grep, and a loop that asks for something until it is there has
 * pauses: these are information.
 */
void bp_diagnose_ended_children(bp_evidence *evidence) {
    enum { ended_min = 8, seen_min = 2 };
    static const double window_min_ms = 1000, rate_min = 5, steady_rate_min = 20, life_max_ms = 500;
    static const char *const of_faults[] = {"SIGSEGV", "SIGBUS",  "SIGILL", "SIGFPE",
                                            "SIGABRT", "SIGTRAP", "SIGSYS", NULL};
    const bp_json_tree *children =
        bp_json_tree_object(bp_json_tree_object(evidence->metrics, "process"), "children");
    const bp_json_tree *command = find_command(children);
    uint64_t seen = bp_json_tree_uint_or(command, "count", 0);
    uint64_t failed = bp_json_tree_uint_or(command, "failed", 0);
    uint64_t ended = bp_json_tree_uint_or(children, "ended_at_least", 0);
    uint64_t chars = bp_json_tree_uint_or(children, "parent_read_chars", UINT64_MAX);
    uint64_t status = bp_json_tree_uint_or(command, "status", 0);
    const char *signal = bp_json_tree_text_or(command, "signal", "");
    bool is_own = bp_json_tree_is_true(command, "own");
    double longest_ms;
    ended = ended > seen ? ended : seen;
    double rate = (double)ended * 1000 / evidence->window_ms;
    if (evidence->window_ms < window_min_ms || ended < ended_min || seen < seen_min ||
        rate < rate_min || !bp_json_tree_number(command, "longest_ms", &longest_ms) ||
        longest_ms > life_max_ms || failed < seen_min ||
        bp_json_tree_uint_or(command, "succeeded", 0) * 10 > failed) {
        return;
    }
    bool is_crash = bp_array_has_text(of_faults, signal);
    bool may_work = signal[0] != '\0' || may_serve(evidence) || (is_own && status == 1) ||
                    (chars >= ended && (status == 1 || has_input(evidence)));
    bool is_sure = is_crash || (rate >= steady_rate_min && status != 1);
    if ((is_crash || !may_work) && is_sure == (evidence->running == BP_DIAGNOSIS_ENDED_CHILDREN)) {
        bp_find(evidence,
                "it starts {[\"{}\"]}{} again and again: at least {} of its children ended in {}; "
                "those that were seen lived for at most {}, and the last that failed "
                "{[was killed by {}]}{[had the status {}]}{[, as of a command that was not {}]}",
                BP_CUT_TEXT(is_own ? "" : bp_json_tree_text_or(command, "name", "?"), 63),
                BP_TEXT(is_own ? "children of its own program" : ""), BP_COUNT(ended),
                BP_SECS(evidence->window_ms), BP_NUMBER(longest_ms, 0, " ms"), BP_TEXT(signal),
                BP_COUNT(status), BP_TEXT(status == 127 ? "found" : ""));
    }
}

/*
 * Java and .NET name the threads of their collectors; the serial collector of Java is its "VM
 * Thread", which does little else. A program that does hardly more than make new objects may spend
 * half of its time so, and not three quarters.
 */
void bp_diagnose_garbage_collection(bp_evidence *evidence) {
    static const char *const names[] = {"GC Thread#",    "G1 ",       "ZWorker",
                                        "ZDriver",       "VM Thread", ".NET Server GC",
                                        "Shenandoah GC", ".NET BGC",  NULL};
    static const double window_min_ms = 1000, least_percent = 15;
    const bp_thread *busiest = NULL;
    double all_percent = 0, percent = 0;
    bool is_known = bp_json_tree_number(bp_json_tree_object(evidence->metrics, "process"),
                                        "cpu_percent", &all_percent);
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (thread->cpu_percent > 0 && bp_array_has_start(names, thread->name)) {
            percent += thread->cpu_percent;
            bool is_busier = busiest == NULL || thread->cpu_percent > busiest->cpu_percent;
            busiest = is_busier ? thread : busiest;
        }
    }
    if (is_known && busiest != NULL && percent >= least_percent && percent * 4 >= all_percent * 3 &&
        evidence->window_ms >= window_min_ms) {
        bp_find(evidence,
                "collecting garbage used {} of one CPU for {}, of {} that the whole process used, "
                "as in thread {}: probably the heap is nearly full, or too small",
                BP_NUMBER(percent, 0, " %"), BP_SECS(evidence->window_ms),
                BP_NUMBER(all_percent, 0, " %"), bp_thread_argument(busiest));
    }
}

/* --- log ---------------------------------------------------------------------------------- */

static bool is_same_line(const char *one, const char *other, bool numbers_count) {
    static const char digits[] = "0123456789";
    for (;;) {
        if (!numbers_count) {
            one += strspn(one, digits);
            other += strspn(other, digits);
        }
        if (*one != *other || *one == '\0') {
            return *one == *other;
        }
        one++;
        other++;
    }
}

void bp_log_rate_add(bp_log_rate *rate, uint64_t wall_ns, bool is_warning, const char *line) {
    bool is_same = is_same_line(line, rate->line, !is_warning);
    rate->first_wall_ns = rate->count++ == 0 ? wall_ns : rate->first_wall_ns;
    rate->last_wall_ns = wall_ns;
    if (rate->votes == 0 && !is_same) {
        bp_utf8_copy(rate->line, sizeof rate->line, line);
        rate->same_count = 0;
        is_same = true;
    }
    rate->same_count += is_same;
    rate->votes = is_same ? rate->votes + 1 : rate->votes - 1;
}

/* An access log has as many lines as requests come in. */
void bp_diagnose_log_storm(bp_evidence *evidence) {
    enum { count_min = 500, line_bytes_min = 8 };
    static const double rate_min = 500, secs_min = 0.25;
    const bp_log_rate *rate = &evidence->log_rate;
    double secs = rate->last_wall_ns > rate->first_wall_ns
                      ? (double)(rate->last_wall_ns - rate->first_wall_ns) / 1e9
                      : 0;
    if (rate->count >= count_min && secs >= secs_min && (double)rate->count >= rate_min * secs &&
        rate->same_count * 2 >= rate->count && strlen(rate->line) >= line_bytes_min &&
        strstr(rate->line, "HTTP/") == NULL) {
        bp_find(evidence,
                "{} lines were logged in {}, {} a second; {} or more of them are the same: {}",
                BP_COUNT(rate->count), BP_NUMBER(secs, 1, " s"),
                BP_NUMBER((double)rate->count / secs, 0, ""), BP_COUNT(rate->same_count),
                BP_TEXT(rate->line));
    }
}
