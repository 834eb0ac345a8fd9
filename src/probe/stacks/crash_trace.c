#include "stacks/crash_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/child_end.h"
#include "platform/linux/crash_collect.h"
#include "platform/linux/files.h"
#include "platform/linux/thread_reader.h"
#include "platform/thread.h"
#include "process/remote_memory.h"
#include "stacks/page_files.h"
#include "stacks/thread_stop.h"

enum { path_bytes = 64, files_stall_ms = 5000 };

/* Written by the thread that traces, which hands it over by each of the semaphores. */
static struct trace {
    pid_t pid,
        tid;       /* `tid`: the thread that has stopped, which has memory if the first one ended */
    int status_fd; /* /proc/<pid>/status */
    bp_crash_page *page;
    bp_stacks python;
    bp_aside_runner *run_aside;
    bp_child finder; /* of the symbols */
    sem_t has_begun, has_ended;
    bool has_threads; /* beside the first one */
    bool is_refused;  /* the page is of a call that a filter refused, as to one thread of several */
    bool is_running;
    int seize_errno;
} trace = {.status_fd = -1};

static bool copy_memory(void *context, void *to, uint64_t from, size_t byte_count) {
    const struct trace *self = context;
    return bp_remote_read_one(self->tid, from, to, byte_count) == 0;
}

/* A bp_memory_reader. */
static bool read_memory(void *context, uint64_t address, void *out, size_t bytes) {
    return copy_memory(context, out, address, bytes);
}

/* It is listed until the tracer, which is busy with the crash, has reaped it. */
static bool has_thread_ended(void *context, pid_t tid) {
    siginfo_t info = {.si_pid = 0};
    (void)context;
    return waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) ==
               0 &&
           info.si_pid == tid && bp_child_has_ended(&info);
}

/* 0 and no register where they cannot be read, as of a program of 32 bits. */
static uint64_t read_registers(pid_t tid, bp_crash_page *page) {
    bp_thread_copy copy;
    page->arch = BP_CRASH_ARCH_OTHER;
    page->register_count = 0;
    if (bp_thread_stop_read_registers(tid, &copy) != 0) {
        return 0;
    }
    bp_thread_copy_to_page(&copy, page);
    return copy.stack_pointer;
}

static void read_name(pid_t tid, char name[16]) {
    ssize_t count = bp_proc_read_at(AT_FDCWD, name, 16, "/proc/%d/comm", (int)tid);
    memset(name + (count > 0 ? count - 1 : 0), 0, (size_t)(count > 0 ? 17 - count : 16));
}

/* The `work` of a bp_aside: the process stays stopped until it has an answer, and a file may be on
 * a server that has none. */
static void find_symbols(const void *context, void *answer, int out_fd) {
    (void)out_fd;
    bp_page_find_symbols(context, answer);
}

static void copy_crash(struct trace *self, pid_t tid, const siginfo_t *info) {
    bp_crash_page *page = self->page;
    char maps[path_bytes], threads[path_bytes];
    bp_page_symbols symbols = {.abort_message = 0};
    bugpack_status status = BUGPACK_OK;
    (void)snprintf(maps, sizeof maps, "/proc/%d/maps", (int)tid);
    (void)snprintf(threads, sizeof threads, "/proc/%d/task", (int)self->pid);
    const bp_crash_source source = {maps, threads, -1, copy_memory, has_thread_ended, self};
    self->tid = tid;
    page->is_begun = 1;
    page->pid = self->pid;
    page->tid = tid;
    page->at = bp_clock_now();
    bp_crash_collect_signal(page, info);
    read_name(tid, page->thread_name);
    bp_crash_collect_memory(page, &source, read_registers(tid, page));
    const bp_aside aside = {.work = find_symbols,
                            .context = page,
                            .answer_bytes = sizeof symbols,
                            .stall_ms = files_stall_ms};
    bool is_of_python = memmem(page->maps, page->maps_bytes, "python3", 7) != NULL;
    if (is_of_python || page->signal == SIGABRT) {
        status = self->run_aside(&aside, NULL, NULL, &symbols, &self->finder);
    }
    bp_crash_collect_abort_message(page, &source, symbols.abort_message);
    bp_stacks_release(&self->python);
    bp_page_python(page, &symbols, read_memory, self, &self->python);
    if (status != BUGPACK_OK && is_of_python) {
        (void)snprintf(self->python.python_reason, sizeof self->python.python_reason,
                       "its files could not be read%s",
                       status == BUGPACK_ERR_TIMEOUT ? " in time" : "");
    }
}

