/*
 * Diagnoses of what grows: memory, threads and open files. Over the metrics history, or where there
 * is none, over the samples within the window.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "diagnose/evidence.h"

/* A program that was begun a moment ago is still reading what it needs, and starting threads. */
static const double age_min_secs = 10;

/* A figure over some time. */
typedef struct growth {
    uint64_t rise_least; /* of one rise; the caller's, as it starts */
    size_t sample_count, rise_count;
    double from_secs, to_secs, rose_secs, pause_secs; /* the longest without a rise of any size */
    uint64_t from, to, high, largest_fall;
    double higher_secs; /* when it was last higher than ever */
    uint64_t counted_high;
} growth;

static void note(growth *it, double secs, uint64_t value) {
    if (it->sample_count++ == 0) {
        it->from_secs = it->rose_secs = it->higher_secs = secs;
        it->from = it->high = it->counted_high = value;
    }
    if (value > it->high) {
        it->high = value;
        it->higher_secs = secs;
    }
    if (value >= it->counted_high + it->rise_least) {
        it->rise_count++;
        it->counted_high = value;
        it->rose_secs = secs;
    }
    uint64_t fall = it->high - value;
    double pause_secs = secs - it->higher_secs;
    it->largest_fall = fall > it->largest_fall ? fall : it->largest_fall;
    it->pause_secs = pause_secs > it->pause_secs ? pause_secs : it->pause_secs;
    it->to_secs = secs;
    it->to = value;
}

static double span_secs(const growth *it) {
    return it->to_secs - it->from_secs;
}

static uint64_t grown(const growth *it) {
    return it->to > it->from ? it->to - it->from : 0;
}

/* It still rises in the last third, and what it fell by in between is noise. */
static bool has_steps(const growth *it, size_t least_count) {
    return it->rise_count >= least_count && it->largest_fall * 16 <= grown(it) &&
           (it->to_secs - it->rose_secs) * 3 <= span_secs(it);
}

static bool was_old_enough(const bp_evidence *evidence, const growth *it) {
    const bp_json_tree *process = bp_json_tree_object(evidence->metrics, "process");
    double age_secs;
    return bp_json_tree_number(process, "uptime_secs", &age_secs) &&
           age_secs - span_secs(it) >= age_min_secs;
}

/* The samples within the window, of which each has to be newer than the one before. */
static bool note_window(const bp_evidence *evidence, const char *key, growth *it) {
    const bp_json_tree *process = bp_json_tree_object(evidence->metrics, "process");
    BP_JSON_EACH (row, bp_json_tree_rows(process, "rss_samples")) {
        uint64_t value;
        double at_ms;
        if (!bp_json_tree_uint(row, key, &value) || !bp_json_tree_number(row, "at_ms", &at_ms) ||
            (it->sample_count > 0 && at_ms / 1000 <= it->to_secs)) {
            return false;
        }
        note(it, at_ms / 1000, value);
    }
    return it->sample_count > 0;
}

/* --- memory ------------------------------------------------------------------------------- */

/* A thread that makes memory grow, NULL where none stands out; and the end of a sentence about it:
 * "; thread ", 12 "decoder", " allocated 40.0 MiB/s and freed 0.1". */
typedef struct greedy {
    const bp_thread *thread;
    const char *begin;
    bp_argument name;
    char text[96];
} greedy;

/* The difference of two counters of a thread since the first snapshot, in which one that was born
 * later is not. */
static double counted(const bp_json_tree *before, const bp_json_tree *after, const char *key) {
    uint64_t from = bp_json_tree_uint_or(before, key, 0);
    uint64_t to = bp_json_tree_uint_or(after, key, 0);
    return to > from ? (double)(to - from) : 0;
}

/* The thread with at least half of what was allocated and not freed, by the first and the last
 * snapshot of jemalloc's counters. One thread may free what another allocated. */
