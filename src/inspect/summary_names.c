#include "inspect/summary_names.h"

#include <stdlib.h>
#include <string.h>

/* XXH3, inlined; no library is linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"

/* Busiest first; then by name, so that equal reports have equal lines. */
static int compare_cpu(const void *one, const void *other) {
    const bp_summary_name *first = one, *second = other;
    return first->cpu_percent != second->cpu_percent
               ? (first->cpu_percent < second->cpu_percent) -
                     (first->cpu_percent > second->cpu_percent)
               : strcmp(first->name, second->name);
}

/* The slot of a name, or the free one where it belongs. */
static uint32_t *find_slot(const bp_summary_names *names, const char *name) {
    size_t at = (size_t)XXH3_64bits_withSeed(name, strlen(name), names->seed);
    for (;; at++) {
        uint32_t *slot = &names->slots[at & (names->slot_count - 1)];
        if (*slot == 0 || strcmp(names->rows[*slot - 1].name, name) == 0) {
            return slot;
        }
    }
}

/* Makes room for a name. Half of the slots stay free. */
static bool reserve(bp_summary_names *names) {
    enum { slots_min = 64 };
    if (!bp_array_reserve(&names->rows, names->count, &names->capacity)) {
        return false;
    }
    if (2 * (names->count + 1) <= names->slot_count) {
        return true;
    }
    size_t slot_count = names->slot_count > 0 ? 2 * names->slot_count : slots_min;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    free(names->slots);
    names->slots = slots;
    names->slot_count = slot_count;
    names->seed = bp_clock_monotonic_ns() ^ (uint64_t)(uintptr_t)slots << 20;
    for (size_t i = 0; i < names->count; i++) {
        *find_slot(names, names->rows[i].name) = (uint32_t)(i + 1);
    }
    return true;
}

bugpack_status bp_summary_add_name(bp_summary_names *names, const bp_json_tree *thread,
                                   bugpack_error *error) {
    bp_summary_name row = {.count = 1};
    const char *name = bp_json_tree_text(thread, "name");
    if (name == NULL || !bp_json_tree_number(thread, "cpu_percent", &row.cpu_percent)) {
        return BUGPACK_OK;
    }
    bp_utf8_copy(row.name, sizeof row.name, name);
    if (bp_json_tree_is_true(thread, "born_in_window")) {
        (void)bp_json_tree_number(thread, "cpu_ms", &row.born_cpu_ms);
    }
    if (!reserve(names)) {
        return bp_fail_memory(error, "read a report");
    }
    uint32_t *slot = find_slot(names, row.name);
    if (*slot != 0) {
        names->rows[*slot - 1].count++;
        names->rows[*slot - 1].cpu_percent += row.cpu_percent;
        names->rows[*slot - 1].born_cpu_ms += row.born_cpu_ms;
    } else if (names->count == BP_SUMMARY_NAME_MAX) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "its threads have more than %d names",
                       BP_SUMMARY_NAME_MAX);
    } else {
        names->rows[names->count++] = row;
        *slot = (uint32_t)names->count;
    }
    return BUGPACK_OK;
}

void bp_summary_sort_names(bp_summary_names *names, double window_ms) {
    for (size_t i = 0; i < names->count && window_ms > 0; i++) {
        names->rows[i].cpu_percent += names->rows[i].born_cpu_ms / window_ms * 100;
    }
    if (names->count > 0) {
        qsort(names->rows, names->count, sizeof *names->rows, compare_cpu);
    }
    free(names->slots);
    names->slots = NULL;
    names->slot_count = 0;
}

void bp_summary_release_names(bp_summary_names *names) {
    free(names->rows);
    free(names->slots);
    *names = (bp_summary_names){.count = 0};
}

static int compare_texts(const void *one, const void *other) {
    return strcmp(one, other);
}

/* A circle begins anywhere: sorted, the same one has the same names in every report. */
static void sort_deadlocked(bp_summary *summary) {
    qsort(summary->deadlocked, summary->deadlocked_count, sizeof summary->deadlocked[0],
          compare_texts);
}

void bp_summary_add_deadlock(bp_summary_waiting *waiting, const bp_json_tree *deadlock) {
    for (const bp_json_tree *item = bp_json_tree_first(bp_json_tree_array(deadlock, "tids"));
         item != NULL && waiting->tid_count < BP_SUMMARY_DEADLOCKED_MAX;
         item = bp_json_tree_next(item)) {
        waiting->tid_count +=
            bp_json_tree_value_uint(item, &waiting->tids[waiting->tid_count]) ? 1 : 0;
    }
}

static void name_deadlocked(bp_summary *summary, const bp_json_tree *thread) {
    static const uint64_t has_name = UINT64_MAX; /* no tid is as large */
    const char *name = bp_json_tree_text(thread, "name");
    uint64_t tid;
    if (name == NULL || !bp_json_tree_uint(thread, "tid", &tid)) {
        return;
    }
    for (size_t i = 0; i < summary->waiting.tid_count; i++) {
        if (summary->waiting.tids[i] == tid) {
            summary->waiting.tids[i] = has_name;
            bp_utf8_copy(summary->deadlocked[summary->deadlocked_count++],
                         sizeof summary->deadlocked[0], name);
            sort_deadlocked(summary);
        }
    }
}

/*
 * Whether it is known for whom a thread waits, or that it waits for no lock. The kernel does not
 * know who is to end the wait on a futex that is no pthread mutex: a monitor of Java, a lock of
 * Python, a goroutine's thread, a condition.
 */
static bool waits_openly(const bp_json_tree *thread) {
    static const char *const locks[] = {"futex", "flock", "fcntl", "semop", "semtimedop"};
    const char *call = bp_json_tree_text(bp_json_tree_object(thread, "syscall"), "name");
    uint64_t tid;
    bool is_open = call != NULL;
    for (size_t i = 0; is_open && i < sizeof locks / sizeof locks[0]; i++) {
        is_open = strncmp(call, locks[i], strlen(locks[i])) != 0;
    }
    return is_open || bp_json_tree_uint(bp_json_tree_object(thread, "waits_for"), "tid", &tid);
}

void bp_summary_see_thread(bp_summary *summary, const bp_json_tree *thread) {
    bp_summary_waiting *waiting = &summary->waiting;
    const char *state = bp_json_tree_text_or(thread, "state", "");
    bool is_running = strcmp(state, "running") == 0;
    bool has_ended = strcmp(state, "zombie") == 0 || strcmp(state, "dead") == 0;
    if (!has_ended) {
        bool is_clear = is_running || waits_openly(thread);
        waiting->clear_count += is_clear;
        waiting->unclear_count += !is_clear;
    }
    summary->known_count += !has_ended;
    summary->stopped_count += strcmp(state, "stopped") == 0;
    name_deadlocked(summary, thread);
}

void bp_summary_join_deadlocked(bp_summary *summary, const bp_summary *of_process) {
    summary->has_no_deadlock &= of_process->has_no_deadlock;
    summary->has_deadlock |= of_process->has_deadlock;
    for (size_t i = 0;
         i < of_process->deadlocked_count && summary->deadlocked_count < BP_SUMMARY_DEADLOCKED_MAX;
         i++) {
        memcpy(summary->deadlocked[summary->deadlocked_count++], of_process->deadlocked[i],
               sizeof summary->deadlocked[0]);
    }
    sort_deadlocked(summary);
}
