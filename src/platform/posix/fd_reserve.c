#include "platform/fd_reserve.h"

#include <fcntl.h>

#include "base/file.h"
#include "platform/wake.h"

enum { standard_stream_count = 3 };

void bp_fd_reserve_take(bp_fd_reserve *reserve) {
    int ends[2] = {-1, -1};
    int error = bp_wake_pipe(ends);
    reserve->is_held = true;
    reserve->mark = bp_fd_mark_of(ends[0]);
    /* The second end makes room for one of the copies. */
    bp_file_close(ends[1]);
    for (int i = 0; i < BP_FD_RESERVE_COUNT; i++) {
        reserve->fds[i] = error == 0 ? fcntl(ends[0], F_DUPFD_CLOEXEC, standard_stream_count) : -1;
    }
    bp_file_close(ends[0]);
}

void bp_fd_reserve_release(bp_fd_reserve *reserve) {
    for (int i = 0; reserve->is_held && i < BP_FD_RESERVE_COUNT; i++) {
        bp_fd_close_ours(reserve->fds[i], reserve->mark);
    }
    reserve->is_held = false;
}