static void find_allocating(const bp_evidence *evidence, const bp_json_tree *heap, greedy *it) {
    const bp_json_tree *first = bp_json_tree_rows(heap, "snapshots"), *last = first;
    double most = 0, all = 0, from_ns = 0, to_ns = 0;
    while (last != NULL && bp_json_tree_next(last) != NULL) {
        last = bp_json_tree_next(last);
    }
    const bp_json_tree *before = bp_json_tree_rows(first, "threads");
    (void)bp_json_tree_number(first, "monotonic_ns", &from_ns);
    (void)bp_json_tree_number(last, "monotonic_ns", &to_ns);
    double mib_secs = (to_ns - from_ns) / 1e9 * (1 << 20);
    BP_JSON_EACH (after, bp_json_tree_rows(last, "threads")) {
        uint64_t tid = bp_json_tree_uint_or(after, "tid", 0);
        while (before != NULL && bp_json_tree_uint_or(before, "tid", 0) < tid) {
            before = bp_json_tree_next(before);
        }
        bool is_same = bp_json_tree_uint_or(before, "tid", 0) == tid;
        double made = counted(is_same ? before : NULL, after, "allocated_bytes");
        double freed = counted(is_same ? before : NULL, after, "deallocated_bytes");
        all += made > freed ? made - freed : 0;
        if (made - freed > most && mib_secs > 0) {
            most = made - freed;
            it->thread = bp_evidence_thread(evidence, tid);
            (void)snprintf(it->text, sizeof it->text, " allocated %.1f MiB/s and freed %.1f",
                           made / mib_secs, freed / mib_secs);
        }
    }
    it->thread = most * 2 >= all ? it->thread : NULL;
}

/* Without such counters the thread with at least half of the page faults: it used most of the
 * memory that was new in the window. */
static void find_faulting(const bp_evidence *evidence, greedy *it) {
    enum { faults_min = 256 };
    double most = 0, all = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        double faults = thread->page_faults > 0 && !thread->is_own ? thread->page_faults : 0;
        it->thread = faults > most ? thread : it->thread;
        most = faults > most ? faults : most;
        all += faults;
    }
    if (most < faults_min || most * 2 < all || evidence->measured_count < 2) {
        it->thread = NULL;
        return;
    }
    (void)snprintf(it->text, sizeof it->text, " had %.0f %% of the page faults in the window",
                   most / all * 100);
}

/* The thread that makes memory grow, if one stands out. */
static greedy find_greediest(const bp_evidence *evidence) {
    greedy it = {.thread = NULL};
    find_allocating(evidence, evidence->thread_heap, &it);
    BP_JSON_EACH (descendant, bp_json_tree_rows(evidence->thread_heap, "descendants")) {
        if (it.thread == NULL) {
            find_allocating(evidence, descendant, &it);
        }
    }
    if (it.thread == NULL) {
        find_faulting(evidence, &it);
    }
    it.begin = it.thread != NULL ? "; thread " : "";
    if (it.thread != NULL) {
        it.name = bp_thread_argument(it.thread);
    } else {
        it.name = BP_TEXT("");
        it.text[0] = '\0';
    }
    return it;
}

static const uint64_t memory_least_kb = 16 << 10;
enum { step_kb = 1 << 10, steps_min = 3 };

/* Memory that rises through the window, by 16 MiB and a twentieth in all: without a pause of a
 * quarter of it, or in three steps. On a busy machine the samples are few and uneven. The virtual
 * machine of Java fills the young part of its heap before it collects for the first time, which
 * takes minutes under a low load: a healthy one grows all that while. */
