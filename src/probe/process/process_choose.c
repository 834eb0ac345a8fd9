/* Pure: which of the listed processes are meant. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "process/process_list.h"

/* A listed process while one is chosen. */
typedef struct chooser {
    const bp_process_list *list;
    const bp_process_query *query;
    size_t *parents; /* the index of each one's parent; `none` */
    bool *is_meant;
} chooser;

static const size_t none = SIZE_MAX;

void bp_process_list_release(bp_process_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].executable);
        free(list->items[i].title);
        free(list->items[i].cgroup);
    }
    free(list->items);
    *list = (bp_process_list){.items = NULL};
}

void bp_process_choice_release(bp_process_choice *choice) {
    free(choice->items);
    free(choice->member_counts);
    *choice = (bp_process_choice){.items = NULL};
}

static int compare_pid(const void *pid, const void *process) {
    pid_t wanted = *(const pid_t *)pid, found = ((const bp_listed_process *)process)->pid;
    return wanted < found ? -1 : wanted > found;
}

static size_t find_pid(const bp_process_list *list, pid_t pid) {
    const bp_listed_process *found = list->count == 0 ? NULL
                                                      : bsearch(&pid, list->items, list->count,
                                                                sizeof list->items[0], compare_pid);
    return found != NULL ? (size_t)(found - list->items) : none;
}

/* The name of a path's file, without what the kernel adds when it was removed. */
static bool is_file_name(const char *path, const char *name) {
    static const char deleted[] = " (deleted)";
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    size_t length = strlen(name);
    return slash != NULL && strncmp(slash + 1, name, length) == 0 &&
           (slash[1 + length] == '\0' || strcmp(slash + 1 + length, deleted) == 0);
}

/* The kernel keeps 15 bytes of a name. All of a script's is a file name of its command line. */
static bool is_cut_name(const bp_listed_process *process, const char *name) {
    enum { kept_bytes = 15 };
    size_t length = strlen(name);
    const char *title = process->title != NULL ? process->title : "";
    if (length <= kept_bytes || strncmp(process->name, name, kept_bytes) != 0 ||
        process->name[kept_bytes] != '\0') {
        return false;
    }
    for (const char *at = strstr(title, name); at != NULL; at = strstr(at + 1, name)) {
        if ((at == title || at[-1] == '/' || at[-1] == ' ') &&
            (at[length] == '\0' || at[length] == ' ')) {
            return true;
        }
    }
    return false;
}

/* True if a component of the path is the unit. `ret_bytes` of the path lead there. */
static bool has_unit(const char *path, const char *unit, size_t *ret_bytes) {
    static const char usual[] = ".service";
    size_t length = strlen(unit);
    for (const char *at = path != NULL ? strchr(path, '/') : NULL; at != NULL;
         at = strchr(at + 1, '/')) {
        if (strncmp(at + 1, unit, length) == 0) {
            const char *rest = at + 1 + length;
            rest += strncmp(rest, usual, sizeof usual - 1) == 0 && strchr(unit, '.') == NULL
                        ? sizeof usual - 1
                        : 0;
            if (*rest == '/' || *rest == '\0') {
                *ret_bytes = (size_t)(rest - path);
                return true;
            }
        }
    }
    return false;
}

static bool is_below(const char *path, const char *cgroup) {
    size_t length = strlen(cgroup);
    while (length > 0 && cgroup[length - 1] == '/') {
        length--;
    }
    return path != NULL && strncmp(path, cgroup, length) == 0 &&
           (path[length] == '/' || path[length] == '\0');
}

static bool is_asked_for(const bp_process_query *query, const bp_listed_process *process) {
    size_t ignored;
    if (process->is_zombie || process->pid == query->own_pid) {
        return false;
    }
    switch (query->kind) {
    case BP_PROCESS_BY_NAME:
        return strcmp(process->name, query->text) == 0 ||
               is_file_name(process->executable, query->text) || is_cut_name(process, query->text);
    case BP_PROCESS_BY_UNIT:
        return has_unit(process->cgroup, query->text, &ignored);
    case BP_PROCESS_BY_CGROUP:
        return is_below(process->cgroup, query->text);
    case BP_PROCESS_BY_PIDS:
    default:
        for (size_t i = 0; i < query->pid_count; i++) {
            if (query->pids[i] == process->pid) {
                return true;
            }
        }
        return false;
    }
}

/* A worker was forked, and still runs the same file. */
static bool is_worker_of(const bp_listed_process *process, const bp_listed_process *parent) {
    return process->executable != NULL && parent->executable != NULL &&
           strcmp(process->executable, parent->executable) == 0;
}

/* Adds descendants until there is no other. */
static void add_descendants(const chooser *all) {
    bool is_workers_alone = !all->query->with_children;
    if (is_workers_alone && all->query->kind != BP_PROCESS_BY_NAME) {
        return;
    }
    for (bool has_more = true; has_more;) {
        has_more = false;
        for (size_t i = 0; i < all->list->count; i++) {
            size_t parent = all->parents[i];
            const bp_listed_process *process = &all->list->items[i];
            if (!all->is_meant[i] && parent != none && all->is_meant[parent] &&
                !process->is_zombie && process->pid != all->query->own_pid &&
                (!is_workers_alone || is_worker_of(process, &all->list->items[parent]))) {
                all->is_meant[i] = has_more = true;
            }
        }
    }
}

