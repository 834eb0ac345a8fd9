/*
 * Where a thread stands in the kernel, as task/<tid>/syscall says without a stop: its system call
 * and its registers for the stack and the program; and what it waits for there. Pure.
 */
#ifndef BP_PLATFORM_LINUX_THREAD_WAIT_H
#define BP_PLATFORM_LINUX_THREAD_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum bp_syscall_arch {
    BP_SYSCALL_UNKNOWN, /* numbers have no names */
    BP_SYSCALL_X86_64,
    BP_SYSCALL_AARCH64
} bp_syscall_arch;

/* Of this program. */
#if defined(__aarch64__)
#define BP_SYSCALL_OWN_ARCH BP_SYSCALL_AARCH64
#elif defined(__x86_64__) && defined(__LP64__)
#define BP_SYSCALL_OWN_ARCH BP_SYSCALL_X86_64
#else /* unsupported */
#define BP_SYSCALL_OWN_ARCH BP_SYSCALL_UNKNOWN
#endif

/* NULL for a number without a name. Static. */
const char *bp_syscall_name(bp_syscall_arch arch, uint64_t number);

typedef enum bp_thread_place {
    BP_THREAD_RUNS,    /* or is about to: nothing is known, all fields are 0 */
    BP_THREAD_IN_CALL, /* blocked in a system call; all fields are known */
    BP_THREAD_BLOCKED  /* blocked outside of one, as in a page fault: the registers are known,
                          and 0 of a thread that runs in the kernel alone */
} bp_thread_place;

#define BP_SYSCALL_ARGUMENT_COUNT 6

/* All zero is one of a thread that runs. Two of them may be compared with memcmp. */
typedef struct bp_thread_syscall {
    uint64_t place;  /* bp_thread_place */
    uint64_t number; /* of the system call, in the numbers of the thread's architecture */
    uint64_t arguments[BP_SYSCALL_ARGUMENT_COUNT];
    uint64_t stack_pointer;
    uint64_t program_counter; /* in user space: that after the system call instruction */
} bp_thread_syscall;

/* Parses the file, see proc_pid_syscall in fs/proc/base.c. Pure. False, with the output left alone,
 * when the text is malformed. */
bool bp_thread_syscall_parse(const char *text, size_t text_bytes, bp_thread_syscall *ret_syscall);

/* A call that waits on more descriptors than these is one of a server, and nothing is said of it.
 */
#define BP_FD_WAIT_MAX 8

typedef struct bp_fd_wait {
    uint32_t fds[BP_FD_WAIT_MAX];    /* the first one is known, but of an epoll without watches */
    uint64_t inodes[BP_FD_WAIT_MAX]; /* of an epoll, which keeps the file; else 0 */
    size_t count;
    bool has_limit; /* the call is one that may have a limit of time; else it is not known */
    bool is_timed;  /* it has one */
    bool is_epoll;  /* the first one is that of an epoll, before its watches are taken */
} bp_fd_wait;

/* Copies memory of the process, all of it or false. */
typedef bool bp_fd_wait_reader(void *context, uint64_t address, void *out, size_t bytes);

/* True if this call waits on descriptors, or is given a path or a semaphore: else no memory need be
 * read. */
bool bp_call_is_readable(bp_syscall_arch arch, const bp_thread_syscall *syscall);

/*
 * The descriptor on which a call of read(2), write(2), recv(2), send(2), accept(2) and their like
 * waits, or those of poll(2) and select(2), or the epoll of epoll_wait(2). False where it waits on
 * none or on too many, and where it is not known.
 */
bool bp_fd_wait_find(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                     bp_fd_wait_reader *read, void *context, bp_fd_wait *ret_wait);

/* Replaces an epoll by what it watches for input or output, as its fdinfo lists it (proc(5)). False
 * for none, for too many, and where the text is not whole. Pure. */
bool bp_fd_wait_take_watches(bp_fd_wait *wait, const char *text, size_t text_bytes);

/* The name of the unix socket that a connect(2) asks for, "@" in front of one that is no file.
 * False for any other call or address. */
