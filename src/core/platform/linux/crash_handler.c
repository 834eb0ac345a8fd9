/*
 * The handler is the process's, and stays simple: it claims the page, writes it, and passes on. It
 * takes no lock and calls only what is safe in a signal handler.
 */
#include "platform/crash_handler.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_mark.h"
#include "base/status.h"
#include "platform/linux/crash_collect.h"
#include "platform/linux/thread_reader.h"

/* Alternate stacks: a handler cannot run on a stack that has overflowed. */

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51 /* since Linux 5.14; not in older headers of x86 */
#endif

/* Beside what the kernel stores of the registers. A handler of the host's runs on it, too. */
static const size_t handler_bytes = (size_t)64 << 10;

static pthread_key_t stack_key;
static pthread_once_t stack_key_once = PTHREAD_ONCE_INIT;
static atomic_bool has_stack_key;

static size_t guard_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t stack_bytes(void) {
    size_t frame_bytes = getauxval(AT_MINSIGSTKSZ);
    size_t page = guard_bytes();
    return (handler_bytes + frame_bytes + page - 1) / page * page;
}

/* The thread ends. */
static void free_stack(void *stack) {
    const stack_t none = {.ss_flags = SS_DISABLE};
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == stack) {
        (void)sigaltstack(&none, NULL);
    }
    (void)munmap((char *)stack - guard_bytes(), guard_bytes() + stack_bytes());
}

static void make_key(void) {
    atomic_store(&has_stack_key, pthread_key_create(&stack_key, free_stack) == 0);
}

