#include "run/aside.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "run/descriptor.h"

enum { standard_count = 3, most_fds = 1 << 16 };

static const uint64_t death_ns = 50 * BP_NS_PER_MS;

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

bugpack_status bp_run_aside(const bp_aside *aside, bp_sink *sink, void *sink_context,
                            void *ret_answer, bp_child *child) {
    int ends[2] = {-1, -1};
    bugpack_status status = BUGPACK_ERR_UNSUPPORTED;
    assert(aside->answer_bytes <= BP_ASIDE_ANSWER_MAX_BYTES);
    if (!bp_child_await(child, 0)) {
        return BUGPACK_ERR_BUSY;
    }
    *child = (bp_child){.pid = 0};
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return BUGPACK_ERR_UNSUPPORTED;
    }
    pid_t pid = -1;
    if (bp_descriptor_pipe(ends, NULL) == BUGPACK_OK) {
        pid = fork();
    }
    if (pid == 0) {
        do_work(aside, shared, ends[1]);
    }
    bp_file_close(ends[1]);
    if (pid > 0) {
        const bp_child_output outputs[] = {{ends[0], sink, sink_context}, {.fd = -1}};
        const bp_child_limits limits = {.stall_ns = aside->stall_ms * BP_NS_PER_MS,
                                        .is_cancelled = aside->is_cancelled,
                                        .observed = aside->observed};
        child->pid = pid;
        status = bp_child_read(NULL, outputs, &limits);
    }
    bp_file_close(ends[0]);
    bool is_done = atomic_load(&shared->is_done);
    if (status == BUGPACK_OK && is_done) {
        memcpy(ret_answer, shared->answer, aside->answer_bytes);
    } else if (status == BUGPACK_OK) { /* it died */
        status = BUGPACK_ERR_IO;
        (void)bp_child_await(child, death_ns); /* closing another file may keep it */
    }
    if (is_done) {
        (void)bp_child_await(child, BP_NS_PER_SEC);
    } else {
        (void)bp_child_kill(child, SIGKILL, 0);
    }
    (void)munmap(shared, sizeof *shared);
    return status;
}

bool bp_run_stalls(void (*work)(const void *context, void *no_answer, int out_fd),
                   const void *context) {
    bp_child child = {.pid = 0};
    char no_answer;
    const bp_aside aside = {.work = work, .context = context, .stall_ms = BP_RUN_STALL_MS};
    return bp_run_aside(&aside, NULL, NULL, &no_answer, &child) == BUGPACK_ERR_TIMEOUT;
}