/* The system call that a thread was in as it began to end, and where; false for none. */
static bool read_call(const struct trace *self, pid_t tid, bp_thread_syscall *call) {
    char threads_path[path_bytes], text[512];
    const bp_thread_reader reader = {
        .dir_fd = AT_FDCWD, .task = threads_path, .text = text, .text_bytes = sizeof text};
    bp_thread_reading thread;
    (void)snprintf(threads_path, sizeof threads_path, "/proc/%d/task/", (int)self->pid);
    bp_thread_read(&reader, (uint64_t)tid, 1u << BP_GROUP_SYSCALL, &thread);
    *call = thread.syscall;
    return call->place == BP_THREAD_IN_CALL;
}

/*
 * What a thread ends by: its process has taken a signal, or a filter has refused a call of it, by a
 * SIGSYS for which no stop comes (SA_IMMUTABLE, kernel/signal.c). The registers are still as at the
 * call, whose number the kernel puts back where a result would be (syscall_rollback); threads that
 * only end with their process have another one there.
 */
static void look_at_exit(struct trace *self, pid_t tid) {
    bp_crash_page *page = self->page;
    enum { seccomp_code = 1 }; /* SYS_SECCOMP of asm-generic/siginfo.h */
    bp_thread_syscall call;
    unsigned long code = 0;
    bool is_read = ptrace(PTRACE_GETEVENTMSG, tid, NULL, &code) == 0;
    int number = (int)(code & 0x7f);
    if (page->is_begun != 0 && page->tid == tid && number != page->signal) {
        page->is_begun = 0; /* it has survived */
    }
    if (!is_read || number != SIGSYS || page->is_begun != 0 || !read_call(self, tid, &call)) {
        return;
    }
    (void)read_registers(tid, page);
    bool has_result = page->arch == BP_CRASH_ARCH_X86_64; /* its first register */
    if (has_result ? page->registers[0] == call.number : !self->has_threads) {
        const siginfo_t info = {.si_signo = SIGSYS,
                                .si_code = seccomp_code,
                                .si_call_addr = (void *)(uintptr_t)call.program_counter,
                                .si_syscall = (int)call.number};
        copy_crash(self, tid, &info);
        self->is_refused = true;
    }
}

/* True if /proc/<pid>/status has the signal in this set, such as "SigCgt:". */
static bool is_in_set(const char *status, const char *set, int number) {
    const char *at = strstr(status, set);
    return at != NULL && (strtoull(at + strlen(set), NULL, 16) >> (number - 1) & 1) != 0;
}

/* True if the signal that a thread has stopped for will end the process. The kernel sets the
 * default action before it raises a fault that is blocked or ignored. */
static bool is_fatal(const struct trace *self, int number) {
    char status[8192];
    if (number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH ||
        number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU) {
        return false;
    }
    ssize_t count = pread(self->status_fd, status, sizeof status - 1, 0);
    status[count > 0 ? count : 0] = '\0';
    return count > 0 && !is_in_set(status, "\nSigIgn:", number) &&
           !is_in_set(status, "\nSigCgt:", number);
}

/* clone(2) makes children with any signal at their end; with all but SIGCHLD they are traced. */
static bool is_thread(const struct trace *self, pid_t tid) {
    char path[path_bytes];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d", (int)self->pid, (int)tid);
    return access(path, F_OK) == 0;
}

/* `status`: that of a stop, as waitid has it. */
static void pass_on(struct trace *self, pid_t tid, int status) {
    int number = status & 0x7f;
    int event = status >> 8;
    bool is_own_signal = event == 0;
    siginfo_t info;
    self->has_threads = self->has_threads || tid != self->pid;
    if (event == PTRACE_EVENT_EXIT) {
        look_at_exit(self, tid);
    } else if (self->page->is_begun != 0 && self->page->tid == tid) {
        self->page->is_begun = 0; /* it has survived */
    }
    if (event == PTRACE_EVENT_STOP && number != SIGTRAP) {
        (void)ptrace(PTRACE_LISTEN, tid, NULL, NULL); /* with its process, until SIGCONT */
        return;
    }
    if (event == PTRACE_EVENT_STOP && !is_thread(self, tid)) {
        (void)ptrace(PTRACE_DETACH, tid, NULL, NULL);
        return;
    }
    /* If two threads crash at once, the first one ends the process. */
    bool is_first = self->page->is_begun == 0 || self->is_refused;
    if (is_own_signal && is_first && is_fatal(self, number) &&
        ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) == 0) { /* else it was killed meanwhile */
        copy_crash(self, tid, &info);
        self->is_refused = false;
    }
    (void)ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)(is_own_signal ? number : 0));
}