bugpack_status bp_crash_thread_init(bugpack_error *error) {
    stack_t now;
    if (sigaltstack(NULL, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) {
        return BUGPACK_OK; /* the host's own */
    }
    (void)pthread_once(&stack_key_once, make_key);
    char *mapped = mmap(NULL, guard_bytes() + stack_bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED || !atomic_load(&has_stack_key)) {
        return bp_fail_memory(error, "make an alternate stack");
    }
    stack_t stack = {.ss_sp = mapped + guard_bytes(), .ss_size = stack_bytes()};
    if (mprotect(mapped, guard_bytes(), PROT_NONE) != 0 ||
        pthread_setspecific(stack_key, stack.ss_sp) != 0 || sigaltstack(&stack, NULL) != 0) {
        int system_errno = errno;
        (void)pthread_setspecific(stack_key, NULL);
        (void)munmap(mapped, guard_bytes() + stack_bytes());
        return bp_fail_errno(error, system_errno, "cannot make an alternate stack");
    }
    return BUGPACK_OK;
}

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
enum { signal_count = sizeof fatal_signals / sizeof fatal_signals[0] };

/* The handlers before ours; written before ours is installed. */
static struct sigaction previous[signal_count];
/* The actions before ours, where another handler was over ours when a session ended. That one may
 * pass its signals on to ours, and be below ours again in a later session. */
static struct sigaction covered[signal_count];
static bool is_covered[signal_count];

/* The call of ours that passes a signal on in this thread. */
static _Thread_local struct {
    const void *context;
    const void *frame;
} passing;

/*
 * In memory that the kernel wipes in a child, which so has no page. It is mapped once, and never
 * freed: a handler of the host's may still call ours. The stacks of `place` are below it.
 */
typedef struct crash_owner {
    bp_guard_place place; /* first */
    bp_crash_page *_Atomic page;
    atomic_int pid;    /* a child that shares our memory has another one */
    atomic_int tid;    /* the thread that writes the page, or passed the signal on; 0: none */
    atomic_int number; /* the signal it handles; 0 until `claimed_ns` is set */
    _Atomic(uint64_t) claimed_ns; /* 0: just now */
    /* /proc/self/maps, open for a crash that finds no descriptor left. */
    atomic_bool holds_maps;
    int maps_fd;
    bp_fd_mark maps_mark;
} crash_owner;

static crash_owner *_Atomic owner;

/* A thread waits so long for another one that crashes: it is about to end the process. */
static const uint64_t wait_ns = 2 * BP_NS_PER_SEC;
/* A handler that has not returned for so long has jumped out of ours, and the process goes on. */
static const uint64_t stale_ns = 10 * BP_NS_PER_SEC;

static size_t index_of(int number) {
    size_t i = 0;
    while (i < signal_count - 1 && fatal_signals[i] != number) {
        i++;
    }
    return i;
}

static void use_default(int number) {
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(number, &action, NULL);
}

static void release(crash_owner *mine) {
    atomic_store(&mine->claimed_ns, 0);
    atomic_store(&mine->number, 0);
    atomic_store(&mine->tid, 0);
}

/* The page, where there is one and no other thread has it. */
static bp_crash_page *claim(crash_owner *mine, pid_t tid, int number) {
    uint64_t began_ns = bp_clock_monotonic_ns();
    uint64_t now_ns = began_ns;
    while (atomic_load(&mine->page) != NULL && now_ns - began_ns < wait_ns) {
        int holder = 0;
        bool is_free = atomic_compare_exchange_strong(&mine->tid, &holder, tid);
        uint64_t since_ns = atomic_load(&mine->claimed_ns);
        bool is_stale = since_ns != 0 && now_ns > since_ns && now_ns - since_ns > stale_ns;
        if (!is_free &&
            (holder == tid ||
             (is_stale && atomic_compare_exchange_strong(&mine->claimed_ns, &since_ns, now_ns)))) {
            is_free = atomic_compare_exchange_strong(&mine->tid, &holder, tid);
        }
        if (is_free) {
            atomic_store(&mine->number, number);
            atomic_store(&mine->claimed_ns, now_ns);
            bp_crash_page *page = atomic_load(&mine->page);
            if (page == NULL) { /* it was removed just now */
                release(mine);
            }
            return page;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        now_ns = bp_clock_monotonic_ns();
    }
    return NULL;
}

/* The arguments of one signal. */
typedef struct crash {
    bp_crash_page *page;
    int number;
    siginfo_t *info;
    ucontext_t *context;
} crash;

static void collect(void *context) {
    const crash *it = context;
    const struct sigaction *next = &previous[index_of(it->number)];
    bool is_passed_to_host = (next->sa_flags & SA_SIGINFO) != 0 ||
                             (next->sa_handler != SIG_DFL && next->sa_handler != SIG_IGN);
    const crash_owner *mine = atomic_load(&owner);
    bool has_maps = atomic_load(&mine->holds_maps) && /* and the host has not closed them */
                    bp_fd_is_ours(mine->maps_fd, mine->maps_mark);
    bp_crash_collect(it->page, it->info, it->context, has_maps ? mine->maps_fd : -1,
                     is_passed_to_host);
}

static void forget(void *context) {
    const crash *it = context;
    it->page->is_begun = 0;
    it->page->check = 0;
}

/* The process dies of its signal when the handler returns: the state that it then has is that of
 * the crash, also for a core dump. */
static void die(const crash *it) {
    use_default(it->number);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), it->number, it->info) != 0) {
        (void)syscall(SYS_tgkill, getpid(), gettid(), it->number);
    }
}

/*
 * Does what was there before. True when the process goes on. abort() ends it whatever a handler
 * does; one that has set the default action wants it to end.
 */
