/* Diagnoses of CPU: threads that use too much of it, and too many threads. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "diagnose/evidence.h"
#include "entries/frames.h"

/* Bounds of progress, and how often a thread of Python is asked for the interpreter's lock. */
static const double faults_per_sec = 16, chars_per_sec = 4096, handovers_per_sec = 260;

/* True for a process that reads an endless source and writes to /dev/null. */
static bool has_endless_input(const bp_evidence *evidence) {
    static const char *const sources[] = {"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                                          NULL};
    bool is_endless = false, is_lost = false;
    for (size_t i = 0; i < evidence->files.count; i++) {
        const bp_json_tree *file = evidence->files.rows[i];
        const char *target = bp_json_tree_text_or(file, "target", "");
        uint64_t fd = bp_json_tree_uint_or(file, "number", UINT64_MAX);
        is_lost = is_lost || (fd == 1 && strcmp(target, "/dev/null") == 0);
        is_endless = is_endless || (fd == 0 && bp_array_has_text(sources, target));
    }
    return is_endless && is_lost;
}

/*
 * True if a thread of Python was switched because others asked for the lock of the interpreter.
 * That is at most once in 5 ms (sys.getswitchinterval), costs the kernel little, and each of those
 * others waits as well.
 */
static bool hands_over_lock(const bp_evidence *evidence, const bp_thread *thread, double secs) {
    double other_switches = 0;
    if (!bp_evidence_is_of_python(evidence) || thread->system_ms < 0 ||
        thread->system_ms * 10 >= thread->cpu_ms ||
        thread->voluntary_switches > handovers_per_sec * secs) {
        return false;
    }
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *other = &evidence->threads[i];
        other_switches +=
            other != thread && other->voluntary_switches > 0 ? other->voluntary_switches : 0;
    }
    return other_switches >= thread->voluntary_switches;
}

/*
 * A busy thread gets on if something comes in, goes out or is new in memory. What is repeated for
 * ever has none of it: no page faults in loops of C, and of the interpreters of Python, Perl,
 * JavaScript, awk, sh and SQL. Short lines alone may be the same error again and again.
 */
static bool gets_on(const bp_evidence *evidence, const bp_thread *thread, bool is_in_kernel) {
    static const double wakes_per_sec = 100, line_chars = 512;
    /* It cannot do much in a small share of a CPU. */
    double secs = (thread->cpu_ms > 0 ? thread->cpu_ms : evidence->window_ms) / 1000;
    bool is_woken = thread->voluntary_switches >= wakes_per_sec * secs &&
                    !hands_over_lock(evidence, thread, secs) &&
                    bp_thread_busy_timer(evidence, thread) == NULL;
    if (thread->page_faults >= faults_per_sec * secs || is_woken) {
        return true;
    }
    if (thread->read_chars < 0) { /* it slept at an end of the window, or we may not know */
        return thread->voluntary_switches > 0;
    }
    bool writes = thread->written_chars >= chars_per_sec * secs &&
                  thread->written_chars >= line_chars * thread->write_calls;
    return (writes || thread->read_chars >= chars_per_sec * secs) &&
           !(is_in_kernel && has_endless_input(evidence));
}

/* A computation that says how far it is writes a few lines, each after at least 0.2 ms of work. So
 * does a loop that tries something again and says that it failed. */
static bool says_progress(const bp_evidence *evidence, const bp_thread *thread) {
    static const double lines_per_sec = 4, lines_per_cpu_sec = 5000;
    return thread->write_calls * 1000 >= lines_per_sec * evidence->window_ms &&
           thread->write_calls * 1000 <= lines_per_cpu_sec * thread->cpu_ms &&
           thread->written_chars >= 2 * thread->write_calls;
}

static bool has_namesakes(const bp_evidence *evidence, const bp_thread *thread) {
    size_t count = 0;
    for (size_t i = 0; i < evidence->thread_count && count < 2; i++) {
        count += strcmp(evidence->threads[i].name, thread->name) == 0;
    }
    return count > 1;
}

enum { place_bytes = 192 };

