#include "facts/screen_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "entries/frames.h"

/* --- threads ------------------------------------------------------------------------------ */

/* In the order in which they are shown. */
typedef enum thread_rank { RANK_BUSY, RANK_OF_INTEREST, RANK_OTHER } thread_rank;

static const double busy_min_percent = 1; /* less is a tick now and then */

static thread_rank rank_of(const bp_thread *thread) {
    bool is_held_up =
        thread->waits_for_tid != 0 || thread->is_waited_for ||
        bp_json_tree_member(bp_json_tree_object(thread->row, "waits_for"), "holder") != NULL;
    if (thread->cpu_percent >= busy_min_percent) {
        return RANK_BUSY;
    }
    return is_held_up || strcmp(thread->state, "uninterruptible sleep") == 0 ? RANK_OF_INTEREST
                                                                             : RANK_OTHER;
}

bool bp_thread_is_interesting(const bp_thread *thread) {
    return !thread->is_own && rank_of(thread) != RANK_OTHER;
}

/* The command line of a process with blanks between the arguments, and without the directory of the
 * first; "" where it is not known. */
enum { title_bytes = 240 };
static void print_title(const bp_json_tree *process, char out[title_bytes]) {
    const bp_json_tree *argument = bp_json_tree_rows(process, "command_line");
    char title[256] = "";
    size_t used = 0, argument_count = 0;
    for (; argument != NULL && used < sizeof title - 1; argument = bp_json_tree_next(argument)) {
        const char *text = bp_json_tree_value(argument);
        const char *slash = argument_count == 0 && text[0] == '/' && strchr(text, ' ') == NULL
                                ? strrchr(text, '/')
                                : NULL;
        text = slash != NULL ? slash + 1 : text;
        int length =
            snprintf(title + used, sizeof title - used, argument_count++ > 0 ? " %s" : "%s", text);
        used += length > 0 ? (size_t)length : 0;
    }
    bp_utf8_copy(out, title_bytes, title);
}

/* In a report about several processes: the one of a thread, "python3 worker.py 1503". */
static void make_process_of(bp_json_maker *maker, const bp_evidence *evidence,
                            const bp_thread *thread) {
    uint64_t pid = bp_json_tree_uint_or(evidence->process, "pid", 0);
    char title[title_bytes], cut[40], id[24] = "", text[80];
    print_title(evidence->process, title);
    if (title[0] == '\0') {
        bp_utf8_copy(title, sizeof title, bp_json_tree_text(evidence->process, "name"));
    }
    bp_utf8_copy(cut, sizeof cut, title);
    if (pid != 0 && pid != thread->tid) {
        (void)snprintf(id, sizeof id, " %" PRIu64, pid);
    }
    (void)snprintf(text, sizeof text, "%s%s%s", cut, strlen(cut) < strlen(title) ? "\u2026" : "",
                   id);
    bp_json_make_known_text(maker, "process", evidence->is_of_group ? text : "");
}

void bp_make_thread(bp_json_maker *maker, const bp_thread *thread, const char *frames) {
    char wait[128];
    bp_thread_print_wait(thread, wait, sizeof wait);
    bp_json_make_uint(maker, "tid", true, thread->tid);
    bp_json_make_text(maker, "name", thread->name);
    bp_json_make_number(maker, "cpu_percent", true, thread->cpu_percent, 2);
    bp_json_make_number(maker, "cpu_ms", thread->cpu_ms >= 0, thread->cpu_ms, 3);
    bp_json_make_flag(maker, "born_in_window", thread->is_born);
    bp_json_make_known_text(maker, "state", thread->state);
    bp_json_make_known_text(maker, "syscall", thread->syscall);
    bp_json_make_known_text(maker, "waits_for", wait);
    bp_json_make_known_text(maker, "frames", frames);
}

/* Threads that do the same. */
typedef struct thread_group {
    const bp_thread *first;
    uint64_t hash, count;
} thread_group;

