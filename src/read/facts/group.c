#include "facts/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { row_max = 12 };

static const double idle_percent = 1; /* less is a tick now and then */

/* --- objects of the document, sorted --------------------------------------------------------- */

typedef struct group_item {
    const bp_json_tree *object, *process;
    uint64_t rank;
    double weight; /* -1: not known */
    size_t place;
} group_item;

typedef struct group_list {
    group_item *items;
    size_t count, capacity;
    bool lacks_memory;
} group_list;

static void add_item(group_list *list, const bp_json_tree *object, const bp_json_tree *process,
                     const char *weight) {
    group_item item = {.object = object,
                       .process = process,
                       .rank = bp_json_tree_uint_or(object, "_rank", 0),
                       .weight = -1,
                       .place = list->count};
    (void)bp_json_tree_number(object, weight, &item.weight);
    if (!bp_array_reserve(&list->items, list->count, &list->capacity)) {
        list->lacks_memory = true;
        return;
    }
    list->items[list->count++] = item;
}

/* By rank, and then the largest first. */
static int compare_items(const void *one, const void *other) {
    const group_item *left = one, *right = other;
    if (left->rank != right->rank) {
        return left->rank < right->rank ? -1 : 1;
    }
    return left->weight != right->weight
               ? (left->weight < right->weight) - (left->weight > right->weight)
               : (left->place > right->place) - (left->place < right->place);
}

static void sort_items(group_list *list) {
    if (list->count > 1) {
        qsort(list->items, list->count, sizeof *list->items, compare_items);
    }
}

static void end_list(bp_json_maker *maker, group_list *list) {
    maker->lacks_memory |= list->lacks_memory;
    free(list->items);
}

/* --- processes ------------------------------------------------------------------------------- */

const bp_json_tree *bp_group_next_of_all(const bp_json_tree *document,
                                         const bp_json_tree *process) {
    const bp_json_tree *first = bp_json_tree_object(document, "_first_process");
    if (process == NULL) {
        return first;
    }
    return process == first ? bp_json_tree_rows(document, "further_processes")
                            : bp_json_tree_next(process);
}

const bp_json_tree *bp_group_next(const bp_json_tree *document, const bp_json_tree *process) {
    do {
        process = bp_group_next_of_all(document, process);
    } while (process != NULL && !bp_json_tree_is_true(process, "_is_interesting"));
    return process;
}

static const char *title_of(const bp_json_tree *process) {
    return bp_json_tree_text_or(process, "title", bp_json_tree_text_or(process, "name", ""));
}

/* False for the first one of a report whose own entries name no process. */
static bool is_known(const bp_json_tree *process) {
    return bp_json_tree_member(process, "pid") != NULL || title_of(process)[0] != '\0' ||
           bp_json_tree_member(process, "cpu_percent") != NULL ||
           bp_json_tree_member(process, "folder") != NULL;
}

#define EACH_PROCESS(process, document)                                                            \
    for (const bp_json_tree *process = NULL;                                                       \
         (process = bp_group_next_of_all(document, process)) != NULL;)

/* Idle processes with the same title, or one that is busy. */
typedef struct process_row {
    const bp_json_tree *first;
    uint64_t count, rss_kb;
    bool has_rss;
    double percent;
} process_row;