/* "; at the end it was in work (app.py:12), a function of Python": of a profile, all functions are
 * the interpreter's. False where it ran none. */
static bool find_python_place(const bp_evidence *evidence, const bp_thread *thread,
                              char out[place_bytes]) {
    char function[BP_FRAME_NAME_BYTES];
    if (bp_json_tree_rows(thread->stack, "python_frames") == NULL) {
        return false;
    }
    bp_frames_print_own(thread->stack, evidence->finder, function);
    (void)snprintf(out, place_bytes, "; at the end it was in %s, a function of Python", function);
    return function[0] != '\0';
}

/* "; 94 % of its 182 samples are in count_primes, called by price_all". False without a profile, or
 * where no function has half of the samples of its name. */
static bool find_place(const bp_evidence *evidence, const bp_thread *thread,
                       char out[place_bytes]) {
    const bp_call_tree *profile = evidence->profile;
    uint32_t node = profile != NULL ? bp_call_tree_thread(profile, thread->name) : 0;
    char function[BP_FRAME_NAME_BYTES], caller[BP_FRAME_NAME_BYTES] = "";
    bp_call_path path = {.count = 0};
    if (node != 0) {
        bp_call_tree_find_path(profile, node, &path);
    }
    if (path.count == 0) {
        return false;
    }
    uint64_t samples = profile->nodes[node].samples;
    bp_call_tree_short_name(profile, path.nodes[0], function);
    if (path.caller != 0) {
        bp_call_tree_short_name(profile, path.caller, caller);
    }
    bool is_shared = has_namesakes(evidence, thread);
    (void)snprintf(out, place_bytes, "; %.0f %% of %s %" PRIu64 " samples%s are in %s%s%s",
                   100 * (double)path.samples / (double)samples, is_shared ? "the" : "its", samples,
                   is_shared ? " of threads of its name" : "", function,
                   caller[0] != '\0' ? ", called by " : "", caller);
    return true;
}

enum { moved_bytes = 256 };

/* The only regular file that is open for writing and is no standard stream; NULL where there are
 * several, none, or some that are not known. */
static const char *find_only_output(const bp_evidence *evidence) {
    const char *only = NULL;
    if (evidence->files.count < evidence->files.total_count) {
        return NULL;
    }
    for (size_t i = 0; i < evidence->files.count; i++) {
        const bp_json_tree *file = evidence->files.rows[i];
        const char *target = bp_json_tree_text_or(file, "target", "");
        bool is_output = bp_json_tree_uint_or(file, "number", 0) > 2 &&
                         strcmp(bp_json_tree_text_or(file, "kind", ""), "file") == 0 &&
                         strcmp(bp_json_tree_text_or(file, "access", "read"), "read") != 0;
        if (is_output && only != NULL && strcmp(only, target) != 0) {
            return NULL;
        }
        only = is_output ? target : only;
    }
    return only;
}

/* "; it read 0 bytes, and wrote 250963 in 250963 calls, probably to /srv/export.csv". Of one that
 * writes bit by bit, the size of the bits is the cause; and calls that write nothing have failed,
 * as on a full disk (vfs_write in fs/read_write.c counts both). */
static void print_moved(const bp_evidence *evidence, const bp_thread *thread,
                        char out[moved_bytes]) {
    if (thread->read_chars < 0) {
        return;
    }
    size_t used = (size_t)snprintf(out, moved_bytes, "; it read %.0f bytes, and wrote %.0f",
                                   thread->read_chars, thread->written_chars);
    if (thread->write_calls > 1) {
        used += (size_t)snprintf(out + used, moved_bytes - used, " in %.0f calls%s",
                                 thread->write_calls,
                                 thread->written_chars == 0 ? ", which all failed" : "");
    }
    if (thread->write_calls < chars_per_sec * thread->cpu_ms / 1000) {
        return;
    }
    const char *path = find_only_output(evidence);
    if (path != NULL) {
        char cut[128];
        bp_utf8_copy_ends(cut, sizeof cut, path, strlen(path));
        (void)snprintf(out + used, moved_bytes - used, ", probably to %s", cut);
    }
}

