/*
 * A host that crashes as its argument says, with a session of that name: crash_host MODE DIRECTORY.
 * Exits with 3 when something is not as it should be before that.
 */
#include <bugpack/bugpack.h>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "platform/crash_page.h"

#define NOINLINE __attribute__((noinline))
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                  \
            _exit(3);                                                                              \
        }                                                                                          \
    } while (0)

static bugpack_session *session;
static const char *mode = "";
static const char *directory;
static volatile int zero;
static int *volatile nowhere;

static int provide_session(bugpack_writer *writer, void *context) {
    (void)context;
    return bugpack_printf(writer, "{\"user\": \"ada\", \"password\": \"hunter2secret\"}") ==
                   BUGPACK_OK
               ? 0
               : -1;
}

static void open_session(void) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = mode;
    options.report_dir = options.recorder.dir = directory;
    options.create_report_dir = true;
    options.recorder.traffic_budget_bytes = BUGPACK_OFF;
    options.recorder.log_ring_bytes = 4096;
    if (strcmp(mode, "kept-killed") == 0) {
        options.recorder.crash_refresh_interval_ms = 1000;
        options.redaction.mode = BUGPACK_REDACT_AT_CALL;
    } else if (strcmp(mode, "kept-none") == 0) {
        options.recorder.crash_refresh_interval_ms = BUGPACK_OFF;
    }
    MUST(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    if (strncmp(mode, "kept", 4) == 0) {
        MUST(bugpack_set_tag(session, "branch", "main", NULL) == BUGPACK_OK);
        MUST(bugpack_set_tag(session, "api_key", "hunter2secret", NULL) == BUGPACK_OK);
        MUST(bugpack_provide(session, "session.json", BUGPACK_PROVIDE_JSON, provide_session, NULL,
                             NULL) == BUGPACK_OK);
    }
    bugpack_log(session, BUGPACK_LEVEL_INFO, "host", "about to crash: %s", mode);
}

static void install(void) {
    MUST(bugpack_crash_handler_install(session, NULL) == BUGPACK_OK);
    MUST(bugpack_crash_handler_install(session, NULL) == BUGPACK_OK);
}

/* What a backtrace is to show. */
__attribute__((always_inline)) static inline void crash_inlined(int depth) {
    *nowhere = depth;
}

NOINLINE static void crash_inner(int depth) {
    crash_inlined(depth);
}

NOINLINE static void crash_middle(int depth) {
    crash_inner(depth + 1);
    zero++;
}

NOINLINE static void crash_outer(void) {
    crash_middle(zero);
    zero++;
}

static void *crash_thread(void *barrier) {
    (void)prctl(PR_SET_NAME, "decoder");
    if (barrier != NULL) {
        (void)pthread_barrier_wait(barrier);
    }
    crash_outer();
    return NULL;
}

/* Threads beside it, which a report has, too: one that waits and one that runs. */
static int silent[2];

NOINLINE static void await_byte(void) {
    char byte;
    MUST(read(silent[0], &byte, 1) == 1);
    zero++;
}

static void *wait_for_ever(void *tid) {
    (void)prctl(PR_SET_NAME, "reader");
    atomic_store((atomic_int *)tid, gettid());
    await_byte();
    return NULL;
}

static void *run_for_ever(void *tid) {
    (void)prctl(PR_SET_NAME, "spinner");
    atomic_store((atomic_int *)tid, gettid());
    for (;;) {
        zero = 0;
    }
    return NULL;
}

/* Until the kernel has it in read(2). */
static void await_reader(int tid) {
    char path[64], text[256], wanted[16];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    (void)snprintf(wanted, sizeof wanted, "%d 0x", (int)SYS_read);
    do {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t count = read(fd, text, sizeof text - 1);
        (void)close(fd);
        text[count > 0 ? count : 0] = '\0';
    } while (strncmp(text, wanted, strlen(wanted)) != 0);
}

static void crash_beside(void) {
    static atomic_int tids[2];
    pthread_t threads[2];
    MUST(pipe(silent) == 0);
    MUST(pthread_create(&threads[0], NULL, wait_for_ever, &tids[0]) == 0);
    MUST(pthread_create(&threads[1], NULL, run_for_ever, &tids[1]) == 0);
    while (atomic_load(&tids[0]) == 0 || atomic_load(&tids[1]) == 0) {}
    await_reader(atomic_load(&tids[0]));
    crash_outer();
}

