#include "cli/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/output.h"
#include "process/process_list.h"
#include "session/command.h"

/* How it is said that there are none. */
static const struct {
    bp_process_query_kind kind;
    const char *absence;
} text_kinds[BP_CLI_BY_COUNT] = {
    [BP_CLI_BY_NAME] = {BP_PROCESS_BY_NAME, "no process is called"},
    [BP_CLI_BY_UNIT] = {BP_PROCESS_BY_UNIT, "no process runs in the unit"},
    [BP_CLI_BY_CGROUP] = {BP_PROCESS_BY_CGROUP, "no process runs in the cgroup"}};

/* The selected processes, the first at the top of the report. */
typedef struct cli_targets {
    const bp_cli_pid_list *given; /* the ids, unless it is a search */
    bool is_search;               /* what was found may have ended */
    bool is_quiet;                /* that there is none, or several, is not said */
    bp_process_list list;         /* of which `choice` is */
    bp_process_choice choice;
    size_t count;
} cli_targets;

/* How often what is selected is searched for, while processes come and go. */
enum { select_tries = 3 };
/* As many as the library takes, each with its descriptors. */
enum { target_max = 256, descriptors_each = 8, title_bytes = 256 };

/* A profile needs one for each thread and processor. */
static const rlim_t profile_descriptors = 16384;

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
        return bp_cli_say_no_memory();
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

/* The index of the text that was given; BP_CLI_BY_COUNT: none. */
static size_t find_text(const bp_cli_select *select) {
    size_t at = 0;
    while (at < BP_CLI_BY_COUNT && select->texts[at] == NULL) {
        at++;
    }
    return at;
}

int bp_cli_select_kinds(const bp_cli_select *select) {
    int count = select->pids.count > 0;
    for (size_t i = 0; i < BP_CLI_BY_COUNT; i++) {
        count += select->texts[i] != NULL;
    }
    return count;
}

/* The roots of all that was meant, so that one can be named. */
static void say_choices(const bp_cli_select *select, const bp_process_choice *choice) {
    const char *unit = select->texts[BP_CLI_BY_UNIT];
    char title[title_bytes];
    if (unit != NULL) {
        bp_cli_say("the unit '%s' runs in several cgroups: choose one with --cgroup", unit);
        (void)fprintf(stderr, "%10s  %s\n", "PID", "CGROUP");
    } else {
        bp_cli_say("'%s' is the name of %zu processes that are not one tree: choose one with --pid",
                   select->texts[BP_CLI_BY_NAME], choice->count);
        (void)fprintf(stderr, "%10s  %9s  %s\n", "PID", "PROCESSES", "COMMAND");
    }
    for (size_t i = 0; i < choice->count; i++) {
        const bp_listed_process *process = choice->items[i];
        if (unit != NULL) {
            bp_cli_escape(process->cgroup, title, sizeof title);
            (void)fprintf(stderr, "%10d  %s\n", (int)process->pid, title);
            continue;
        }
        bp_cli_escape(process->title != NULL ? process->title : process->name, title, sizeof title);
        (void)fprintf(stderr, "%10d  %9zu  %s\n", (int)process->pid, choice->member_counts[i],
                      title);
    }
}

/* Many processes take many descriptors. Best effort: the library says where it has none left. */
static void reserve_descriptors(size_t process_count) {
    struct rlimit limit;
    rlim_t wanted = profile_descriptors + target_max + (rlim_t)process_count * descriptors_each;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur =
            limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max ? wanted : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool search(const bp_cli_select *select, cli_targets *targets, bp_cli_exit *ret_exit) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    size_t at = find_text(select);
    const bp_process_query query = {.kind = at < BP_CLI_BY_COUNT ? text_kinds[at].kind
                                                                 : BP_PROCESS_BY_PIDS,
                                    .text = at < BP_CLI_BY_COUNT ? select->texts[at] : NULL,
                                    .pids = select->pids.items,
                                    .pid_count = select->pids.count,
                                    .with_children = select->with_children,
                                    .own_pid = getpid()};
    bugpack_status status = bp_process_list_read(at == BP_CLI_BY_UNIT || at == BP_CLI_BY_CGROUP,
                                                 &targets->list, &error);
    if (status == BUGPACK_OK) {
        status = bp_process_choose(&targets->list, &query, &targets->choice, &error);
    }
    targets->count = targets->choice.count;
    if (status != BUGPACK_OK) {
        *ret_exit = bp_cli_say_error(&error);
    } else if (targets->count == 0) {
        *ret_exit = BP_CLI_NO_PROCESS;
        if (!targets->is_quiet && at < BP_CLI_BY_COUNT) {
            bp_cli_say("%s '%s'", text_kinds[at].absence, select->texts[at]);
        } else if (!targets->is_quiet) {
            bp_cli_say("no process %d", (int)select->pids.items[0]);
        }
    } else if (targets->choice.is_ambiguous) {
        *ret_exit = BP_CLI_USAGE;
        if (!targets->is_quiet) {
            say_choices(select, &targets->choice);
        }
    } else {
        return true;
    }
    return false;
}

