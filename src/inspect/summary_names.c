#include "inspect/summary_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"

/* While the document is there, a name is a text of it. */
typedef struct named {
    const char *name;
    uint64_t count;
    double cpu_percent;
} named;

static int compare_names(const void *one, const void *other) {
    return strcmp(((const named *)one)->name, ((const named *)other)->name);
}

/* Busiest first; then by name, so that equal reports have equal lines. */
static int compare_cpu(const void *one, const void *other) {
    double first = ((const named *)one)->cpu_percent, second = ((const named *)other)->cpu_percent;
    return first != second ? (first < second) - (first > second) : compare_names(one, other);
}

/* Adds up neighbours of one name; the number of names. */
static size_t fold(named *rows, size_t count) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (used > 0 && compare_names(&rows[used - 1], &rows[i]) == 0) {
            rows[used - 1].count++;
            rows[used - 1].cpu_percent += rows[i].cpu_percent;
        } else {
            rows[used++] = rows[i];
        }
    }
    return used;
}

bugpack_status bp_summary_add_names(bp_summary *summary, const bp_json_tree *threads) {
    size_t count = 0;
    if (summary->thread_count == 0 || summary->names != NULL) {
        return BUGPACK_OK;
    }
    named *rows = calloc(summary->thread_count, sizeof *rows);
    if (rows == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    for (const bp_json_tree *row = bp_json_tree_first(threads); row != NULL;
         row = bp_json_tree_next(row)) {
        named *next = &rows[count];
        next->name = bp_json_tree_text(row, "name");
        next->count = 1;
        count += next->name != NULL && bp_json_tree_number(row, "cpu_percent", &next->cpu_percent);
    }
    qsort(rows, count, sizeof *rows, compare_names);
    count = fold(rows, count);
    qsort(rows, count, sizeof *rows, compare_cpu);
    summary->names = calloc(count > 0 ? count : 1, sizeof *summary->names);
    for (size_t i = 0; summary->names != NULL && i < count; i++) {
        bp_summary_name *name = &summary->names[i];
        bp_utf8_copy(name->name, sizeof name->name, rows[i].name);
        name->count = rows[i].count;
        name->cpu_percent = rows[i].cpu_percent;
    }
    free(rows);
    if (summary->names == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    summary->name_count = count;
    return BUGPACK_OK;
}

static const char *find_name(const bp_json_tree *threads, uint64_t wanted) {
    uint64_t tid;
    for (const bp_json_tree *row = bp_json_tree_first(threads); row != NULL;
         row = bp_json_tree_next(row)) {
        if (bp_json_tree_uint(row, "tid", &tid) && tid == wanted) {
            return bp_json_tree_text(row, "name");
        }
    }
    return NULL;
}

static int compare_texts(const void *one, const void *other) {
    return strcmp(one, other);
}

bool bp_summary_looked_for_deadlocks(const bp_json_tree *threads) {
    bool has_running = false, has_other = false;
    for (const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(threads, "threads"));
         row != NULL; row = bp_json_tree_next(row)) {
        const char *state = bp_json_tree_text_or(row, "state", "");
        bool is_running = strcmp(state, "running") == 0;
        if (bp_json_tree_object(row, "syscall") != NULL) {
            return true;
        }
        has_running |= is_running;
        has_other |= !is_running && strcmp(state, "zombie") != 0 && strcmp(state, "dead") != 0;
    }
    return has_running && !has_other;
}

/* A circle begins anywhere: sorted, the same one has the same names in every report. */
static void sort_deadlocked(bp_summary *summary) {
    qsort(summary->deadlocked, summary->deadlocked_count, sizeof summary->deadlocked[0],
          compare_texts);
}

void bp_summary_add_deadlocked(bp_summary *summary, const bp_json_tree *deadlock,
                               const bp_json_tree *threads) {
    uint64_t tid;
    for (const bp_json_tree *item = bp_json_tree_first(bp_json_tree_array(deadlock, "tids"));
         item != NULL && summary->deadlocked_tried < BP_SUMMARY_DEADLOCKED_MAX;
         item = bp_json_tree_next(item), summary->deadlocked_tried++) {
        const char *name = bp_json_tree_value_uint(item, &tid) ? find_name(threads, tid) : NULL;
        if (name != NULL) {
            bp_utf8_copy(summary->deadlocked[summary->deadlocked_count++],
                         sizeof summary->deadlocked[0], name);
        }
    }
    sort_deadlocked(summary);
}

void bp_summary_join_deadlocked(bp_summary *summary, const bp_summary *of_process) {
    summary->knows_deadlocks |= of_process->knows_deadlocks;
    for (size_t i = 0;
         i < of_process->deadlocked_count && summary->deadlocked_count < BP_SUMMARY_DEADLOCKED_MAX;
         i++) {
        memcpy(summary->deadlocked[summary->deadlocked_count++], of_process->deadlocked[i],
               sizeof summary->deadlocked[0]);
    }
    sort_deadlocked(summary);
}