#define BP_UNIX_NAME_BYTES 109 /* sun_path, and a NUL */
bool bp_unix_connect_find(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                          bp_fd_wait_reader *read, void *context, char out[BP_UNIX_NAME_BYTES]);

/*
 * The file that a call is about: a path at an address, which begins in the directory of a
 * descriptor unless it is absolute; or else the descriptor. False for a call that is about none.
 */
#define BP_FILE_CALL_CWD (-100) /* AT_FDCWD of Linux: the working directory */
typedef struct bp_file_call {
    uint64_t path; /* 0: none */
    int32_t fd;
} bp_file_call;
bool bp_file_call_find(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                       bp_file_call *ret_call);

/* The number of the System V semaphore in its set, which the first argument names, for which a call
 * of semop(2) with one operation waits; read from memory. */
bool bp_semaphore_find(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                       bp_fd_wait_reader *read, void *context, uint32_t *ret_number);

/*
 * For which other thread a thread waits in futex(2), as far as the memory at the futex proves it.
 *
 * Known are futexes with priority inheritance, whose form the kernel defines, and mutexes, rwlocks
 * and threads of glibc on x86-64 and aarch64 (sysdeps/nptl/bits/thread-shared-types.h and the
 * struct_mutex.h and struct_rwlock.h of both). Of anything else nothing is said.
 */
typedef enum bp_futex_kind {
    BP_FUTEX_KIND_MUTEX,
    BP_FUTEX_KIND_RWLOCK, /* held by a writer; the readers that hold one leave no trace in it */
    BP_FUTEX_KIND_THREAD, /* pthread_join */
    BP_FUTEX_KIND_COUNT,
    BP_FUTEX_KIND_MONITOR = BP_FUTEX_KIND_COUNT /* of an object of Java, of which the futex says
                                                   nothing: see process/java_threads.h */
} bp_futex_kind;

typedef enum bp_futex_owner {
    BP_FUTEX_OWNER_UNKNOWN,
    BP_FUTEX_OWNER_THREAD,  /* a thread of the same process */
    BP_FUTEX_OWNER_PROCESS, /* one of another process, which shares the lock */
    BP_FUTEX_OWNER_ENDED    /* nobody any more: the thread ended, and left it locked */
} bp_futex_owner;

typedef struct bp_futex_wait {
    bp_futex_kind kind;
    bp_futex_owner owner; /* of a found one not UNKNOWN */
    bool is_timed;        /* it gives up after some time */
    uint64_t address;     /* of the futex word */
    uint64_t tid;         /* of the thread waited for, as the process itself counts */
} bp_futex_wait;

/* A process, as far as it has to be known. */
typedef struct bp_futex_process {
    bp_syscall_arch arch;
    bool has_glibc;
    /* Offsets in the descriptor of a thread, of glibc 2.34 or later: without them nobody is known
     * to wait for the end of a thread. */
    bool has_descriptors;
    uint64_t descriptor_tid, descriptor_link, link_next;
    void *context;
    /* Copies memory, all of it or false. */
    bool (*read)(void *context, uint64_t address, void *out, size_t bytes);
    /* True if it has this thread. */
    bool (*has_thread)(void *context, uint64_t tid);
    /* Says of another id if it is PROCESS or ENDED; NULL: not known of any. */
    bp_futex_owner (*find_other)(void *context, uint64_t tid);
} bp_futex_process;

/* True if this is a wait on a futex without end or with one: else no memory need be read. */
bool bp_futex_wait_is_possible(bp_syscall_arch arch, const bp_thread_syscall *syscall);

/* The address of the futex; and true if the call says that only its own process can wake it. */
bool bp_futex_wait_is_private(const bp_thread_syscall *syscall, uint64_t *ret_address);

/* False where it is not known for whom the thread waits, if for any. One reading of memory that
 * changes: who believes it has read the same twice. */
bool bp_futex_wait_find(const bp_futex_process *process, const bp_thread_syscall *syscall,
                        bp_futex_wait *ret_wait);

/* How many readers hold the rwlock of glibc that the thread waits to write to; 0 where it does not.
 * Which threads they are is in no memory. */
uint32_t bp_futex_wait_readers(const bp_futex_process *process, const bp_thread_syscall *syscall);

#endif