/* The nearest to the top of those that are meant and above this one; a list that was read while
 * processes came and went may have a circle. */
static size_t find_root(const chooser *all, size_t index) {
    size_t root = index, steps = 0;
    for (size_t at = index; at != none && steps++ <= all->list->count; at = all->parents[at]) {
        root = all->is_meant[at] ? at : root;
    }
    return root;
}

static bool is_older(const bp_listed_process *a, const bp_listed_process *b) {
    return a->start != b->start ? a->start < b->start : a->pid < b->pid;
}

/* Ids in the order in which they were given, and then what was not given; else the root first. */
typedef struct order {
    const bp_process_query *query;
    const bp_listed_process *first; /* NULL: none */
} order;

static size_t rank_of(const order *by, const bp_listed_process *process) {
    size_t rank = 0;
    if (by->query->kind != BP_PROCESS_BY_PIDS) {
        return process != by->first;
    }
    while (rank < by->query->pid_count && by->query->pids[rank] != process->pid) {
        rank++;
    }
    return rank;
}

static int compare_ranks(const void *a, const void *b, void *by) {
    const bp_listed_process *one = *(const bp_listed_process *const *)a;
    const bp_listed_process *other = *(const bp_listed_process *const *)b;
    size_t rank = rank_of(by, one), other_rank = rank_of(by, other);
    if (rank != other_rank) {
        return rank < other_rank ? -1 : 1;
    }
    return is_older(one, other) ? -1 : is_older(other, one);
}

/* True if two units have this name: of the system, and of a user. */
static bool is_in_two_places(const chooser *all) {
    const char *first = NULL;
    size_t first_bytes = 0, bytes = 0;
    for (size_t i = 0; all->query->kind == BP_PROCESS_BY_UNIT && i < all->list->count; i++) {
        const char *path = all->list->items[i].cgroup;
        if (!all->is_meant[i] || !has_unit(path, all->query->text, &bytes)) {
            continue;
        }
        if (first != NULL && (bytes != first_bytes || strncmp(first, path, bytes) != 0)) {
            return true;
        }
        first = path;
        first_bytes = bytes;
    }
    return false;
}

static void fill(const chooser *all, bp_process_choice *choice) {
    order by = {.query = all->query};
    size_t root_count = 0;
    for (size_t i = 0; i < all->list->count; i++) {
        const bp_listed_process *process = &all->list->items[i];
        if (all->is_meant[i] && find_root(all, i) == i) {
            root_count++;
            by.first = by.first == NULL || is_older(process, by.first) ? process : by.first;
        }
    }
    choice->is_ambiguous =
        (by.query->kind == BP_PROCESS_BY_NAME && root_count > 1) || is_in_two_places(all);
    for (size_t i = 0; i < all->list->count; i++) {
        if (all->is_meant[i] && (!choice->is_ambiguous || find_root(all, i) == i)) {
            choice->items[choice->count++] = &all->list->items[i];
        }
    }
    qsort_r(choice->items, choice->count, sizeof(const bp_listed_process *), compare_ranks, &by);
    for (size_t i = 0; choice->is_ambiguous && i < all->list->count; i++) {
        size_t root = all->is_meant[i] ? find_root(all, i) : none;
        for (size_t j = 0; root != none && j < choice->count; j++) {
            choice->member_counts[j] += choice->items[j] == &all->list->items[root];
        }
    }
}

bugpack_status bp_process_choose(const bp_process_list *list, const bp_process_query *query,
                                 bp_process_choice *ret_choice, bugpack_error *error) {
    chooser all = {.list = list,
                   .query = query,
                   .parents = calloc(list->count + 1, sizeof *all.parents),
                   .is_meant = calloc(list->count + 1, sizeof *all.is_meant)};
    bp_process_choice choice = {.items = calloc(list->count + 1, sizeof(const bp_listed_process *)),
                                .member_counts =
                                    calloc(list->count + 1, sizeof *choice.member_counts)};
    bugpack_status status = all.parents != NULL && all.is_meant != NULL && choice.items != NULL &&
                                    choice.member_counts != NULL
                                ? BUGPACK_OK
                                : bp_fail_memory(error, "choose a process");
    for (size_t i = 0; status == BUGPACK_OK && i < list->count; i++) {
        all.parents[i] = find_pid(list, list->items[i].parent_pid);
        all.is_meant[i] = is_asked_for(query, &list->items[i]);
    }
    if (status == BUGPACK_OK) {
        add_descendants(&all);
        fill(&all, &choice);
        *ret_choice = choice;
    } else {
        bp_process_choice_release(&choice);
    }
    free(all.parents);
    free(all.is_meant);
    return status;
}
