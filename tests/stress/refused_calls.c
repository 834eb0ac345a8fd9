/*
 * Hosts in a sandbox: every system call that a session makes is refused in turn, with EPERM and
 * with ENOSYS, before the session is opened and after. Whatever fails, each call of the API returns
 * and the host lives. Which calls there are is found out by a filter that announces them
 * (seccomp_unotify(2)).
 *
 *     refused_calls BUGPACK [NUMBER]
 */
#include <bugpack/bugpack.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "support/check.h"
#include "support/temp_dir.h"

/* Far above the time limits of a report, also on a busy machine. */
static const uint64_t limit_ns = 120 * BP_NS_PER_SEC;

enum { call_max = 1024 };

static temp_dir dir;
static char rings_dir[300];
static const char *command;

/* Filters: one system call, or (call_max) all of them. Returns what seccomp(2) does. */
static int filter(unsigned number, unsigned flags, unsigned action) {
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, action)};
    struct sock_filter one[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof one / sizeof one[0], one};
    if (number == call_max) {
        program = (struct sock_fprog){1, all};
    }
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static bugpack *open_session(void) {
    bugpack *session = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "sandboxed";
    options.report_dir = dir.path;
    options.recorder_dir = rings_dir;
    options.sample_window_ms = 20;
    options.stacks = BUGPACK_STACKS_ALL;
    options.calibrator_path = command;
    bugpack_status status = bugpack_open(&options, &session, NULL);
    CHECK((status == BUGPACK_OK) == (session != NULL));
    return session;
}

/* A report that is said to be there is there. */
static void use_session(bugpack *session) {
    bugpack_channel *channel = NULL;
    struct stat info;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    (void)bugpack_crash_handler_install(session);
    bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "in a sandbox");
    if (bugpack_channel_open(session, "net", NULL, &channel, NULL) == BUGPACK_OK) {
        bugpack_traffic(channel, BUGPACK_SENT, 1, "word", "word", 4);
    }
    (void)bugpack_report(session, NULL, &result);
    if (result.status == BUGPACK_OK) {
        CHECK(stat(result.path, &info) != 0 || info.st_size > 1000);
    }
    (void)bugpack_disconnect(session, "net", "gone");
    bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "still in a sandbox");
    bugpack_close(session);
}

/* Lets every announced system call through. */
static atomic_bool *is_used;
static atomic_int listener = -1;

static void *announce(void *nothing) {
    struct seccomp_notif call;
    struct seccomp_notif_resp answer;
    while (atomic_load(&listener) < 0) {
        (void)sched_yield();
    }
    for (;;) {
        memset(&call, 0, sizeof call);
        if (ioctl(atomic_load(&listener), SECCOMP_IOCTL_NOTIF_RECV, &call) == 0) {
            if (call.data.nr >= 0 && call.data.nr < call_max) {
                atomic_store(&is_used[call.data.nr], true);
            }
            memset(&answer, 0, sizeof answer);
            answer.id = call.id;
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
            (void)ioctl(atomic_load(&listener), SECCOMP_IOCTL_NOTIF_SEND, &answer);
        }
    }
    return nothing;
}

static _Noreturn void find_calls(void) {
    pthread_t supervisor;
    CHECK(pthread_create(&supervisor, NULL, announce, NULL) == 0);
    int fd = filter(call_max, SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_USER_NOTIF);
    if (fd < 0) {
        _exit(77);
    }
    atomic_store(&listener, fd);
    bugpack *session = open_session();
    CHECK(session != NULL);
    use_session(session);
    _exit(0);
}

static _Noreturn void be_refused(unsigned number, int refusal, bool is_before) {
    bugpack *session = is_before ? NULL : open_session();
    CHECK(is_before || session != NULL);
    CHECK(filter(number, SECCOMP_FILTER_FLAG_TSYNC,
                 SECCOMP_RET_ERRNO | ((unsigned)refusal & SECCOMP_RET_DATA)) == 0);
    session = is_before ? open_session() : session;
    if (session != NULL) {
        use_session(session);
    }
    _exit(0);
}

/* The wait status; -1 where it did not end. */
static int wait_for_end(pid_t pid) {
    int status;
    uint64_t deadline_ns = bp_clock_monotonic_ns() + limit_ns;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (bp_clock_monotonic_ns() > deadline_ns) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return -1;
        }
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
    }
    return status;
}

/* Not ours to do without: a program cannot end without the first three, and glibc ends a process
 * without the others. */
static bool is_needed(unsigned number) {
    return number == SYS_exit || number == SYS_exit_group || number == SYS_rt_sigreturn ||
           number == SYS_futex || number == SYS_rseq;
}

static unsigned failure_count;

static void check_end(pid_t pid, const char *what) {
    int status = wait_for_end(pid);
    if (status != 0) {
        failure_count++;
        (void)printf("%s: %s\n", what,
                     status < 0            ? "it hangs"
                     : WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                           : "it failed");
        (void)fflush(stdout);
    }
}

enum { way_count = 4, at_once = 16 };

/* All ways and several calls at once: most of the time the hosts wait. */
static void refuse_all_ways(const unsigned *numbers, unsigned count) {
    static const int refusals[] = {EPERM, ENOSYS};
    pid_t pids[at_once * way_count];
    for (unsigned i = 0; i < count * way_count; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) {
            be_refused(numbers[i / way_count], refusals[i / 2 % 2], i % 2 == 0);
        }
    }
    for (unsigned i = 0; i < count * way_count; i++) {
        char what[80];
        (void)snprintf(what, sizeof what, "system call %u, errno %d, %s the session was opened",
                       numbers[i / way_count], refusals[i / 2 % 2],
                       i % 2 == 0 ? "before" : "after");
        check_end(pids[i], what);
    }
}

static void find_used(void) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        find_calls();
    }
    int status = wait_for_end(pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        temp_dir_remove(&dir);
        SKIP("this system announces no system calls");
    }
    CHECK(status == 0);
}

static void refuse_used(void) {
    unsigned numbers[call_max], count = 0;
    for (unsigned number = 0; number < call_max; number++) {
        if (atomic_load(&is_used[number]) && !is_needed(number)) {
            numbers[count++] = number;
        }
    }
    for (unsigned i = 0; i < count; i += at_once) {
        refuse_all_ways(&numbers[i], count - i < at_once ? count - i : at_once);
    }
    (void)printf("%u system calls, %u failures\n", count, failure_count);
    CHECK(count > 40);
}

int main(int argument_count, char **arguments) {
    CHECK(argument_count > 1 && temp_dir_make(&dir));
    command = arguments[1];
    (void)snprintf(rings_dir, sizeof rings_dir, "%s/rings", dir.path);
    is_used = mmap(NULL, call_max * sizeof *is_used, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(is_used != MAP_FAILED);
    if (argument_count > 2) {
        refuse_all_ways(&(unsigned){(unsigned)strtoul(arguments[2], NULL, 10)}, 1);
    } else {
        find_used();
        refuse_used();
    }
    temp_dir_remove(&dir);
    return failure_count > 0;
}
