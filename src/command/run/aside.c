#include "run/aside.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

enum {
    look_ms = 50,
    end_look_us = 200,
    piece_bytes = 64 * 1024,
    standard_count = 3,
    most_fds = 1 << 16
};

/* Memory that both processes have. */
struct shared {
    atomic_bool is_done;
    _Alignas(16) char answer[BP_ASIDE_ANSWER_MAX_BYTES];
};

/* A child that never ends would keep open what others wait to be closed, as our standard output. */
static int close_others(int out_fd) {
    struct rlimit limit;
    int own_fd = dup2(out_fd, standard_count);
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < standard_count; fd++) {
        if (null_fd >= 0) {
            (void)dup2(null_fd, fd);
        } else {
            (void)close(fd);
        }
    }
#ifdef SYS_close_range
    if (syscall(SYS_close_range, own_fd + 1, ~0U, 0) == 0) { /* Linux 5.9 */
        return own_fd;
    }
#endif
    int end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < most_fds
                  ? (int)limit.rlim_cur
                  : most_fds;
    for (int fd = own_fd + 1; fd < end; fd++) {
        (void)close(fd);
    }
    return own_fd;
}

_Noreturn static void do_work(const bp_aside *aside, struct shared *shared, int out_fd) {
    /* A core of 1 byte is not written, and not piped either (fs/coredump.c). */
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});
    (void)setsid(); /* no terminal's signal or end is for it */
    aside->work(aside->context, shared->answer, close_others(out_fd));
    atomic_store(&shared->is_done, true);
    _exit(0);
}

/* Until the child has closed its end. */
static bugpack_status relay(const bp_aside *aside, int fd, bp_sink *sink, void *sink_context) {
    char piece[piece_bytes];
    uint64_t moved_ns = bp_clock_monotonic_ns();
    for (;;) {
        struct pollfd waited = {.fd = fd, .events = POLLIN};
        int ready = poll(&waited, 1, look_ms);
        ssize_t count = ready > 0 ? read(fd, piece, sizeof piece) : -1;
        if (ready > 0 && count == 0) {
            return BUGPACK_OK;
        }
        if ((ready < 0 || (ready > 0 && count < 0)) && errno != EINTR) {
            return BUGPACK_ERR_IO;
        }
        if (count > 0) {
            bugpack_status status = sink(sink_context, piece, (size_t)count);
            if (status != BUGPACK_OK) {
                return status;
            }
            moved_ns = bp_clock_monotonic_ns();
        }
        if (aside->is_cancelled != NULL && aside->is_cancelled(aside->observed)) {
            return BUGPACK_ERR_CANCELLED;
        }
        if (bp_clock_monotonic_ns() - moved_ns >= aside->stall_ms * BP_NS_PER_MS) {
            return BUGPACK_ERR_TIMEOUT;
        }
    }
}

/* False while the child is there. */
static bool reap(bp_aside_child *child, int flags) {
    pid_t ended;
    do {
        ended = waitpid(child->left_pid, &child->wait_status, flags);
    } while (ended < 0 && errno == EINTR);
    child->left_pid = ended == 0 ? child->left_pid : 0;
    return child->left_pid == 0;
}

/* Closing another file may keep a child that has closed the pipe. */
static void await_end(bp_aside_child *child) {
    uint64_t until_ns = bp_clock_monotonic_ns() + look_ms * BP_NS_PER_MS;
    while (!reap(child, WNOHANG) && bp_clock_monotonic_ns() < until_ns) {
        (void)usleep(end_look_us);
    }
}

bugpack_status bp_run_aside(const bp_aside *aside, bp_sink *sink, void *sink_context,
                            void *ret_answer, bp_aside_child *child) {
    int ends[2] = {-1, -1};
    bugpack_status status = BUGPACK_ERR_UNSUPPORTED;
    assert(aside->answer_bytes <= BP_ASIDE_ANSWER_MAX_BYTES);
    if (child->left_pid != 0 && !reap(child, WNOHANG)) {
        return BUGPACK_ERR_BUSY;
    }
    child->wait_status = 0;
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return BUGPACK_ERR_UNSUPPORTED;
    }
    pid_t pid = -1;
    if (pipe(ends) == 0) {
        (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
        (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
        pid = fork();
    }
    if (pid == 0) {
        do_work(aside, shared, ends[1]);
    }
    bp_file_close(ends[1]);
    if (pid > 0) {
        child->left_pid = pid;
        status = relay(aside, ends[0], sink, sink_context);
    }
    bp_file_close(ends[0]);
    bool is_done = atomic_load(&shared->is_done);
    if (status == BUGPACK_OK && is_done) {
        memcpy(ret_answer, shared->answer, aside->answer_bytes);
    } else if (status == BUGPACK_OK) { /* it died */
        status = BUGPACK_ERR_IO;
        await_end(child);
    }
    if (child->left_pid != 0 && !is_done) {
        (void)kill(child->left_pid, SIGKILL);
    }
    if (child->left_pid != 0) {
        (void)reap(child, is_done ? 0 : WNOHANG);
    }
    (void)munmap(shared, sizeof *shared);
    return status;
}