/* True if it may share the interpreter's lock with others that compute as well: it is switched by
 * them alone, and neither reads nor writes, nor uses new memory, as far as that is known. */
static bool may_share_lock(const bp_evidence *evidence, const bp_thread *thread) {
    double secs = thread->cpu_ms / 1000;
    return !thread->is_own && !thread->is_born && thread->cpu_ms * 20 >= evidence->window_ms &&
           thread->system_ms >= 0 && thread->system_ms * 10 < thread->cpu_ms &&
           thread->voluntary_switches > 0 &&
           thread->voluntary_switches * 1000 <= handovers_per_sec * evidence->window_ms &&
           thread->page_faults < faults_per_sec * secs &&
           thread->read_chars < chars_per_sec * secs &&
           thread->written_chars < chars_per_sec * secs;
}

/* Threads of Python that compute, of which one runs at a time: together they use a CPU, or are
 * ready to. True if there are two or more, and the others do little. */
static bool find_shared_spin(bp_evidence *evidence) {
    static const double busy_percent = 90, shared_percent = 60, starved_percent = 5,
                        window_min_ms = 1000, wait_ms = 5; /* sys.getswitchinterval() */
    const bp_thread *named[2] = {NULL, NULL};
    char functions[2][BP_FRAME_NAME_BYTES];
    double shared_ms = 0, all_ms = 0, delay_ms = 0, waited_ms = 0;
    uint64_t count = 0;
    if (evidence->window_ms < window_min_ms || !bp_evidence_is_of_python(evidence)) {
        return false;
    }
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        double cpu_ms = thread->cpu_ms > 0 && !thread->is_own ? thread->cpu_ms : 0;
        all_ms += cpu_ms;
        if (may_share_lock(evidence, thread)) {
            shared_ms += cpu_ms;
            delay_ms += thread->run_delay_ms > 0 ? thread->run_delay_ms : 0;
            waited_ms += thread->voluntary_switches * wait_ms;
            named[count > 0] = count < 2 ? thread : named[1];
            count++;
        }
    }
    double percent = shared_ms / evidence->window_ms * 100;
    double wanted_percent = (shared_ms + delay_ms) / evidence->window_ms * 100;
    bool has_waited = (shared_ms + waited_ms) * 4 >= 3 * (double)count * evidence->window_ms;
    bool is_starved = (percent >= starved_percent && wanted_percent >= busy_percent) ||
                      (percent >= shared_percent && has_waited);
    if (count < 2 || shared_ms * 5 < all_ms * 4 || (percent < busy_percent && !is_starved)) {
        return false;
    }
    /* A thread that waited for the lock at the end may have input that is not known. */
    if (evidence->files.count < evidence->files.total_count ||
        bp_evidence_has_open(evidence, "socket")) {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        bp_frames_print_own(named[i]->stack, evidence->finder, functions[i]);
    }
    bp_find(evidence,
            "{} threads of Python, of which one runs at a time, together {} {} of one CPU for {}: "
            "thread {}{[ in {}]}, thread {}{[ in {}]}{[, and {} more]}",
            BP_COUNT(count),
            BP_TEXT(percent < busy_percent ? "wanted a whole CPU, and got" : "used"),
            BP_NUMBER(percent, 0, " %"), BP_SECS(evidence->window_ms), bp_thread_argument(named[0]),
            BP_TEXT(functions[0]), bp_thread_argument(named[1]), BP_TEXT(functions[1]),
            BP_COUNT(count - 2));
    return true;
}

/*
 * A thread is busy that used nearly all of the window, or of its own time if it was born in it; and
 * on a machine with too few processors one that used some of it, and was ready to run for the rest.
 * All diagnoses of it: in the program, also as it says how far it is, and in the kernel.
 */
