#include "facts/group.h"

#include <string.h>

#include "facts/screen_facts.h"

static const double idle_percent = 1; /* less is a tick now and then */

static double number_or_less(const bp_json_tree *object, const char *key) {
    double value = -1;
    (void)bp_json_tree_number(object, key, &value);
    return value;
}

/* --- processes ------------------------------------------------------------------------------- */

static const char *title_of(const bp_json_tree *process) {
    return bp_json_tree_text_or(process, "title", bp_json_tree_text_or(process, "name", ""));
}

/* False for the first one of a report whose own entries name no process. */
static bool is_known(const bp_json_tree *process) {
    return bp_json_tree_member(process, "pid") != NULL || title_of(process)[0] != '\0' ||
           bp_json_tree_member(process, "cpu_percent") != NULL ||
           bp_json_tree_member(process, "folder") != NULL;
}

/* The busiest first; those of which that is not known are the last. */
static bool is_busier(const bp_json_tree *one, const bp_json_tree *other) {
    return number_or_less(one, "cpu_percent") > number_or_less(other, "cpu_percent");
}

static void make_again(bp_json_maker *maker, const char *list, const bp_json_tree *process) {
    bp_json_make_array(maker, list);
    bp_json_make_again(maker, process);
    bp_json_make_end(maker);
}

void bp_make_group_member(bp_json_maker *maker, const bp_json_tree *process, bool is_interesting) {
    make_again(maker, "all_processes", process);
    if (is_interesting) {
        make_again(maker, "processes_of_interest", process);
    }
    if (is_known(process)) {
        bp_json_make_array(maker, "processes_by_cpu");
        bp_json_make_again(maker, process);
        (void)bp_json_make_settled(maker, SIZE_MAX, is_busier);
        bp_json_make_end(maker);
    }
}

/* Idle processes with the same title, or one that is busy. */
typedef struct process_row {
    const bp_json_tree *first;
    uint64_t count, rss_kb;
    bool has_rss;
    double percent;
} process_row;

static process_row *find_row(process_row *rows, size_t count, const bp_json_tree *process,
                             double percent) {
    for (size_t i = 0; i < count && percent < idle_percent; i++) {
        bool is_alike = rows[i].percent < idle_percent && (rows[i].percent < 0) == (percent < 0) &&
                        strcmp(title_of(rows[i].first), title_of(process)) == 0;
        if (is_alike) {
            return &rows[i];
        }
    }
    return NULL;
}

static void make_row(bp_json_maker *maker, const process_row *row) {
    static const char *const keys[] = {"name", "title", "folder"};
    uint64_t pid = bp_json_tree_uint_or(row->first, "pid", 0);
    bp_json_make_object(maker, NULL);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bp_json_make_text(maker, keys[i], bp_json_tree_text(row->first, keys[i]));
    }
    bp_json_make_uint(maker, "pid", pid != 0, pid);
    bp_json_make_uint(maker, "count", row->count > 1, row->count);
    bp_json_make_number(maker, "cpu_percent", row->percent >= 0, row->percent, 2);
    bp_json_make_uint(maker, "rss_kb", row->has_rss, row->rss_kb);
    bp_json_make_end(maker);
}

static void make_processes(bp_json_maker *maker, uint64_t other_count) {
    process_row rows[BP_SCREEN_ROW_MAX];
    size_t count = 0;
    uint64_t kb;
    BP_JSON_EACH (process, bp_json_tree_rows(maker->root, "processes_by_cpu")) {
        double percent = number_or_less(process, "cpu_percent");
        process_row *row = find_row(rows, count, process, percent);
        if (row == NULL && count == BP_SCREEN_ROW_MAX) {
            other_count++;
            continue;
        }
        if (row == NULL) {
            row = &rows[count++];
            *row = (process_row){.first = process, .percent = percent};
        } else if (percent > 0) {
            row->percent += percent;
        }
        row->count++;
        if (bp_json_tree_uint(process, "rss_kb", &kb)) {
            row->has_rss = true;
            row->rss_kb += kb;
        }
    }
    bp_json_make_array(maker, "processes");
    for (size_t i = 0; i < count; i++) {
        make_row(maker, &rows[i]);
    }
    bp_json_make_end(maker);
    bp_json_make_uint(maker, "other_processes", other_count > 0, other_count);
}