static void find_memory_in_window(bp_evidence *evidence) {
    enum { sample_min = 3 };
    static const double close_secs = 0.15;
    growth it = {.rise_least = step_kb};
    bool is_java = bp_evidence_has_object(evidence, "/libjvm.so");
    if (is_java || !note_window(evidence, "rss_kb", &it) || it.largest_fall > 0) {
        return;
    }
    double secs = span_secs(&it);
    bool is_steady = it.pause_secs < close_secs || it.pause_secs < secs / 4;
    if (it.sample_count >= sample_min && (is_steady || has_steps(&it, steps_min)) &&
        grown(&it) >= memory_least_kb && grown(&it) >= it.from / 20 &&
        was_old_enough(evidence, &it)) {
        greedy greediest = find_greediest(evidence);
        bp_find_in(evidence, "runtime-metrics.json",
                   "resident memory grew by {} MiB in {} ({}), to {} MiB{}{}{}",
                   BP_COUNT(grown(&it) >> 10), BP_NUMBER(secs, 1, " s"),
                   BP_NUMBER((double)grown(&it) / 1024 / secs, 0, " MiB/s"), BP_COUNT(it.to >> 10),
                   BP_TEXT(greediest.begin), greediest.name, BP_TEXT(greediest.text));
    }
}

/* Memory, without bugpack's own, that rose by a quarter and 16 MiB over the history: by a third of
 * that in its second half, as a program that starts grows at its beginning; or in three steps,
 * without a fall. */
void bp_diagnose_memory_growth(bp_evidence *evidence) {
    enum { sample_min = 4, half_min = 10 };
    size_t first = 0, last = evidence->sample_count;
    while (first < last && !evidence->samples[first].has_rss) {
        first++;
    }
    while (last > first && !evidence->samples[last - 1].has_rss) {
        last--;
    }
    if (last - first < sample_min) {
        find_memory_in_window(evidence);
        return;
    }
    const bp_sample *from = &evidence->samples[first], *to = &evidence->samples[last - 1];
    const bp_sample *middle = &evidence->samples[first + (last - first) / 2];
    growth it = {.rise_least = step_kb};
    for (size_t i = first; i < last; i++) {
        const bp_sample *sample = &evidence->samples[i];
        if (sample->has_rss && sample->wall_ns >= from->wall_ns) {
            note(&it, (double)(sample->wall_ns - from->wall_ns) / 1e9,
                 sample->rss_kb - sample->own_kb);
        }
    }
    uint64_t middle_kb = middle->rss_kb - middle->own_kb;
    bool has_second_half = last - first >= half_min && middle_kb > it.from && middle_kb < it.to &&
                           (it.to - middle_kb) * 3 >= grown(&it);
    bool is_in_steps = has_steps(&it, steps_min) && was_old_enough(evidence, &it);
    if (grown(&it) >= memory_least_kb && it.to / 5 >= it.from / 4 &&
        (has_second_half || is_in_steps) && to->wall_ns > from->wall_ns) {
        bool has_own = to->own_kb >> 10 > from->own_kb >> 10;
        greedy greediest = find_greediest(evidence);
        bp_find(evidence,
                "resident memory grew from {} to {} MiB in {}{[, {} MiB of it bugpack's]}{}{}{}",
                BP_COUNT(from->rss_kb >> 10), BP_COUNT(to->rss_kb >> 10),
                BP_NUMBER((double)(to->wall_ns - from->wall_ns) / 1e9, 0, " s"),
                BP_COUNT(has_own ? (to->own_kb - from->own_kb) >> 10 : 0), BP_TEXT(greediest.begin),
                greediest.name, BP_TEXT(greediest.text));
    }
}

/* --- address space, threads, children, files ---------------------------------------------- */

static const uint64_t count_grown_min = 64;

/*
 * A server that gets work starts threads and takes connections at once, and ends some again. So
 * there have to be five rises or more, of the few samples within a window four; 64 and a twentieth
 * more in the end than at first; and no fall beyond noise.
 */