/* False after a failure that was reported, with the program's exit status. */
static bool fill(const bp_cli_select *select, cli_targets *targets, bp_cli_exit *ret_exit) {
    if (targets->is_search && !search(select, targets, ret_exit)) {
        return false;
    }
    if (targets->count > target_max) {
        *ret_exit = bp_cli_say_usage("%zu processes match, and a report has at most %d",
                                     targets->count, target_max);
        return false;
    }
    reserve_descriptors(targets->count);
    return true;
}

static void targets_release(cli_targets *targets) {
    bp_process_choice_release(&targets->choice);
    bp_process_list_release(&targets->list);
}

/* True if the session is about the process that was found, and not about a later one of its id. */
static bool is_meant(const cli_targets *targets, size_t i) {
    return !targets->is_search || bp_process_list_is_there(targets->choice.items[i]);
}

static pid_t pid_of(const cli_targets *targets, size_t i) {
    return targets->is_search ? targets->choice.items[i]->pid : targets->given->items[i];
}

/*
 * Adds the targets to a session that is about the first. One that has ended since it was found is
 * left out. NO_PROCESS where a process is another now than when it was chosen, or one whose id was
 * given is not there. Reports a failure, but that only if `says_all`.
 */
static bugpack_status select_add(const cli_targets *targets, bugpack_session *session,
                                 bool says_all) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = is_meant(targets, 0) ? BUGPACK_OK : BUGPACK_ERR_NO_PROCESS;
    for (size_t i = 1; i < targets->count && status == BUGPACK_OK; i++) {
        status = bp_session_add_process(session, pid_of(targets, i), &error);
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

bugpack_status bp_cli_select_open(const bp_cli_select *select, bool is_quiet, bp_cli_opener *open,
                                  void *context, bugpack_session **ret_session,
                                  bp_cli_exit *ret_exit) {
    bugpack_status status = BUGPACK_ERR_NO_PROCESS;
    bool is_search = select->pids.count == 0 || select->with_children;
    int tries = is_search ? select_tries : 1;
    while (status == BUGPACK_ERR_NO_PROCESS && tries-- > 0) {
        cli_targets targets = {.given = &select->pids,
                               .is_search = is_search,
                               .is_quiet = is_quiet,
                               .count = select->pids.count};
        bool says_all = tries == 0 && !is_quiet;
        if (!fill(select, &targets, ret_exit)) {
            targets_release(&targets);
            return *ret_exit == BP_CLI_NO_PROCESS ? BUGPACK_ERR_NO_PROCESS : BUGPACK_ERR_INVALID;
        }
        status = open(context, pid_of(&targets, 0), says_all, ret_session);
        if (status == BUGPACK_OK) {
            status = select_add(&targets, *ret_session, says_all);
            if (status != BUGPACK_OK) {
                bugpack_close(*ret_session);
                *ret_session = NULL;
            }
        }
        targets_release(&targets);
    }
    *ret_exit = bp_cli_exit_of(status);
    return status;
}

const char *bp_cli_select_conflict(const bp_cli_select *select) {
    int selected = bp_cli_select_kinds(select);
    if (selected > 1) {
        return "--pid, --name, --unit and --cgroup exclude each other";
    }
    return select->with_children && selected == 0
               ? "--children needs --pid, --name, --unit or --cgroup"
               : NULL;
}