typedef struct thread_groups {
    thread_group rows[BP_EVIDENCE_BUSIEST_MAX];
    size_t count;
    uint64_t thread_count, other_count; /* all, and those that found no room */
} thread_groups;

static int compare_threads(const void *one, const void *other) {
    const bp_thread *left = *(const bp_thread *const *)one,
                    *right = *(const bp_thread *const *)other;
    thread_rank rank = rank_of(left), other_rank = rank_of(right);
    if (rank != other_rank) {
        return rank < other_rank ? -1 : 1;
    }
    return left->cpu_percent != right->cpu_percent
               ? (left->cpu_percent < right->cpu_percent) - (left->cpu_percent > right->cpu_percent)
               : (left->place > right->place) - (left->place < right->place);
}

static uint64_t add_to_hash(uint64_t hash, const char *text) {
    return XXH3_64bits_withSeed(text, strlen(text) + 1, hash);
}

/* Hashes what is shown of a thread, so that only the first of those that do the same is printed. */
static uint64_t hash_thread(const bp_thread *thread, uint64_t seed) {
    char percent[24] = "", wait[128];
    bp_thread_print_wait(thread, wait, sizeof wait);
    if (thread->cpu_percent >= busy_min_percent) {
        (void)snprintf(percent, sizeof percent, "%.1f", thread->cpu_percent);
    }
    uint64_t hash = add_to_hash(seed, percent);
    hash = add_to_hash(hash, thread->name);
    hash = add_to_hash(hash, thread->is_born ? "born" : "");
    hash = add_to_hash(hash, thread->state);
    hash = add_to_hash(hash, wait);
    hash = add_to_hash(hash, thread->syscall);
    BP_JSON_EACH (frame, bp_json_tree_rows(thread->stack, "frames")) {
        hash = add_to_hash(hash, bp_json_tree_text_or(frame, "address", ""));
        hash = add_to_hash(hash, bp_json_tree_text_or(frame, "symbol", ""));
    }
    BP_JSON_EACH (frame, bp_json_tree_rows(thread->stack, "python_frames")) {
        char line[24];
        (void)snprintf(line, sizeof line, "%" PRIu64, bp_json_tree_uint_or(frame, "line", 0));
        hash = add_to_hash(hash, bp_json_tree_text_or(frame, "function", ""));
        hash = add_to_hash(hash, line);
    }
    return hash;
}

static void add_to_groups(thread_groups *groups, const bp_thread *thread, uint64_t hash) {
    size_t i = 0;
    while (i < groups->count && groups->rows[i].hash != hash) {
        i++;
    }
    groups->thread_count++;
    if (i < groups->count) {
        groups->rows[i].count++;
    } else if (i < BP_EVIDENCE_BUSIEST_MAX) {
        groups->rows[groups->count++] = (thread_group){thread, hash, 1};
    } else {
        groups->other_count++;
    }
}

static void make_group(bp_json_maker *maker, const thread_group *group,
                       const bp_evidence *evidence) {
    const bp_thread *thread = group->first;
    char frames[BP_FRAME_LIST_BYTES] = "", label[96];
    if (thread->stack != NULL) {
        bp_frames_print(thread->stack, evidence->finder, thread->syscall, frames);
    }
    (void)snprintf(label, sizeof label, "%s", thread->name);
    if (group->count > 1) {
        (void)snprintf(label, sizeof label, "%" PRIu64 " x %s", group->count, thread->name);
    }
    bp_json_make_object(maker, NULL);
    bp_make_thread(maker, thread, frames);
    bp_json_make_known_text(maker, "place", frames[0] != '\0' ? frames : thread->syscall);
    bp_json_make_flag(maker, "waits_for_thread", thread->waits_for_tid != 0);
    bp_json_make_text(maker, "label", label);
    bp_json_make_uint(maker, "rank", true, rank_of(thread));
    bp_json_make_uint(maker, "count", true, group->count);
    make_process_of(maker, evidence, thread);
    bp_json_make_end(maker);
}