NOINLINE static int recurse(int depth) {
    volatile char large[4000];
    large[depth % 4000] = (char)depth;
    return depth == -1 ? 0 : recurse(depth + 1) + large[depth % 4000];
}

static void *overflow_thread(void *with_stack) {
    MUST(with_stack == NULL || bugpack_crash_thread_init(NULL) == BUGPACK_OK);
    return (void *)(intptr_t)recurse(0);
}

static void run_thread(void *(*run)(void *), void *argument) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, run, argument) == 0);
    (void)pthread_join(thread, NULL);
}

static void crash_bus(void) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/empty", directory);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    volatile char *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    (void)unlink(path);
    zero = map[0];
}

static void crash_sys(void) {
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        (void)raise(SIGSYS);
    }
    (void)getpgid(0);
}

NOINLINE static void call_nowhere(void) {
    void (*volatile function)(void) = NULL;
    function();
    zero++;
}

/* As assert does where it is compiled in. */
static void fail_assertion(void) {
#ifdef __GLIBC__
    extern _Noreturn void __assert_fail(const char *, const char *, unsigned int, const char *);
    __assert_fail("rows == 7", "host.c", 1, "draw");
#else
    abort();
#endif
}

static void crash_plainly(void) {
    if (strcmp(mode, "bus") == 0) {
        crash_bus();
    } else if (strcmp(mode, "sys") == 0) {
        crash_sys();
    } else if (strcmp(mode, "abort") == 0) {
        abort();
    } else if (strcmp(mode, "assert") == 0) {
        fail_assertion();
    } else if (strcmp(mode, "null-call") == 0) {
        call_nowhere();
    } else if (strcmp(mode, "sent") == 0) {
        (void)kill(getpid(), SIGSEGV);
    }
#if defined(__x86_64__)
    if (strcmp(mode, "fpe") == 0) {
        zero = 100 / zero;
    } else if (strcmp(mode, "ill") == 0) {
        __asm__ volatile("ud2");
    } else if (strcmp(mode, "trap") == 0) {
        __asm__ volatile("int3");
    }
#else
    const int number = strcmp(mode, "fpe") == 0   ? SIGFPE
                       : strcmp(mode, "ill") == 0 ? SIGILL
                                                  : SIGTRAP;
    (void)raise(number);
#endif
}

/* Handlers of the host's, which were there before. */
static char *page;
static sigjmp_buf back;

static void repair(int number) {
    (void)number;
    (void)mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void jump(int number) {
    siglongjmp(back, number);
}

static void leave(int number) {
    _exit(number == SIGSEGV ? 7 : 3);
}

static void give_up(int number) {
    (void)signal(number, SIG_DFL);
}

static void go_back(int number) {
    (void)number;
}

static void set_handler(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    (void)sigemptyset(&action.sa_mask);
    MUST(sigaction(number, &action, NULL) == 0);
}

static int descriptor_count;

static int count_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; count += fcntl(fd++, F_GETFD) >= 0) {}
    return count;
}