static process_row *find_row(process_row *rows, size_t count, const group_item *item) {
    for (size_t i = 0; i < count && item->weight < idle_percent; i++) {
        bool is_alike = rows[i].percent < idle_percent &&
                        (rows[i].percent < 0) == (item->weight < 0) &&
                        strcmp(title_of(rows[i].first), title_of(item->object)) == 0;
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
    bp_json_make_uint(maker, "_count", row->count > 1, row->count);
    bp_json_make_number(maker, "cpu_percent", row->percent >= 0, row->percent, 2);
    bp_json_make_uint(maker, "rss_kb", row->has_rss, row->rss_kb);
    bp_json_make_end(maker);
}

static void make_processes(bp_json_maker *maker) {
    process_row rows[row_max];
    size_t count = 0;
    uint64_t other_count = bp_json_tree_uint_or(maker->root, "_unread_processes", 0), kb;
    group_list list = {.count = 0};
    EACH_PROCESS(process, maker->root) {
        if (is_known(process)) {
            add_item(&list, process, process, "cpu_percent");
        }
    }
    sort_items(&list);
    for (size_t i = 0; i < list.count; i++) {
        const group_item *item = &list.items[i];
        process_row *row = find_row(rows, count, item);
        if (row == NULL && count == row_max) {
            other_count++;
            continue;
        }
        if (row == NULL) {
            row = &rows[count++];
            *row = (process_row){.first = item->object, .percent = item->weight};
        } else if (item->weight > 0) {
            row->percent += item->weight;
        }
        row->count++;
        if (bp_json_tree_uint(item->object, "rss_kb", &kb)) {
            row->has_rss = true;
            row->rss_kb += kb;
        }
    }
    bp_json_make_array(maker, "_processes");
    for (size_t i = 0; i < count; i++) {
        make_row(maker, &rows[i]);
    }
    bp_json_make_end(maker);
    bp_json_make_uint(maker, "_other_processes", other_count > 0, other_count);
    end_list(maker, &list);
}

/* A figure that is not known of each process is a lower bound. */
static void make_sums(bp_json_maker *maker) {
    uint64_t process_count = 0, thread_count = 0, rss_kb = 0, value;
    size_t percent_count = 0, rss_count = 0;
    double percent = 0, share;
    EACH_PROCESS(process, maker->root) {
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
    uint64_t unread_count = bp_json_tree_uint_or(maker->root, "_unread_processes", 0);
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

/* --- threads, and where the CPU time went ------------------------------------------------------
 */

static void make_threads(bp_json_maker *maker) {
    uint64_t other_count = 0;
    group_list list = {.count = 0};
    EACH_PROCESS(process, maker->root) {
        other_count += bp_json_tree_uint_or(process, "_other_threads", 0);
        BP_JSON_EACH (row, bp_json_tree_rows(process, "_threads")) {
            add_item(&list, row, process, "cpu_percent");
        }
    }
    sort_items(&list);
    bp_json_make_array(maker, "_threads");
    for (size_t i = 0; i < list.count; i++) {
        if (i < row_max) {
            bp_json_make_again(maker, list.items[i].object);
        } else {
            other_count += bp_json_tree_uint_or(list.items[i].object, "_count", 1);
        }
    }
    bp_json_make_end(maker);
    bp_json_make_uint(maker, "_other_threads", other_count > 0, other_count);
    end_list(maker, &list);
    const bp_json_tree *idle = NULL;
    bp_json_make_array(maker, "_idle_threads");
    while ((idle = bp_group_next(maker->root, idle)) != NULL) {
        const char *text = bp_json_tree_text(idle, "_idle");
        if (text != NULL) {
            bp_json_make_object(maker, NULL);
            bp_json_make_text(maker, "text", text);
            bp_json_make_end(maker);
        }
    }
    bp_json_make_end(maker);
    const bp_json_tree *first = bp_json_tree_object(maker->root, "_first_process");
    uint64_t own_count = bp_json_tree_uint_or(first, "_own_count", 0);
    bp_json_make_array(maker, "_own_threads");
    BP_JSON_EACH (row, bp_json_tree_rows(first, "_own_threads")) {
        bp_json_make_again(maker, row);
    }
    bp_json_make_end(maker);
    bp_json_make_uint(maker, "_own_count", own_count > 0, own_count);
}

static void make_profile_thread(bp_json_maker *maker, const group_item *item, double samples) {
    double share = 0;
    bool has_share = bp_json_tree_number(item->object, "share", &share);
    bool is_of_group = bp_json_tree_rows(maker->root, "further_processes") != NULL;
    uint64_t pid = bp_json_tree_uint_or(item->process, "pid", 0);
    bp_json_make_object(maker, NULL);
    bp_json_make_text(maker, "name", bp_json_tree_text(item->object, "name"));
    bp_json_make_uint(maker, "_pid", is_of_group && pid != 0, pid);
    bp_json_make_number(maker, "_percent", true, 100 * item->weight / samples, 1);
    bp_json_make_number(maker, "share", has_share, share, 4);
    bp_json_make_text(maker, "_path", bp_json_tree_text(item->object, "_path"));
    bp_json_make_end(maker);
}

static void make_profile(bp_json_maker *maker) {
    const bp_json_tree *own = bp_json_tree_object(maker->root, "profile");
    group_list list = {.count = 0};
    uint64_t samples = 0, other_count = 0, lost = 0;
    double window_ms = 0;
    EACH_PROCESS(process, maker->root) {
        bool is_first = process == bp_json_tree_object(maker->root, "_first_process");
        const bp_json_tree *profile = is_first ? own : bp_json_tree_object(process, "profile");
        samples += bp_json_tree_uint_or(profile, "samples", 0);
        other_count += bp_json_tree_uint_or(profile, "_other_threads", 0);
        BP_JSON_EACH (row, bp_json_tree_rows(profile, "threads")) {
            add_item(&list, row, process, "samples");
        }
    }
    sort_items(&list);
    bool has_lost = bp_json_tree_uint(own, "lost", &lost);
    bool has_window = bp_json_tree_number(own, "window_ms", &window_ms);
    if (samples > 0) {
        bp_json_make_object(maker, "_profile");
        bp_json_make_uint(maker, "samples", true, samples);
        bp_json_make_uint(maker, "lost", has_lost, lost);
        bp_json_make_number(maker, "window_ms", has_window, window_ms, 3);
        bp_json_make_flag(maker, "_without_kernel", bp_json_tree_is_true(own, "_without_kernel"));
        bp_json_make_array(maker, "threads");
        for (size_t i = 0; i < list.count && i < row_max; i++) {
            make_profile_thread(maker, &list.items[i], (double)samples);
        }
        bp_json_make_end(maker);
        other_count += list.count > row_max ? list.count - row_max : 0;
        bp_json_make_uint(maker, "_other_threads", other_count > 0, other_count);
        bp_json_make_end(maker);
    }
    end_list(maker, &list);
}

void bp_make_group(bp_json_maker *maker) {
    if (bp_json_tree_rows(maker->root, "further_processes") != NULL) {
        make_sums(maker);
        make_processes(maker);
    }
    make_threads(maker);
    make_profile(maker);
}
