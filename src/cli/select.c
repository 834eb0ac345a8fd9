#include "cli/select.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bugpack/provide.h>

#include "cli/output.h"

/* As many as the library takes, each with its descriptors. */
enum { target_max = 256, descriptors_each = 8, title_bytes = 256 };

bool bp_cli_read_pids(const bp_cli_option *option, const char *text, void *field) {
    bp_cli_pid_list *list = field;
    pid_t pid;
    if (!bp_cli_read_number(option, text, &pid)) {
        return false;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == pid) {
            return true;
        }
    }
    pid_t *items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (items == NULL) {
        bp_cli_say("cannot read the command line: out of memory");
        errno = ENOMEM;
        return false;
    }
    list->items = items;
    items[list->count++] = pid;
    return true;
}

bool bp_cli_read_cgroup(const bp_cli_option *option, const char *text, void *field) {
    static const char mounted[] = "/sys/fs/cgroup/";
    bool is_mounted = strncmp(text, mounted, sizeof mounted - 1) == 0;
    if (text[0] != '/') {
        bp_cli_say_usage("--%s takes a path such as /system.slice, not '%s'", option->name, text);
        return false;
    }
    return bp_cli_read_text(option, is_mounted ? text + sizeof mounted - 2 : text, field);
}

void bp_cli_selector_release(bp_cli_selector *selector) {
    free(selector->pids.items);
}

static int count_kinds(const bp_cli_selector *selector) {
    return (selector->pids.count > 0) + (selector->name != NULL) + (selector->unit != NULL) +
           (selector->cgroup != NULL);
}

bool bp_cli_select_is_given(const bp_cli_selector *selector) {
    return count_kinds(selector) > 0;
}

bool bp_cli_select_is_search(const bp_cli_selector *selector) {
    return selector->pids.count == 0 || selector->with_children;
}

const char *bp_cli_select_conflict(const bp_cli_selector *selector) {
    if (count_kinds(selector) > 1) {
        return "--pid, --name, --unit and --cgroup exclude each other";
    }
    return selector->with_children && count_kinds(selector) == 0
               ? "--children needs --pid, --name, --unit or --cgroup"
               : NULL;
}

static bp_process_query make_query(const bp_cli_selector *selector) {
    bp_process_query query = {.kind = BP_PROCESS_BY_PIDS,
                              .pids = selector->pids.items,
                              .pid_count = selector->pids.count,
                              .with_children = selector->with_children,
                              .own_pid = getpid()};
    if (selector->name != NULL) {
        query.kind = BP_PROCESS_BY_NAME;
        query.text = selector->name;
    } else if (selector->unit != NULL) {
        query.kind = BP_PROCESS_BY_UNIT;
        query.text = selector->unit;
    } else if (selector->cgroup != NULL) {
        query.kind = BP_PROCESS_BY_CGROUP;
        query.text = selector->cgroup;
    }
    return query;
}

static bp_cli_exit say_none(const bp_cli_selector *selector) {
    if (selector->name != NULL) {
        bp_cli_say("no process is called '%s'", selector->name);
    } else if (selector->unit != NULL) {
        bp_cli_say("no process runs in the unit '%s'", selector->unit);
    } else if (selector->cgroup != NULL) {
        bp_cli_say("no process runs in the cgroup '%s'", selector->cgroup);
    } else {
        bp_cli_say("no process %d", (int)selector->pids.items[0]);
    }
    return BP_CLI_NO_PROCESS;
}

/* The roots of all that was meant, so that one can be named. */
static bp_cli_exit say_choices(const bp_cli_selector *selector, const bp_process_choice *choice) {
    char title[title_bytes];
    if (selector->unit != NULL) {
        bp_cli_say("the unit '%s' runs in several cgroups: choose one with --cgroup",
                   selector->unit);
        (void)fprintf(stderr, "%10s  %s\n", "PID", "CGROUP");
    } else {
        bp_cli_say("'%s' is the name of %zu processes that are not one tree: choose one with --pid",
                   selector->name, choice->count);
        (void)fprintf(stderr, "%10s  %9s  %s\n", "PID", "PROCESSES", "COMMAND");
    }
    for (size_t i = 0; i < choice->count; i++) {
        const bp_listed_process *process = choice->items[i];
        if (selector->unit != NULL) {
            bp_cli_escape(process->cgroup, title, sizeof title);
            (void)fprintf(stderr, "%10d  %s\n", (int)process->pid, title);
            continue;
        }
        bp_cli_escape(process->title != NULL ? process->title : process->name, title, sizeof title);
        (void)fprintf(stderr, "%10d  %9zu  %s\n", (int)process->pid, choice->member_counts[i],
                      title);
    }
    return BP_CLI_USAGE;
}

