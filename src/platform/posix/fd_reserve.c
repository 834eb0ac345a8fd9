#include "platform/fd_reserve.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "base/file.h"
#include "platform/wake.h"

enum { standard_stream_count = 3 };

/* The copies get the lowest numbers that are free: there cannot be many above one that is near the
 * limit. */
static bool leaves_room(int fd) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
           (rlim_t)fd + BP_FD_RESERVE_COUNT < limit.rlim_cur;
}

void bp_fd_reserve_take(bp_fd_reserve *reserve) {
    int ends[2] = {-1, -1};
    int error = bp_wake_pipe(ends);
    reserve->is_held = true;
    reserve->mark = bp_fd_mark_of(ends[0]);
    /* The second end makes room for one of the copies. */
    bp_file_close(ends[1]);
    for (int i = 0; i < BP_FD_RESERVE_COUNT; i++) {
        reserve->fds[i] = error == 0 ? fcntl(ends[0], F_DUPFD_CLOEXEC, standard_stream_count) : -1;
        if (reserve->fds[i] >= 0 && i >= reserve->had_count && !leaves_room(reserve->fds[i])) {
            bp_file_close(reserve->fds[i]);
            reserve->fds[i] = -1;
        }
        if (reserve->fds[i] >= 0 && i >= reserve->had_count) {
            reserve->had_count = i + 1;
        }
    }
    bp_file_close(ends[0]);
}

void bp_fd_reserve_release(bp_fd_reserve *reserve) {
    for (int i = 0; reserve->is_held && i < BP_FD_RESERVE_COUNT; i++) {
        bp_fd_close_ours(reserve->fds[i], reserve->mark);
    }
    reserve->is_held = false;
}