void bp_diagnose_spin(bp_evidence *evidence) {
    static const double busy_percent = 90, least_ms = 250;
    bool is_wanted_in_kernel = evidence->running == BP_DIAGNOSIS_SPIN_CALLS;
    bool is_wanted_in_progress = evidence->running == BP_DIAGNOSIS_SPIN_PROGRESS;
    if (evidence->running == BP_DIAGNOSIS_SPIN && find_shared_spin(evidence)) {
        return;
    }
    for (size_t i = 0; i < evidence->busiest_count; i++) {
        const bp_thread *thread = evidence->busiest[i];
        bool has_rate = thread->is_born && thread->age_ms >= least_ms;
        double lived_ms = has_rate ? thread->age_ms : evidence->window_ms;
        double percent = has_rate ? thread->cpu_ms / lived_ms * 100 : thread->cpu_percent;
        /* Less where it is known to have been ready at both ends. */
        double starved_percent = thread->run_delay_ms >= 0 ? 5 : 20;
        /* One that sleeps only for the interpreter's lock ran, or waited for a CPU, else. */
        bool is_never_asleep =
            thread->voluntary_switches == 0 ||
            (thread->run_delay_ms >= 0 &&
             (thread->cpu_ms + thread->run_delay_ms) * 100 >= busy_percent * lived_ms &&
             hands_over_lock(evidence, thread, thread->cpu_ms / 1000));
        bool is_starved = is_never_asleep && !thread->is_born && percent < busy_percent &&
                          percent >= starved_percent && lived_ms >= least_ms;
        double system_ms = thread->system_ms > 0 ? thread->system_ms : 0;
        bool is_in_kernel = system_ms * 4 >= thread->cpu_ms && thread->cpu_ms > 0;
        bool is_progress = !is_in_kernel && says_progress(evidence, thread);
        char moved[moved_bytes] = "", place[place_bytes] = "";
        if (is_progress != is_wanted_in_progress || (percent < busy_percent && !is_starved) ||
            is_in_kernel != is_wanted_in_kernel || gets_on(evidence, thread, is_in_kernel)) {
            continue;
        }
        double kernel_percent = is_in_kernel ? system_ms / thread->cpu_ms * 100 : -1;
        print_moved(evidence, thread, moved);
        const char *entry = "runtime-metrics.json";
        if (find_python_place(evidence, thread, place)) {
            entry = "stacks.json";
        } else if (find_place(evidence, thread, place)) {
            entry = "profile.folded";
        }
        bp_find_in(
            evidence, entry,
            "thread {}{} {} {} of one CPU for {}{[, {} of it in the kernel]}{}{[; a timer runs its "
            "handler of {} again and again]}{}",
            bp_thread_argument(thread), BP_TEXT(has_rate ? ", born in the window," : ""),
            BP_TEXT(is_starved ? "wanted a whole CPU, and got" : "used"),
            BP_NUMBER(percent, 0, " %"), BP_SECS(lived_ms), BP_NUMBER(kernel_percent, 0, " %"),
            BP_TEXT(place), BP_TEXT(bp_thread_busy_timer(evidence, thread)), BP_TEXT(moved));
    }
}

void bp_diagnose_many_threads(bp_evidence *evidence) {
    enum { same_name_min = 512 }; /* a Java program has hundreds of threads, of many names */
    if (evidence->common_count >= same_name_min) {
        bool is_cut = evidence->thread_count == BP_EVIDENCE_THREAD_MAX;
        bp_find(evidence, "{}{} of its {} threads are called \"{}\"",
                BP_TEXT(is_cut ? "at least " : ""), BP_COUNT(evidence->common_count),
                BP_COUNT(evidence->measured_count), BP_TEXT(evidence->common_name));
    }
}

