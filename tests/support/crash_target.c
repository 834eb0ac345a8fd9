/*
 * A program without bugpack that crashes, or does not, as its argument says: crash_target MODE.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static int *volatile nowhere;
static sigjmp_buf place;
static volatile int depth;

NOINLINE static void crash_inner(void) {
    *nowhere = 1;
    depth++;
}

NOINLINE static void crash_middle(void) {
    crash_inner();
    depth++;
}

NOINLINE static void crash_outer(void) {
    crash_middle();
    depth++;
}

NOINLINE static int recurse(int count) {
    volatile char local[256];
    local[0] = (char)count;
    return count < 0 ? 0 : recurse(count + 1) + local[0];
}

NOINLINE static void abort_here(void) {
    abort();
}

/* As assert does where it is compiled in. */
NOINLINE static void fail_assertion(void) {
#ifdef __GLIBC__
    extern _Noreturn void __assert_fail(const char *, const char *, unsigned int, const char *);
    __assert_fail("rows == 7", "target.c", 1, "draw");
#else
    abort();
#endif
}

static void *crash_thread(void *unused) {
    (void)unused;
    (void)prctl(PR_SET_NAME, "decoder");
    crash_outer();
    return NULL;
}

/* Not before the first thread waits for this one. */
static void *crash_awaited(void *unused) {
    char path[64], call[32] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)getpid());
    for (int tries = 0; tries < 100000 && strtol(call, NULL, 10) != SYS_futex; tries++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t count = fd >= 0 ? read(fd, call, sizeof call - 1) : -1;
        call[count > 0 ? count : 0] = '\0';
        (void)close(fd);
    }
    return crash_thread(unused);
}

static void *crash_alone(void *first) {
    (void)pthread_join(*(pthread_t *)first, NULL);
    return crash_thread(NULL);
}

static void *do_nothing(void *unused) {
    return unused;
}

static void jump_out(int number) {
    (void)number;
    siglongjmp(place, 1);
}

/* As runtimes and crash reporters do that have nothing better to do with a fault. */
static void die_of(int number) {
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void count_signal(int number) {
    depth += number;
}

static void set_handler(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

/* A fault that is handled, many times: no crash. */
static void recover(void) {
    set_handler(SIGSEGV, jump_out, 0);
    for (depth = 0; depth < 100; depth++) {
        if (sigsetjmp(place, 1) == 0) {
            crash_outer();
        }
    }
    (void)signal(SIGSEGV, SIG_DFL);
}

static void start_threads(int count, void *(*run)(void *)) {
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, NULL) == 0) {
            (void)pthread_join(thread, NULL);
        }
    }
}

static void filter_getppid(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    (void)syscall(SYS_getppid);
}

/* A child that is a tracer, or traced, or crashes: all of it its own affair. */
static int run_child(void (*run)(void)) {
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        run();
        _exit(0);
    }
    while (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status)) {
        (void)ptrace(PTRACE_CONT, pid, NULL, NULL);
    }
    return status;
}

static void ask_to_be_traced(void) {
    (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    (void)raise(SIGUSR1);
}

static int clone_child(void *unused) {
    (void)unused;
    crash_outer();
    return 0;
}

/* A child whose end raises no SIGCHLD, which a tracer of threads is told of, too. */
static int run_cloned(void) {
    static _Alignas(16) char stack[65536];
    int status = 0;
    pid_t pid = clone(clone_child, stack + sizeof stack, 0, NULL);
    return waitpid(pid, &status, __WALL) == pid && WIFSIGNALED(status) ? 0 : 1;
}

static void *execute(void *program) {
    char mode[] = "main";
    char *const arguments[] = {program, mode, NULL};
    (void)execv(program, arguments);
    return NULL;
}

static void leave(const char *name) {
    (void)close(open(name, O_WRONLY | O_CREAT, 0600));
}

/* Signals and threads all the time, for someone who ends the tracer meanwhile. */
static void be_busy(void) {
    set_handler(SIGUSR1, count_signal, 0);
    leave("begun");
    while (access("enough", F_OK) != 0) {
        (void)raise(SIGUSR1);
        start_threads(1, do_nothing);
    }
    leave("finished");
}

static const struct {
    const char *mode;
    int signal;
} sent[] = {{"term", SIGTERM}, {"pipe", SIGPIPE}, {"xcpu", SIGXCPU}, {"kill", SIGKILL}};

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "main";
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        if (strcmp(mode, sent[i].mode) == 0) {
            (void)raise(sent[i].signal);
        }
    }
    if (strcmp(mode, "realtime") == 0) {
        (void)raise(SIGRTMIN + 3);
    }
    if (strcmp(mode, "main") == 0) {
        crash_outer();
    } else if (strcmp(mode, "alone") == 0) {
        static pthread_t first;
        pthread_t thread;
        first = pthread_self();
        (void)pthread_create(&thread, NULL, crash_alone, &first);
        pthread_exit(NULL);
    } else if (strcmp(mode, "thread") == 0) {
        start_threads(50, do_nothing);
        start_threads(1, crash_awaited);
    } else if (strcmp(mode, "overflow") == 0) {
        return recurse(0);
    } else if (strcmp(mode, "abort") == 0) {
        abort_here();
    } else if (strcmp(mode, "assert") == 0) {
        fail_assertion();
    } else if (strcmp(mode, "recovers") == 0) {
        recover();
        return 0;
    } else if (strcmp(mode, "busy") == 0) {
        be_busy();
        return 0;
    } else if (strcmp(mode, "fails") == 0) {
        recover();
        return 3;
    } else if (strcmp(mode, "later") == 0) {
        recover();
        abort_here();
    } else if (strcmp(mode, "handler") == 0) {
        set_handler(SIGSEGV, die_of, SA_NODEFER);
        crash_outer();
    } else if (strcmp(mode, "reset") == 0) {
        set_handler(SIGSEGV, die_of, (int)SA_RESETHAND);
        crash_outer();
    } else if (strcmp(mode, "ignored") == 0) {
        (void)signal(SIGSEGV, SIG_IGN);
        (void)signal(SIGTERM, SIG_IGN);
        (void)raise(SIGTERM);
        crash_outer();
    } else if (strcmp(mode, "filter") == 0) {
        filter_getppid();
    } else if (strcmp(mode, "exec") == 0) {
        pthread_t thread;
        (void)pthread_create(&thread, NULL, execute, arguments[0]);
        (void)pause();
    } else if (strcmp(mode, "child") == 0) {
        return WIFSIGNALED(run_child(crash_outer)) ? 0 : 1;
    } else if (strcmp(mode, "traces") == 0) {
        return run_child(ask_to_be_traced) == 0 ? 0 : 1;
    } else if (strcmp(mode, "cloned") == 0) {
        return run_cloned();
    } else if (strcmp(mode, "stops") == 0) {
        (void)puts("stopping");
        (void)fflush(stdout);
        (void)raise(SIGSTOP);
        (void)puts("continued");
        return 0;
    }
    return 4;
}
