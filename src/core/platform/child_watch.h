/* The children of another process that begin and end within a window, as frequent looks see them.
 */
#ifndef BP_PLATFORM_CHILD_WATCH_H
#define BP_PLATFORM_CHILD_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/task.h"

/* Children with the same arguments in the same working directory. */
typedef struct bp_child_command {
    uint64_t key;
    char name[64];       /* any bytes */
    bool is_own;         /* the arguments are those of the process itself, as after fork(2); left
                            out where others were counted, since one may have executed them */
    uint64_t count;      /* of those that were seen; all below is of these */
    uint64_t longest_ns; /* no child lived longer */
    uint64_t succeeded_count, failed_count; /* as far as the ends are known */
    int status;                             /* of one that failed, as waitpid(2) has it */
} bp_child_command;
enum { BP_CHILD_COMMAND_MAX = 4 };

typedef struct bp_children {
    uint64_t look_count;  /* 0: nobody looked */
    uint64_t ended_count; /* at least so many children ended and were waited for */
    bool has_reads;
    uint64_t read_chars; /* what the first thread read meanwhile */
    bool has_counts;
    uint64_t first_count,
        last_count; /* of living children and zombies, at the first look and the last */
    /* Commands of the children that began within the window. "sleep", which only parts two others,
     * is left out. */
    bp_child_command commands[BP_CHILD_COMMAND_MAX];
    size_t command_count;
    bool has_more_commands;
} bp_children;

typedef struct bp_child_watch bp_child_watch;

/* Watches the children of `task`, which is borrowed. NULL for our own process, without memory, and
 * on other systems than Linux. One thread at a time, as a snapshot. */
bp_child_watch *bp_child_watch_new(bp_task *task);
void bp_child_watch_free(bp_child_watch *watch); /* NULL is fine */

/* Looks once: a few files of the process, and of each new child. True if children have begun or
 * ended since it was made. NULL is fine. */
bool bp_child_watch_look(bp_child_watch *watch);

/* The children at the last look, with zombies. False where they are not known. NULL is fine. */
bool bp_child_watch_count(const bp_child_watch *watch, uint64_t *ret_count);

/* Everything that was seen so far. NULL is fine. */
bp_children bp_child_watch_result(const bp_child_watch *watch);

#endif