/* A command that has ended takes all its threads along. */
void bp_diagnose_ended_threads(bp_evidence *evidence) {
    static const double least_percent = 20, window_min_ms = 250;
    const bp_json_tree *process = bp_json_tree_object(evidence->metrics, "process");
    double ended_ms = 0, percent = 0;
    if (!bp_json_tree_number(process, "ended_threads_cpu_ms", &ended_ms) ||
        !bp_json_tree_number(process, "cpu_percent", &percent) ||
        evidence->window_ms < window_min_ms ||
        bp_json_tree_object(evidence->metadata, "exit") != NULL) {
        return;
    }
    double ended_percent = ended_ms / evidence->window_ms * 100;
    if (ended_percent >= least_percent && ended_percent * 4 >= percent * 3) {
        bp_find(evidence,
                "threads that ended within the window of {} used {} of one CPU; the whole process "
                "used {}",
                BP_SECS(evidence->window_ms), BP_NUMBER(ended_percent, 1, " %"),
                BP_NUMBER(percent, 1, " %"));
    }
}

enum { cause_bytes = 96 };

/* Why a thread has less than its share: "; nice 19; it may run on 1 of 2 CPUs" (sched(7)). False
 * where nothing of its own is the reason. */
static bool name_cause(const bp_evidence *evidence, const bp_thread *thread,
                       char out[cause_bytes]) {
    const bp_json_tree *cpus = bp_json_tree_object(evidence->system, "cpus");
    double nice = 0;
    uint64_t online = bp_json_tree_uint_or(cpus, "online", 0);
    const bp_json_tree *scheduling = bp_json_tree_object(thread->row, "scheduling");
    bool is_last = strcmp(bp_json_tree_text_or(scheduling, "policy", ""), "idle") == 0;
    char limit[48] = "", low[48] = "";
    (void)bp_json_tree_number(scheduling, "nice", &nice);
    if (is_last) {
        bp_utf8_copy(low, sizeof low, "; it runs when nothing else does (SCHED_IDLE)");
    } else if (nice > 0) {
        (void)snprintf(low, sizeof low, "; nice %.0f", nice);
    }
    if (online > 1 && bp_json_tree_uint_or(cpus, "usable", 0) == 1) {
        (void)snprintf(limit, sizeof limit, "; it may run on 1 of %" PRIu64 " CPUs", online);
    }
    (void)snprintf(out, cause_bytes, "%s%s", low, limit);
    return out[0] != '\0';
}

/* How long it was ready to run and did not; -1 where that is not known. The kernel counts a wait at
 * its end: who was ready at both ends of the window and never slept waited all the time it did not
 * run. */
static double waited_ms(const bp_evidence *evidence, const bp_thread *thread) {
    bool was_always_ready = thread->run_delay_ms >= 0 && thread->voluntary_switches == 0;
    double waited = was_always_ready ? evidence->window_ms - thread->cpu_ms : thread->run_delay_ms;
    return waited < evidence->window_ms ? waited : evidence->window_ms;
}

/* On a busy machine every thread waits, and nothing is wrong with this program: it is named where
 * it is kept from the CPU by its own priority, or on one CPU of several. */
void bp_diagnose_starved(bp_evidence *evidence) {
    static const double window_min_ms = 1000;
    const bp_thread *worst = NULL;
    char cause[cause_bytes], unused[cause_bytes];
    uint64_t count = 0;
    for (size_t i = 0; i < evidence->thread_count && evidence->window_ms >= window_min_ms; i++) {
        const bp_thread *thread = &evidence->threads[i];
        bool is_starved = !thread->is_born && !thread->is_own &&
                          waited_ms(evidence, thread) * 2 >= evidence->window_ms &&
                          thread->cpu_ms >= 0 && thread->cpu_ms * 2 < evidence->window_ms;
        if (is_starved && name_cause(evidence, thread, unused)) {
            if (worst == NULL || waited_ms(evidence, thread) > waited_ms(evidence, worst)) {
                worst = thread;
            }
            count++;
        }
    }
    if (worst != NULL) {
        (void)name_cause(evidence, worst, cause);
        bp_find(evidence,
                "thread {} waited for a CPU for {} of {}, and ran for {}{}{[, and {} more]}",
                bp_thread_argument(worst), BP_NUMBER(waited_ms(evidence, worst) / 1000, 1, ""),
                BP_SECS(evidence->window_ms), BP_SECS(worst->cpu_ms), BP_TEXT(cause),
                BP_COUNT(count - 1));
    }
}