/* Many processes take many descriptors. Best effort: the library says where it has none left. */
static void reserve_descriptors(size_t process_count) {
    struct rlimit limit;
    rlim_t wanted = target_max + (rlim_t)process_count * descriptors_each;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur =
            limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max ? wanted : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool search(const bp_cli_selector *selector, bp_cli_targets *targets,
                   bp_cli_exit *ret_exit) {
    const bp_process_query query = make_query(selector);
    bugpack_error error = BUGPACK_ERROR_INIT;
    bool with_cgroups = selector->unit != NULL || selector->cgroup != NULL;
    bugpack_status status = bp_process_list_read(-1, with_cgroups, &targets->list, &error);
    if (status == BUGPACK_OK) {
        status = bp_process_choose(&targets->list, &query, &targets->choice, &error);
    }
    targets->count = targets->choice.count;
    if (status != BUGPACK_OK) {
        *ret_exit = bp_cli_say_error(&error);
    } else if (targets->count == 0) {
        *ret_exit = say_none(selector);
    } else if (targets->choice.is_ambiguous) {
        *ret_exit = say_choices(selector, &targets->choice);
    } else {
        return true;
    }
    return false;
}

static bool fill(const bp_cli_selector *selector, bp_cli_targets *targets, bp_cli_exit *ret_exit) {
    targets->is_search = bp_cli_select_is_search(selector);
    targets->count = selector->pids.count;
    if (targets->is_search && !search(selector, targets, ret_exit)) {
        return false;
    }
    if (targets->count > target_max) {
        *ret_exit = bp_cli_say_usage("%zu processes are meant, and a report has at most %d",
                                     targets->count, target_max);
        return false;
    }
    targets->pids = calloc(targets->count, sizeof *targets->pids);
    if (targets->pids == NULL) {
        bp_cli_say("cannot select the processes: out of memory");
        *ret_exit = BP_CLI_FAILED;
        return false;
    }
    for (size_t i = 0; i < targets->count; i++) {
        targets->pids[i] =
            targets->is_search ? targets->choice.items[i]->pid : selector->pids.items[i];
    }
    reserve_descriptors(targets->count);
    return true;
}

bool bp_cli_select(const bp_cli_selector *selector, bp_cli_targets *ret_targets,
                   bp_cli_exit *ret_exit) {
    bp_cli_targets targets = {.count = 0};
    bool is_good = fill(selector, &targets, ret_exit);
    if (!is_good) {
        bp_cli_select_release(&targets);
    }
    *ret_targets = targets;
    return is_good;
}

void bp_cli_select_release(bp_cli_targets *targets) {
    bp_process_choice_release(&targets->choice);
    bp_process_list_release(&targets->list);
    free(targets->pids);
    targets->pids = NULL;
    targets->count = 0;
}

/* Whether the session is about the process that was found, and not about a later one of its id. */
static bool is_meant(const bp_cli_targets *targets, size_t i) {
    return !targets->is_search || bp_process_list_is_there(targets->choice.items[i]);
}

bugpack_status bp_cli_select_add(const bp_cli_targets *targets, bugpack *session, bool says_all) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = is_meant(targets, 0) ? BUGPACK_OK : BUGPACK_ERR_NO_PROCESS;
    for (size_t i = 1; i < targets->count && status == BUGPACK_OK; i++) {
        status = bugpack_provide_process(session, targets->pids[i], &error);
        if (status == BUGPACK_OK) {
            status = is_meant(targets, i) ? BUGPACK_OK : BUGPACK_ERR_NO_PROCESS;
        } else if (status == BUGPACK_ERR_NO_PROCESS && targets->is_search) {
            status = BUGPACK_OK;
        }
    }
    if (status == BUGPACK_ERR_NO_PROCESS && says_all && error.message[0] == '\0') {
        bp_cli_say("a process that was selected has ended");
    } else if (status != BUGPACK_OK && (status != BUGPACK_ERR_NO_PROCESS || says_all)) {
        bp_cli_say("%s", error.message);
    }
    return status;
}