/* The handlers and the descriptors are as before, too. */
static void close_session(void) {
    struct sigaction action;
    bugpack_close(session);
    MUST(count_descriptors() == descriptor_count);
    MUST(sigaction(SIGBUS, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
}

static void resume(void) {
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    set_handler(SIGSEGV, strcmp(mode, "jump") == 0 ? jump : repair);
    install();
    if (sigsetjmp(back, 1) == 0) {
        page[0] = 1;
    }
    if (strcmp(mode, "resumed-killed") == 0) {
        (void)raise(SIGKILL);
    }
    close_session();
    exit(0);
}

static void fork_child(void) {
    install();
    pid_t child = fork();
    if (child == 0) {
        crash_outer();
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    close_session();
    exit(0);
}

static void crash_two(void) {
    pthread_barrier_t barrier;
    pthread_t threads[2];
    MUST(pthread_barrier_init(&barrier, NULL, 2) == 0);
    for (int i = 0; i < 2; i++) {
        MUST(pthread_create(&threads[i], NULL, crash_thread, &barrier) == 0);
    }
    (void)pthread_join(threads[0], NULL);
}

static int crash_provider(bugpack_writer *writer, void *context) {
    (void)writer;
    (void)context;
    crash_outer();
    return 0;
}

static void crash_inside(void) {
    MUST(bugpack_provide(session, "state.txt", BUGPACK_PROVIDE_TEXT, crash_provider, NULL, NULL) ==
         BUGPACK_OK);
    (void)bugpack_report(session, NULL, NULL, NULL);
}

/* Whether the file is there and has the text: what is stored first may have the tags alone. */
static bool holds(const char *path, const char *text) {
    static char bytes[1 << 16];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0) {
        (void)close(fd);
    }
    return count >= 0 && memmem(bytes, (size_t)count, text, strlen(text)) != NULL;
}

/* Until the worker has kept what providers wrote; then another program truncates the page. */
static void await_file(const char *name, const char *text, bool truncates) {
    static bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
    char path[5000];
    MUST(bugpack_recorder_locate(session, &location, NULL) == BUGPACK_OK);
    (void)snprintf(path, sizeof path, "%s/%s", location.path, name);
    while (!holds(path, text)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    MUST(!truncates || truncate(path, 0) == 0);
}

/* Without a crash handler. */
static void kill_when_kept(void) {
    await_file("stored-entries", "session.json", false);
    (void)raise(SIGKILL);
}

/* The page of the session, as its file has it. */
static volatile bp_crash_page *map_page(void) {
    static bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
    char path[5000];
    MUST(bugpack_recorder_locate(session, &location, NULL) == BUGPACK_OK);
    (void)snprintf(path, sizeof path, "%s/%s", location.path, BP_CRASH_PAGE_NAME);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *map = mmap(NULL, sizeof(bp_crash_page), PROT_READ, MAP_SHARED, fd, 0);
    MUST(map != MAP_FAILED);
    (void)close(fd);
    return map;
}

/* Ends the process while another thread's crash is being written, or soon after. */
static void *kill_writer(void *page_of_session) {
    const volatile bp_crash_page *crash = page_of_session;
    while (crash->is_begun == 0) {}
    (void)kill(getpid(), SIGKILL);
    return NULL;
}

static void crash_and_kill(void) {
    pthread_t thread;
    install();
    for (int i = 0; i < 4000; i++) { /* which take it several milliseconds to list */
        char *two = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        (void)mprotect(two, 4096, PROT_NONE);
    }
    MUST(pthread_create(&thread, NULL, kill_writer, (void *)(uintptr_t)map_page()) == 0);
    crash_outer();
}

static int crash_child(void *argument) {
    (void)argument;
    crash_outer();
    return 0;
}

/* A child that has this process's memory dies, and this one does not: the page stays free. */
static void crash_in_shared_memory(void) {
    static _Alignas(16) char stack[1 << 18];
    static const int flags[] = {CLONE_VM | CLONE_VFORK | SIGCHLD, CLONE_VM | SIGCHLD};
    install();
    const volatile bp_crash_page *crash = map_page();
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        int status;
        pid_t child = clone(crash_child, stack + sizeof stack, flags[i], NULL);
        MUST(child > 0 && waitpid(child, &status, 0) == child);
        MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        MUST(crash->is_begun == 0 && crash->check == 0);
    }
    if (strcmp(mode, "shared-killed") == 0) {
        (void)raise(SIGKILL);
    }
    abort();
}

static void *abort_thread(void *argument) {
    (void)prctl(PR_SET_NAME, "decoder");
    abort();
    return argument;
}

/* A handler of the host's jumps out of ours, and the process goes on to another end. */
static void jump_on(void) {
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    set_handler(SIGSEGV, jump);
    install();
    const volatile bp_crash_page *crash = map_page();
    if (sigsetjmp(back, 1) == 0) {
        page[0] = 1;
    }
    while (strcmp(mode, "jump-abort") != 0 && (crash->is_begun != 0 || crash->check != 0)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (strcmp(mode, "jump-killed") == 0) {
        (void)raise(SIGKILL);
    } else if (strcmp(mode, "jump-abort") == 0) {
        abort();
    }
    run_thread(abort_thread, NULL);
}

/* As small as some hosts have it. */
static void use_small_stack(void) {
    static _Alignas(16) char memory[8192];
    MUST(sigaltstack(&(stack_t){.ss_sp = memory, .ss_size = sizeof memory}, NULL) == 0);
}

static void refuse_others(void) {
    bugpack_session *first = session;
    install();
    open_session();
    MUST(bugpack_crash_handler_install(session, NULL) == BUGPACK_ERR_BUSY);
    bugpack_close(first);
    install();
    close_session();
    MUST(bugpack_crash_handler_install(session, NULL) == BUGPACK_ERR_CLOSED);
    MUST(bugpack_crash_handler_install(NULL, NULL) == BUGPACK_ERR_INVALID);
    exit(0);
}

/* No thread of this process can open anything any more. */
static void use_up_descriptors(void) {
    install();
    MUST(setrlimit(RLIMIT_NOFILE, &(struct rlimit){128, 128}) == 0);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {}
}

static const struct {
    const char *name;
    void (*before)(void); /* the installation */
    int number;           /* whose handler was there before */
    void (*handler)(int);
} rows[] = {{"chained-exit", NULL, SIGSEGV, leave},
            {"chained-default", NULL, SIGSEGV, give_up},
            {"abort-handler", NULL, SIGABRT, go_back},
            {"abort-ignored", NULL, SIGABRT, SIG_IGN},
            {"small-stack", use_small_stack, 0, NULL},
            {"no-descriptors", use_up_descriptors, 0, NULL},
            {"resumed", resume, 0, NULL},
            {"resumed-killed", resume, 0, NULL},
            {"jump", resume, 0, NULL},
            {"jump-abort", jump_on, 0, NULL},
            {"jump-thread", jump_on, 0, NULL},
            {"jump-killed", jump_on, 0, NULL},
            {"shared", crash_in_shared_memory, 0, NULL},
            {"shared-killed", crash_in_shared_memory, 0, NULL},
            {"fork", fork_child, 0, NULL},
            {"others", refuse_others, 0, NULL},
            {"midst", crash_and_kill, 0, NULL},
            {"kept-killed", kill_when_kept, 0, NULL},
            {"without", crash_outer, 0, NULL}};

static void run(void) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(mode, rows[i].name) == 0) {
            if (rows[i].handler != NULL) {
                set_handler(rows[i].number, rows[i].handler);
            }
            if (rows[i].before != NULL) {
                rows[i].before();
            }
        }
    }
    install();
    crash_plainly();
    if (strncmp(mode, "abort-", 6) == 0) {
        abort();
    } else if (strcmp(mode, "thread") == 0) {
        run_thread(crash_thread, NULL);
    } else if (strcmp(mode, "beside") == 0) {
        crash_beside();
    } else if (strcmp(mode, "two") == 0) {
        crash_two();
    } else if (strcmp(mode, "overflow-main") == 0) {
        exit(recurse(0));
    } else if (strncmp(mode, "overflow", 8) == 0) {
        run_thread(overflow_thread, strcmp(mode, "overflow-plain") == 0 ? NULL : &session);
    } else if (strcmp(mode, "inside") == 0) {
        crash_inside();
    } else if (strcmp(mode, "killed") == 0) {
        (void)raise(SIGKILL);
    } else if (strncmp(mode, "kept", 4) == 0) {
        await_file("stored-entries", "process.json", false);
    } else if (strcmp(mode, "truncated") == 0) {
        await_file("crash", "", true);
    }
    crash_outer();
}

/* Before main, as a static constructor of C++. */
__attribute__((constructor)) static void construct(int argument_count, char **arguments) {
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    MUST(argument_count == 3);
    mode = arguments[1];
    directory = arguments[2];
    descriptor_count = count_descriptors();
    if (strcmp(mode, "early") == 0) {
        crash_outer();
    } else if (strcmp(mode, "constructor") == 0) {
        open_session();
        install();
        crash_outer();
    }
}

int main(void) {
    open_session();
    run();
    return 3;
}