/* A figure that is not known of each process is a lower bound. */
static void make_sums(bp_json_maker *maker, uint64_t unread_count) {
    uint64_t process_count = 0, thread_count = 0, rss_kb = 0, value;
    size_t percent_count = 0, rss_count = 0;
    double percent = 0, share;
    BP_JSON_EACH (process, bp_json_tree_rows(maker->root, "all_processes")) {
        process_count += is_known(process);
        thread_count += bp_json_tree_uint_or(process, "thread_count", 0);
        if (bp_json_tree_number(process, "cpu_percent", &share)) {
            percent += share;
            percent_count++;
        }
        if (bp_json_tree_uint(process, "rss_kb", &value)) {
            rss_kb += value;
            rss_count++;
        }
    }
    bool is_whole =
        unread_count == 0 && percent_count == process_count && rss_count == process_count;
    bp_json_make_object(maker, "group");
    bp_json_make_uint(maker, "processes", true, process_count + unread_count);
    bp_json_make_uint(maker, "threads", percent_count > 0, thread_count);
    bp_json_make_number(maker, "cpu_percent", percent_count > 0, percent, 2);
    bp_json_make_uint(maker, "rss_kb", rss_count > 0, rss_kb);
    bp_json_make_flag(maker, "at_least", !is_whole);
    bp_json_make_end(maker);
}

/* --- where the CPU time went ----------------------------------------------------------------- */

static bool has_more_samples(const bp_json_tree *one, const bp_json_tree *other) {
    return number_or_less(one, "samples") > number_or_less(other, "samples");
}

uint64_t bp_make_group_stack(bp_json_maker *maker, const char *name, uint64_t pid, uint64_t samples,
                             double share, const char *path) {
    bp_json_make_array(maker, "group_stacks");
    bp_json_make_object(maker, NULL);
    bp_json_make_text(maker, "name", name);
    bp_json_make_uint(maker, "pid", pid != 0, pid);
    bp_json_make_uint(maker, "samples", true, samples);
    bp_json_make_number(maker, "share", path[0] != '\0', share, 4);
    bp_json_make_known_text(maker, "path", path);
    bp_json_make_end(maker);
    uint64_t other_count = bp_json_make_settled(maker, BP_SCREEN_ROW_MAX, has_more_samples);
    bp_json_make_end(maker);
    return other_count;
}

static void make_profile(bp_json_maker *maker, const bp_group_counts *counts) {
    bp_json_make_uint(maker, "profile_samples", true, counts->samples);
    bp_json_make_array(maker, "profile_threads");
    BP_JSON_EACH (row, bp_json_tree_rows(maker->root, "group_stacks")) {
        double samples = number_or_less(row, "samples"), share = number_or_less(row, "share");
        uint64_t pid = bp_json_tree_uint_or(row, "pid", 0);
        bp_json_make_object(maker, NULL);
        bp_json_make_text(maker, "name", bp_json_tree_text(row, "name"));
        bp_json_make_uint(maker, "pid", pid != 0, pid);
        bp_json_make_number(maker, "percent", true, 100 * samples / (double)counts->samples, 1);
        bp_json_make_number(maker, "share", share >= 0, share, 4);
        bp_json_make_text(maker, "path", bp_json_tree_text(row, "path"));
        bp_json_make_end(maker);
    }
    bp_json_make_end(maker);
    bp_json_make_uint(maker, "other_profile_threads", counts->other_stacks > 0,
                      counts->other_stacks);
}

void bp_make_group(bp_json_maker *maker, const bp_group_counts *counts) {
    if (bp_json_tree_rows(maker->root, "further_processes") != NULL) {
        make_sums(maker, counts->unread_processes);
        make_processes(maker, counts->unread_processes);
    }
    bp_json_make_uint(maker, "other_threads", counts->other_threads > 0, counts->other_threads);
    make_profile(maker, counts);
}