/* By rank, and then the busiest first. */
static bool is_row_before(const bp_json_tree *one, const bp_json_tree *other) {
    uint64_t rank = bp_json_tree_uint_or(one, "rank", 0);
    uint64_t other_rank = bp_json_tree_uint_or(other, "rank", 0);
    double percent = -1, other_percent = -1;
    (void)bp_json_tree_number(one, "cpu_percent", &percent);
    (void)bp_json_tree_number(other, "cpu_percent", &other_percent);
    return rank != other_rank ? rank < other_rank : percent > other_percent;
}

static uint64_t make_groups(bp_json_maker *maker, const char *key, const thread_groups *groups,
                            const bp_evidence *evidence) {
    uint64_t other_count = groups->other_count;
    bp_json_make_array(maker, key);
    for (size_t i = 0; i < groups->count; i++) {
        make_group(maker, &groups->rows[i], evidence);
        other_count += bp_json_make_settled(maker, BP_SCREEN_ROW_MAX, is_row_before);
    }
    bp_json_make_end(maker);
    return other_count;
}

/* True for a thread that went with its process and of which no rate is known. */
static bool says_nothing(const bp_evidence *evidence, const bp_thread *thread) {
    bool has_rate = evidence->window_ms >= BP_EVIDENCE_RATE_WINDOW_MS &&
                    thread->cpu_percent >= busy_min_percent;
    return bp_thread_has_ended(thread) && !has_rate &&
           bp_json_tree_object(evidence->metadata, "exit") != NULL;
}

/* Idle threads of a runtime, by name, without the number at its end. */
typedef struct idle_threads {
    struct {
        char name[64];
        uint64_t count;
    } rows[BP_EVIDENCE_BUSIEST_MAX];
    size_t count;
    uint64_t thread_count;
} idle_threads;

static bool is_idle(const bp_evidence *evidence, const bp_thread *thread) {
    uint64_t pid = bp_json_tree_uint_or(evidence->process, "pid", 0);
    return pid != 0 && thread->tid != pid && rank_of(thread) == RANK_OTHER &&
           strcmp(thread->state, "sleeping") == 0 && bp_frames_are_of_runtime(thread->stack);
}

static void add_idle(idle_threads *idle, const bp_thread *thread) {
    char name[sizeof idle->rows[0].name];
    size_t i = 0, length;
    bp_utf8_copy(name, sizeof name, thread->name);
    for (length = strlen(name); length > 0 && strchr("#-0123456789", name[length - 1]) != NULL;) {
        name[--length] = '\0';
    }
    while (i < idle->count && strcmp(idle->rows[i].name, name) != 0) {
        i++;
    }
    if (i < BP_EVIDENCE_BUSIEST_MAX) {
        memcpy(idle->rows[i].name, name, sizeof name);
        idle->rows[i].count++;
        idle->count += i == idle->count;
    }
    idle->thread_count++;
}

/* "12 idle threads of the runtime: V8 Worker ×4, …" */
static void make_idle(bp_json_maker *maker, const idle_threads *idle) {
    char text[400];
    size_t used = (size_t)snprintf(text, sizeof text, "%" PRIu64 " idle thread%s of the runtime",
                                   idle->thread_count, idle->thread_count == 1 ? "" : "s");
    for (size_t i = 0; i < idle->count && used < sizeof text - 2 * sizeof idle->rows[0].name; i++) {
        char count[24] = "";
        if (idle->rows[i].count > 1) {
            (void)snprintf(count, sizeof count, " \u00d7%" PRIu64, idle->rows[i].count);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s", i == 0 ? ": " : ", ",
                                 idle->rows[i].name, count);
    }
    bp_json_make_array(maker, "idle_threads");
    bp_json_make_object(maker, NULL);
    bp_json_make_text(maker, "text", text);
    bp_json_make_end(maker);
    bp_json_make_end(maker);
}