static bool pass_on(const crash *it, const struct sigaction *action) {
    bool is_plain = (action->sa_flags & SA_SIGINFO) == 0;
    bool was_sent = it->info->si_code <= 0;
    bool is_abort = it->number == SIGABRT && it->info->si_code == SI_TKILL;
    if (is_plain && action->sa_handler == SIG_IGN && was_sent) {
        return !is_abort;
    }
    if (is_plain && (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN)) {
        die(it); /* the kernel ignores no fault either */
        return false;
    }
    /* Calls the handler as the kernel would have. */
    sigset_t mask;
    (void)sigemptyset(&mask);
    memcpy(&mask, &it->context->uc_sigmask, _NSIG / 8); /* the kernel sets no more of it */
    (void)sigorset(&mask, &mask, &action->sa_mask);
    if ((action->sa_flags & SA_NODEFER) == 0) {
        (void)sigaddset(&mask, it->number);
    }
    if ((action->sa_flags & SA_RESETHAND) != 0) {
        use_default(it->number);
    }
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    if ((action->sa_flags & SA_SIGINFO) != 0) {
        action->sa_sigaction(it->number, it->info, it->context);
    } else {
        action->sa_handler(it->number);
    }
    struct sigaction now;
    return !is_abort && sigaction(it->number, NULL, &now) == 0 &&
           ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL);
}

static void handle(int number, siginfo_t *info, void *context) {
    int saved_errno = errno;
    const void *frame = __builtin_frame_address(0);
    crash_owner *mine = atomic_load(&owner);
    pid_t tid = gettid();
    bool is_ours = mine != NULL && atomic_load(&mine->pid) == getpid();
    if (is_ours && atomic_load(&mine->tid) == tid && bp_guard_is_running(&mine->place)) {
        if (info->si_code > 0) {
            bp_guard_escape();
            use_default(number);
        }
        return; /* what was sent meanwhile is too late: the process has begun to die */
    }
    crash it = {NULL, number, info, context};
    /* A handler that ours has called calls ours: the kernel makes a context for each call, and
     * begins the frame at the same distance from it. */
    if (passing.context == context && passing.frame != frame) {
        (void)pass_on(&it, &covered[index_of(number)]);
        return;
    }
    it.page = is_ours ? claim(mine, tid, number) : NULL;
    if (it.page != NULL) {
        bp_guard_run_apart(&mine->place, collect, &it);
    }
    passing.context = context;
    passing.frame = frame;
    errno = saved_errno;
    bool goes_on = pass_on(&it, &previous[index_of(number)]);
    saved_errno = errno;
    passing.context = NULL;
    if (it.page != NULL && goes_on) {
        bp_guard_run_apart(&mine->place, forget, &it);
    }
    if (it.page != NULL && (goes_on || number == SIGABRT)) {
        release(mine);
    }
    errno = saved_errno;
}

static bool is_handler_ours(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == handle;
}

static bugpack_status find_owner(crash_owner **ret_owner, bugpack_error *error) {
    crash_owner *mine = atomic_load(&owner);
    if (mine == NULL) {
        size_t bytes = BP_GUARD_STACKS_BYTES + sizeof *mine;
        char *mapped =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) {
            return bp_fail_errno(error, errno, "cannot install the crash handler");
        }
        if (madvise(mapped, bytes, MADV_WIPEONFORK) != 0) {
            int advise_errno = errno;
            (void)munmap(mapped, bytes);
            return bp_fail_errno(error, advise_errno, "cannot install the crash handler");
        }
        mine = (crash_owner *)(void *)(mapped + BP_GUARD_STACKS_BYTES);
        crash_owner *other = NULL;
        if (!atomic_compare_exchange_strong(&owner, &other, mine)) {
            (void)munmap(mapped, bytes);
            mine = other;
        }
    }
    *ret_owner = mine;
    return BUGPACK_OK;
}

