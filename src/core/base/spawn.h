/*
 * How a child process is started: it begins with no signal blocked and every one at its default,
 * whatever the thread that starts it has.
 */
#ifndef BP_BASE_SPAWN_H
#define BP_BASE_SPAWN_H

#include <spawn.h>

typedef struct bp_spawn {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
} bp_spawn;

/* `more_flags` as for posix_spawnattr_setflags. 0, or an errno, and there is nothing to release. */
int bp_spawn_init(bp_spawn *spawn, short more_flags);

/* What the child has as its standard streams: copies of these, which are none of 0, 1 and 2, or
 * /dev/null for -1. 0, or an errno. */
int bp_spawn_streams(bp_spawn *spawn, const int fds[3]);

void bp_spawn_release(bp_spawn *spawn);

#endif