uint64_t bp_make_threads(bp_json_maker *maker, const bp_evidence *evidence, bool is_interesting) {
    thread_groups groups = {.count = 0}, own = {.count = 0};
    idle_threads idle = {.count = 0};
    const bp_thread **threads = calloc(evidence->thread_count + 1, sizeof *threads);
    uint64_t seed = bp_clock_monotonic_ns() ^ (uint64_t)(uintptr_t)threads << 20;
    size_t count = 0;
    double own_percent = 0;
    if (threads == NULL) {
        maker->lacks_memory = true;
        return 0;
    }
    /* Without the busiest the document was not read to its end. */
    for (size_t i = 0; i < evidence->thread_count && evidence->busiest_count > 0; i++) {
        if (evidence->threads[i].cpu_percent >= 0 &&
            !says_nothing(evidence, &evidence->threads[i])) {
            threads[count++] = &evidence->threads[i];
        }
    }
    qsort(threads, count, sizeof *threads, compare_threads);
    for (size_t i = 0; i < count; i++) {
        bool is_row = evidence->folder[0] == '\0' || rank_of(threads[i]) != RANK_OTHER;
        own_percent +=
            threads[i]->is_own && threads[i]->cpu_percent > 0 ? threads[i]->cpu_percent : 0;
        if (!threads[i]->is_own && is_idle(evidence, threads[i])) {
            add_idle(&idle, threads[i]);
        } else if (is_row || threads[i]->is_own) {
            add_to_groups(threads[i]->is_own ? &own : &groups, threads[i],
                          hash_thread(threads[i], seed));
        } else {
            groups.other_count++;
        }
    }
    free(threads);
    if (idle.thread_count > 0 && is_interesting) {
        make_idle(maker, &idle);
    }
    if (evidence->folder[0] == '\0') {
        (void)make_groups(maker, "own_threads", &own, evidence);
        bp_json_make_uint(maker, "own_count", own.thread_count > 0, own.thread_count);
        bp_json_make_number(maker, "own_cpu_percent", own_percent >= busy_min_percent, own_percent,
                            2);
    }
    return make_groups(maker, "threads", &groups, evidence);
}

/* --- a crash, and the end of the output ----------------------------------------------------- */

static void make_crash(bp_json_maker *maker, const bp_evidence *evidence) {
    const bp_json_tree *thread = bp_json_tree_object(evidence->crash, "thread");
    const bp_json_tree *stack = bp_json_tree_object(evidence->crash, "backtrace");
    uint64_t tid = 0;
    if (bp_json_tree_rows(stack, "frames") == NULL) {
        return;
    }
    bool has_tid = bp_json_tree_uint(thread, "tid", &tid);
    const char *name = bp_json_tree_text_or(thread, "name", "");
    bp_json_make_object(maker, "crash");
    bp_json_make_uint(maker, "tid", has_tid, tid);
    bp_json_make_text(maker, "name", name[0] != '\0' ? name : NULL); /* a core has none */
    bp_make_frames(maker, stack, evidence->finder);
    bp_json_make_text(maker, "reason", bp_json_tree_text(stack, "reason"));
    bp_json_make_end(maker);
}

static void make_output(bp_json_maker *maker, const bp_evidence *evidence) {
    enum { shown_max = 8 };
    uint64_t count = evidence->output_count;
    bp_json_make_array(maker, "output");
    for (uint64_t i = count > shown_max ? count - shown_max : 0; i < count; i++) {
        bp_json_make_object(maker, NULL);
        bp_json_make_text(maker, "text", evidence->output[i % BP_EVIDENCE_LINE_MAX]);
        bp_json_make_end(maker);
    }
    bp_json_make_end(maker);
}

void bp_make_end_of_process(bp_json_maker *maker, const bp_evidence *evidence) {
    make_crash(maker, evidence);
    make_output(maker, evidence);
}

void bp_make_title(bp_json_maker *maker, const bp_json_tree *process) {
    char title[title_bytes];
    print_title(process, title);
    bool says_more = strcmp(title, bp_json_tree_text_or(process, "name", "")) != 0;
    bp_json_make_known_text(maker, "title", says_more ? title : "");
}