bugpack_status bp_crash_handler_install(bp_crash_page *page, bugpack_error *error) {
    crash_owner *mine;
    bp_crash_page *other = NULL;
    bugpack_status status = find_owner(&mine, error);
    if (status == BUGPACK_OK) {
        status = bp_crash_thread_init(error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    if (!atomic_compare_exchange_strong(&mine->page, &other, page)) {
        return bp_fail(error, BUGPACK_ERR_BUSY, "another session has the crash handler");
    }
    atomic_store(&mine->pid, getpid());
    /* Best effort. It may still be held, of a crash that was under way when its session ended. */
    if (!atomic_load(&mine->holds_maps)) {
        mine->maps_fd = open(BP_CRASH_MAPS_PATH, O_RDONLY | O_CLOEXEC);
        mine->maps_mark = bp_fd_mark_of(mine->maps_fd);
        atomic_store(&mine->holds_maps, mine->maps_fd >= 0);
    }
    bp_crash_collect_prepare();
    /* All signals wait, so that the alternate stack has to hold no other handler, and a fault of
     * ours ends the process (force_sig_info_to_task in kernel/signal.c) except those that
     * bp_guard_run_apart lets through. */
    struct sigaction ours = {.sa_sigaction = handle,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    (void)sigfillset(&ours.sa_mask);
    for (size_t i = 0; i < signal_count; i++) {
        struct sigaction now;
        if (sigaction(fatal_signals[i], NULL, &now) == 0 && !is_handler_ours(&now)) {
            previous[i] = now;
            (void)sigaction(fatal_signals[i], &ours, NULL);
        }
    }
    return BUGPACK_OK;
}

/*
 * True if the host's handler has left ours by siglongjmp. It runs with its signal blocked, so a
 * thread that has not blocked it goes on elsewhere. A handler with SA_NODEFER does not show.
 */
static bool has_jumped_out(int tid, int number) {
    char text[4096];
    const bp_thread_reader reader = {
        .dir_fd = AT_FDCWD, .task = "/proc/self/task/", .text = text, .text_bytes = sizeof text};
    const struct sigaction *action = &previous[index_of(number)];
    bp_thread_reading thread;
    bp_thread_read(&reader, (uint64_t)tid, 1u << BP_GROUP_STATUS, &thread);
    bool is_elsewhere = number != 0 && (action->sa_flags & SA_NODEFER) == 0 && thread.has_signals &&
                        (thread.blocked_signals >> (number - 1) & 1) == 0;
    return is_elsewhere || thread.errnos[BP_GROUP_STATUS] == ESRCH;
}

bool bp_crash_handler_remove(const bp_crash_page *page) {
    crash_owner *mine = atomic_load(&owner);
    bp_crash_page *expected = (bp_crash_page *)(uintptr_t)page;
    if (mine == NULL || !atomic_compare_exchange_strong(&mine->page, &expected, NULL)) {
        return true;
    }
    for (size_t i = 0; i < signal_count; i++) {
        struct sigaction now;
        if (sigaction(fatal_signals[i], NULL, &now) != 0) {
            continue;
        }
        if (is_handler_ours(&now)) {
            (void)sigaction(fatal_signals[i], &previous[i], NULL);
            previous[i] = is_covered[i] ? covered[i] : previous[i];
        } else if (!is_covered[i]) {
            covered[i] = previous[i];
            is_covered[i] = true;
        }
    }
    int tid = atomic_load(&mine->tid);
    bool is_over = tid == 0 || tid == gettid() || has_jumped_out(tid, atomic_load(&mine->number));
    if (is_over && atomic_exchange(&mine->holds_maps, false)) {
        bp_fd_close_ours(mine->maps_fd, mine->maps_mark);
    }
    return is_over;
}

void bp_crash_handler_check(bp_crash_page *page) {
    crash_owner *mine = atomic_load(&owner);
    int tid = mine == NULL || atomic_load(&mine->page) != page ? 0 : atomic_load(&mine->tid);
    uint64_t since_ns = tid == 0 ? 0 : atomic_load(&mine->claimed_ns);
    if (since_ns != 0 && bp_clock_monotonic_ns() - since_ns > BP_NS_PER_SEC &&
        has_jumped_out(tid, atomic_load(&mine->number)) &&
        atomic_compare_exchange_strong(&mine->claimed_ns, &since_ns, 0)) {
        page->check = 0;
        page->is_begun = 0;
        (void)atomic_compare_exchange_strong(&mine->tid, &tid, 0);
    }
}
