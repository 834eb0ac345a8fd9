/*
 * Stops threads of our own process through a helper process: no thread may trace another one of its
 * own process. Linux only.
 */
#ifndef BP_PROBE_STOP_HELPER_H
#define BP_PROBE_STOP_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/thread_stop.h"

/* Our end of it; -1 without one. */
typedef struct bp_stop_helper {
    int fd;
    bool is_ptracer;
} bp_stop_helper;

/*
 * Starts the bugpack command at `path`. It is no child of ours: the host gets no SIGCHLD for it,
 * and no waitpid(-1) finds it. With `is_ptracer` it may trace us until bp_stop_helper_end, where
 * Yama would forbid it; that takes the only slot of PR_SET_PTRACER.
 *
 * 0 or an errno; ENOTSUP where it would become our child when its parent ends: we are process 1, or
 * a subreaper.
 */
int bp_stop_helper_start(const char *path, bool is_ptracer, bp_stop_helper *ret_helper);

/* It ends by itself when it has nobody to answer, or after half a minute. */
void bp_stop_helper_end(bp_stop_helper *helper);

/* As bp_thread_stop_copy. After ETIMEDOUT or EPROTO the helper is gone, and EPIPE is returned. */
int bp_stop_helper_copy(bp_stop_helper *helper, pid_t tid, bp_thread_copy *copy,
                        uint64_t *ret_pause_ns);

/* The helper's own part: the arguments are its name and the id of the process. An exit status. */
int bp_stop_help(int argument_count, char **arguments);

#endif