static bool find_count(const bp_evidence *evidence, const char *key,
                       uint64_t (*value_of)(const bp_sample *sample), uint64_t grown_min,
                       uint64_t rise_least, growth *it) {
    size_t rises_min = evidence->sample_count > 0 ? 5 : 4;
    *it = (growth){.rise_least = rise_least};
    for (size_t i = 0; value_of != NULL && i < evidence->sample_count; i++) {
        const bp_sample *sample = &evidence->samples[i];
        if (value_of(sample) > 0 && sample->wall_ns >= evidence->samples[0].wall_ns) {
            note(it, (double)(sample->wall_ns - evidence->samples[0].wall_ns) / 1e9,
                 value_of(sample));
        }
    }
    if (it->sample_count == 0 && !note_window(evidence, key, it)) {
        return false;
    }
    return has_steps(it, rises_min) && grown(it) >= grown_min && grown(it) >= it->from / 20 &&
           was_old_enough(evidence, it);
}

/* Where the samples are. */
static const char *entry_of(const bp_evidence *evidence) {
    return evidence->sample_count > 0 ? "metrics-history.jsonl" : "runtime-metrics.json";
}

static uint64_t threads_of(const bp_sample *sample) {
    return sample->thread_count;
}

static uint64_t address_space_of(const bp_sample *sample) {
    return sample->vm_size_kb;
}

static uint64_t resident_of(const bp_sample *sample) {
    return sample->rss_kb;
}

/* Memory that is mapped again and again, not used, and not unmapped. A new thread maps a stack, and
 * an arena of the heap; what is used is resident. */
void bp_diagnose_address_space_growth(bp_evidence *evidence) {
    growth it, resident, threads;
    uint64_t swap_kb =
        bp_json_tree_uint_or(bp_json_tree_object(evidence->process, "memory"), "swap_kb", 0);
    (void)find_count(evidence, "rss_kb", resident_of, 0, step_kb, &resident);
    (void)find_count(evidence, "thread_count", threads_of, 0, 1, &threads);
    if (find_count(evidence, "vm_size_kb", address_space_of, memory_least_kb, step_kb, &it) &&
        (grown(&resident) + swap_kb) * 2 <= grown(&it) && threads.rise_count == 0 &&
        threads.from > 0) {
        bp_find_in(
            evidence, entry_of(evidence),
            "its address space grew by {} MiB in {} ({}), to {} MiB, and its resident part by "
            "{}: it maps memory or files, and unmaps none{[; it has {} mappings]}",
            BP_COUNT(grown(&it) >> 10), BP_NUMBER(span_secs(&it), 1, " s"),
            BP_NUMBER((double)grown(&it) / 1024 / span_secs(&it), 0, " MiB/s"),
            BP_COUNT(it.to >> 10), BP_NUMBER((double)grown(&resident) / 1024, 0, " MiB"),
            BP_COUNT(bp_json_tree_uint_or(evidence->process, "mappings", 0)));
    }
}

void bp_diagnose_thread_growth(bp_evidence *evidence) {
    growth it;
    char name[96] = "";
    if (!find_count(evidence, "thread_count", threads_of, count_grown_min, 1, &it)) {
        return;
    }
    if (evidence->common_name != NULL && evidence->common_count * 2 >= evidence->measured_count) {
        (void)snprintf(name, sizeof name, "; %llu of them are called \"%s\"",
                       (unsigned long long)evidence->common_count, evidence->common_name);
    }
    bp_find_in(evidence, entry_of(evidence),
               "the number of threads grew from {} to {} in {}, and hardly any ended{}",
               BP_COUNT(it.from), BP_COUNT(it.to), BP_NUMBER(span_secs(&it), 1, " s"),
               BP_TEXT(name));
}

/* The history does not count children. Those that end and are not waited for are zombies. */
void bp_diagnose_child_growth(bp_evidence *evidence) {
    growth it;
    uint64_t zombies = bp_json_tree_uint_or(evidence->process, "zombie_children", 0);
    if (find_count(evidence, "child_count", NULL, count_grown_min, 1, &it) &&
        zombies * 16 <= grown(&it)) {
        bp_find(evidence,
                "the number of its children grew from {} to {} in {}, and hardly any ended",
                BP_COUNT(it.from), BP_COUNT(it.to), BP_NUMBER(span_secs(&it), 1, " s"));
    }
}

