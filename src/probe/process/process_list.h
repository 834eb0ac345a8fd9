/*
 * The processes of the machine, and which of them are meant by a name, a systemd unit or a cgroup.
 */
#ifndef BP_PROCESS_PROCESS_LIST_H
#define BP_PROCESS_PROCESS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

/* The owned texts are NULL where they were not asked for, or are not known. */
typedef struct bp_listed_process {
    pid_t pid, parent_pid;
    uint64_t start; /* with the pid it identifies the process */
    char name[64];  /* any bytes */
    bool is_zombie;
    char *executable; /* the path of its file */
    char *title;      /* its arguments as one text, cut at 200 bytes: any bytes */
    char *cgroup;
} bp_listed_process;

typedef struct bp_process_list {
    bp_listed_process *items; /* by pid */
    size_t count;
} bp_process_list;

/* Lists all processes that are there and not hidden from us. UNSUPPORTED, IO, NO_MEMORY. */
bugpack_status bp_process_list_read(bool with_cgroups, bp_process_list *ret_list,
                                    bugpack_error *error);
void bp_process_list_release(bp_process_list *list);

/* True if the process is still there, and is no other with its id. */
bool bp_process_list_is_there(const bp_listed_process *process);

typedef enum bp_process_query_kind {
    BP_PROCESS_BY_PIDS,
    BP_PROCESS_BY_NAME,  /* of the process, or of its executable's file */
    BP_PROCESS_BY_UNIT,  /* "nginx" is "nginx.service" */
    BP_PROCESS_BY_CGROUP /* and those below it; the path is that of process.json */
} bp_process_query_kind;

/* Borrowed. */
typedef struct bp_process_query {
    bp_process_query_kind kind;
    const char *text;
    const pid_t *pids;
    size_t pid_count;
    bool with_children; /* all descendants, too */
    pid_t own_pid;      /* never meant by a name; 0: none */
} bp_process_query;

typedef struct bp_process_choice {
    const bp_listed_process **items; /* of the list. The caller frees the array alone */
    size_t count;                    /* 0: there is none */
    bool is_ambiguous;               /* several are meant that are not one tree: the items are the
                                        roots of each */
    size_t *member_counts;           /* then: of each tree. The caller's to free, too */
} bp_process_choice;

/*
 * Chooses. By ids they are in that order, one that is not listed is left out. Otherwise the first
 * is the root, and the others follow by age.
 *
 * A name means also the descendants that run the same file, as they were forked and are its
 * workers, whatever they call themselves. What it means is one tree, or it is ambiguous; so is a
 * unit that is there in several places. Errors: NO_MEMORY.
 */
bugpack_status bp_process_choose(const bp_process_list *list, const bp_process_query *query,
                                 bp_process_choice *ret_choice, bugpack_error *error);
void bp_process_choice_release(bp_process_choice *choice);

#endif
