#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

enum { look_ms = 50, end_look_ms = 2, piece_bytes = 16 * 1024 };

struct spawning {
    const bp_child_plan *plan;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t pid;
    int result;
};

static int spawn(void *context) {
    struct spawning *spawning = context;
    const bp_child_plan *plan = spawning->plan;
    /* Nothing is changed: posix_spawn(3) has no const of its own. */
    char *const *arguments = (char *const *)(uintptr_t)plan->arguments;
    spawning->result = (plan->path != NULL ? posix_spawn : posix_spawnp)(
        &spawning->pid, plan->path != NULL ? plan->path : arguments[0], &spawning->actions,
        &spawning->attributes, arguments, plan->environment);
    return 0;
}

/* The copies are above the numbers of the child: none overwrites another one, and each is made, as
 * a copy onto itself would be close-on-exec. */
static int place_fds(struct spawning *spawning, int copies[BP_CHILD_FD_COUNT]) {
    int result = 0;
    for (int i = 0; result == 0 && i < BP_CHILD_FD_COUNT; i++) {
        int fd = spawning->plan->fds[i];
        if (fd == BP_CHILD_NULL) {
            result =
                posix_spawn_file_actions_addopen(&spawning->actions, i, "/dev/null", O_RDWR, 0);
        } else if (fd != BP_CHILD_OURS) {
            copies[i] = fcntl(fd, F_DUPFD_CLOEXEC, BP_CHILD_FD_COUNT);
            result = copies[i] < 0
                         ? errno
                         : posix_spawn_file_actions_adddup2(&spawning->actions, copies[i], i);
        }
    }
    return result;
}

static void set_attributes(struct spawning *spawning) {
    sigset_t none, all;
    short group = spawning->plan->leads_group ? POSIX_SPAWN_SETPGROUP : 0;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_setflags(&spawning->attributes,
                                   (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
    (void)posix_spawnattr_setsigmask(&spawning->attributes, &none);
    (void)posix_spawnattr_setsigdefault(&spawning->attributes, &all);
}

int bp_child_start(const bp_child_plan *plan, bp_child *ret_child) {
    struct spawning spawning = {.plan = plan, .result = EAGAIN};
    int copies[BP_CHILD_FD_COUNT] = {-1, -1, -1, -1};
    int result = posix_spawn_file_actions_init(&spawning.actions);
    if (result != 0) {
        return result;
    }
    result = posix_spawnattr_init(&spawning.attributes);
    if (result == 0) {
        set_attributes(&spawning);
        result = place_fds(&spawning, copies);
        if (result == 0) {
            result = plan->starter != NULL ? plan->starter(spawn, &spawning) : spawn(&spawning);
        }
        (void)posix_spawnattr_destroy(&spawning.attributes);
    }
    (void)posix_spawn_file_actions_destroy(&spawning.actions);
    for (int i = 0; i < BP_CHILD_FD_COUNT; i++) {
        bp_file_close(copies[i]);
    }
    result = result == 0 ? spawning.result : result;
    if (result == 0) {
        *ret_child = (bp_child){.pid = spawning.pid, .leads_group = plan->leads_group};
    }
    return result;
}

static void reap(bp_child *child) {
    pid_t ended;
    do {
        ended = waitpid(child->pid, &child->wait_status, WNOHANG);
    } while (ended < 0 && errno == EINTR);
    child->pid = ended == 0 ? child->pid : 0;
}

static bugpack_status move(const bp_child_output *output, struct pollfd *waited,
                           uint64_t *moved_ns) {
    char piece[piece_bytes];
    ssize_t count = waited->revents != 0 ? read(output->fd, piece, sizeof piece) : -1;
    if (count > 0) {
        *moved_ns = bp_clock_monotonic_ns();
        return output->sink(output->context, piece, (size_t)count);
    }
    if (count == 0) {
        waited->fd = -1;
    }
    bool has_failed = waited->revents != 0 && count < 0 && errno != EINTR && errno != EAGAIN;
    return has_failed ? BUGPACK_ERR_IO : BUGPACK_OK;
}

bugpack_status bp_child_read(bp_child *child, const bp_child_output outputs[BP_CHILD_OUTPUT_COUNT],
                             const bp_child_limits *limits) {
    struct pollfd waited[BP_CHILD_OUTPUT_COUNT] = {{outputs[0].fd, POLLIN, 0},
                                                   {outputs[1].fd, POLLIN, 0}};
    uint64_t moved_ns = bp_clock_monotonic_ns();
    bugpack_status status = BUGPACK_OK;
    while (waited[0].fd >= 0 || (child != NULL && child->pid != 0)) {
        int ready = poll(waited, BP_CHILD_OUTPUT_COUNT, waited[0].fd >= 0 ? look_ms : end_look_ms);
        if (ready < 0 && errno != EINTR) {
            return BUGPACK_ERR_IO;
        }
        for (int i = 0; status == BUGPACK_OK && ready > 0 && i < BP_CHILD_OUTPUT_COUNT; i++) {
            status = move(&outputs[i], &waited[i], &moved_ns);
        }
        if (status != BUGPACK_OK) {
            return status;
        }
        if (waited[0].fd < 0 && child != NULL) {
            reap(child);
        }
        if (limits->is_cancelled != NULL && limits->is_cancelled(limits->observed)) {
            return BUGPACK_ERR_CANCELLED;
        }
        uint64_t now_ns = bp_clock_monotonic_ns();
        if ((limits->deadline_ns != 0 && now_ns >= limits->deadline_ns) ||
            (limits->stall_ns != 0 && now_ns - moved_ns >= limits->stall_ns)) {
            return BUGPACK_ERR_TIMEOUT;
        }
    }
    return BUGPACK_OK;
}

bool bp_child_await(bp_child *child, uint64_t timeout_ns) {
    struct timespec pause = {.tv_nsec = BP_NS_PER_MS / 10};
    uint64_t deadline_ns = bp_clock_monotonic_ns() + timeout_ns;
    for (;;) {
        if (child->pid != 0) {
            reap(child);
        }
        if (child->pid == 0 || bp_clock_monotonic_ns() >= deadline_ns) {
            return child->pid == 0;
        }
        (void)nanosleep(&pause, NULL);
        pause.tv_nsec *= pause.tv_nsec < 4 * (long)BP_NS_PER_MS ? 2 : 1;
    }
}

bool bp_child_kill(bp_child *child, int signal_number, uint64_t timeout_ns) {
    if (child->pid != 0) {
        (void)kill(child->leads_group ? -child->pid : child->pid, signal_number);
    }
    return bp_child_await(child, timeout_ns);
}