/* The end of a socket, or the path of a file; "" for what has none. */
static const char *place_of(const bp_json_tree *file) {
    const bp_json_tree *socket = bp_json_tree_object(file, "socket");
    const char *target = bp_json_tree_text_or(file, "target", "");
    return socket != NULL
               ? bp_json_tree_text_or(socket, "remote", bp_json_tree_text_or(socket, "local", ""))
               : (target[0] == '/' ? target : "");
}

/* A text that most rows have, if there is one: the last of a vote in which different ones cancel
 * each other (Boyer and Moore). `kind`: of the rows of that kind alone. */
static const char *find_common(const bp_rows *files, const char *kind,
                               const char *(*text_of)(const bp_json_tree *file),
                               size_t *ret_count) {
    const char *common = "";
    size_t votes = 0;
    for (size_t pass = 0; pass < 2; pass++) {
        *ret_count = 0;
        for (size_t i = 0; i < files->count; i++) {
            const char *text = text_of(files->rows[i]);
            bool is_same = strcmp(text, common) == 0;
            if (kind != NULL &&
                strcmp(bp_json_tree_text_or(files->rows[i], "kind", ""), kind) != 0) {
                continue;
            }
            *ret_count += is_same;
            if (pass == 0 && votes == 0) {
                common = text;
                votes = 1;
            } else if (pass == 0) {
                votes = is_same ? votes + 1 : votes - 1;
            }
        }
    }
    return common;
}

static const char *kind_of(const bp_json_tree *file) {
    return bp_json_tree_text_or(file, "kind", "");
}

void bp_open_files_describe(const bp_evidence *evidence, char out[BP_OPEN_FILES_BYTES]) {
    const bp_rows *files = &evidence->files;
    size_t kind_count, place_count, used = 0;
    const char *kind = find_common(files, NULL, kind_of, &kind_count);
    out[0] = '\0';
    if (kind_count * 2 > files->count && kind[0] != '\0') {
        const char *place = find_common(files, kind, place_of, &place_count);
        char cut[64];
        used = (size_t)snprintf(out, BP_OPEN_FILES_BYTES, "; %zu of %zu are of the kind \"%.24s\"",
                                kind_count, files->count, kind);
        if (place_count * 2 > kind_count && place[0] != '\0') {
            bp_utf8_copy_ends(cut, sizeof cut, place, strlen(place));
            (void)snprintf(out + used, BP_OPEN_FILES_BYTES - used, ", %zu of these of %s",
                           place_count, cut);
        }
    }
}

static uint64_t files_of(const bp_sample *sample) {
    return sample->file_count;
}

/* True if most of them are connections that others began and hold open: those of a server whose
 * load rises. One that forgets to close has them in CLOSE_WAIT. */
static bool is_of_clients(const bp_evidence *evidence) {
    size_t count = 0;
    for (size_t i = 0; i < evidence->files.count; i++) {
        const bp_json_tree *socket = bp_json_tree_object(evidence->files.rows[i], "socket");
        count += strcmp(bp_json_tree_text_or(socket, "state", ""), "established") == 0 &&
                 bp_json_tree_is_true(socket, "accepted");
    }
    return count * 2 > evidence->files.count;
}

/* Within a window alone, clients that arrive are no leak. */
void bp_diagnose_file_growth(bp_evidence *evidence) {
    growth it;
    char kinds[BP_OPEN_FILES_BYTES];
    bool is_leak = evidence->sample_count > 0 || !is_of_clients(evidence);
    if (is_leak && find_count(evidence, "file_count", files_of, count_grown_min, 1, &it)) {
        bp_open_files_describe(evidence, kinds);
        bp_find_in(evidence, entry_of(evidence),
                   "the number of open files grew from {} to {} in {}, and hardly any were "
                   "closed{}",
                   BP_COUNT(it.from), BP_COUNT(it.to), BP_NUMBER(span_secs(&it), 1, " s"),
                   BP_TEXT(kinds));
    }
}