/* The end of the process is left to its parent, and passed on by the kernel when this thread ends;
 * a thread of it is for the tracer to reap. */
static void *run(void *context) {
    struct trace *self = context;
    bp_thread_set_name("bugpack-trace");
    long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT;
    self->seize_errno = ptrace(PTRACE_SEIZE, self->pid, NULL, (void *)options) == 0 ? 0 : errno;
    bool is_traced = self->seize_errno == 0;
    (void)sem_post(&self->has_begun);
    while (is_traced) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL | __WNOTHREAD) != 0) {
            is_traced = errno == EINTR; /* ECHILD: it has ended */
            continue;
        }
        bool has_ended = bp_child_has_ended(&info);
        if (has_ended && info.si_pid == self->pid) {
            break;
        }
        /* Only that: a process that had stopped may have ended meanwhile, and is not ours to reap.
         */
        pid_t tid = info.si_pid;
        int kind = has_ended ? WEXITED : WSTOPPED;
        if (waitid(P_PID, (id_t)tid, &info, kind | WNOHANG | __WALL | __WNOTHREAD) == 0 &&
            info.si_pid == tid && !has_ended) {
            pass_on(self, tid, info.si_status);
        }
    }
    (void)sem_post(&self->has_ended);
    return NULL;
}

static bool has_privileges(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
           ((info.st_mode & (S_ISUID | S_ISGID)) != 0 ||
            getxattr(path, "security.capability", NULL, 0) > 0);
}

static bugpack_status fail_seize(int seize_errno, bugpack_error *error) {
    if (seize_errno != EPERM && seize_errno != EACCES) {
        return bp_fail_errno(error, seize_errno, "cannot trace the command");
    }
    return bp_fail(
        error, BUGPACK_ERR_DENIED,
        "the command may not be traced: another program traces it, kernel.yama.ptrace_scope "
        "is over 1, or the container forbids it");
}

bugpack_status bp_crash_trace_start(pid_t pid, const char *program, const char *file,
                                    bp_aside_runner *run_aside, bugpack_error *error) {
    char path[path_bytes];
    if (geteuid() != 0 && has_privileges(file)) {
        return bp_fail(error, BUGPACK_ERR_DENIED,
                       "'%s' has privileges of its own, which it would not get if it was traced",
                       program);
    }
    trace.page = calloc(1, sizeof *trace.page);
    if (trace.page == NULL) {
        return bp_fail_memory(error, "copy a crash");
    }
    trace.pid = pid;
    trace.run_aside = run_aside;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    trace.status_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (trace.status_fd < 0 || sem_init(&trace.has_begun, 0, 0) != 0 ||
        sem_init(&trace.has_ended, 0, 0) != 0) {
        return bp_fail_errno(error, errno, "cannot trace the command");
    }
    pthread_t thread;
    bugpack_status status = bp_thread_start(run, &trace, &thread, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    (void)pthread_detach(thread);
    while (sem_wait(&trace.has_begun) != 0) {} /* EINTR */
    trace.is_running = trace.seize_errno == 0;
    return trace.is_running ? BUGPACK_OK : fail_seize(trace.seize_errno, error);
}

const bp_stacks *bp_crash_trace_python(void) {
    return &trace.python;
}

const bp_crash_page *bp_crash_trace_finish(int number, const char **ret_reason) {
    while (trace.is_running) {
        trace.is_running = sem_wait(&trace.has_ended) != 0; /* EINTR */
    }
    *ret_reason = NULL;
    if (number == SIGKILL) {
        *ret_reason = "the process was killed, which cannot be observed";
    } else if (trace.page == NULL || trace.page->is_begun == 0) {
        *ret_reason = "the process ended without stopping for its tracer";
    } else if (trace.page->signal != number) {
        *ret_reason = "the process ended by another signal than that which was observed";
    }
    return *ret_reason == NULL ? trace.page : NULL;
}
