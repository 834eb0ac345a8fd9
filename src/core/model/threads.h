/*
 * threads.json: where each thread of a process stands, and who waits for whom.
 */
#ifndef BP_MODEL_THREADS_H
#define BP_MODEL_THREADS_H

#include <bugpack/error.h>

#include "base/buffer.h"
#include "model/open_files.h"
#include "platform/linux/file_locks.h"
#include "platform/thread_reading.h"

typedef enum bp_process_wait_kind {
    BP_WAIT_FOR_PEER, /* at the other end of a pipe or socket */
    BP_WAIT_FOR_FILE_LOCK,
    BP_WAIT_FOR_MUTEX, /* that another process holds */
    BP_WAIT_FOR_CHILD,
    BP_WAIT_FOR_FILESYSTEM,   /* of a network, or of a process: an answer */
    BP_WAIT_FOR_SEMAPHORE,    /* of System V: the process is the last that changed it */
    BP_WAIT_FOR_DATABASE_LOCK /* that another session of a server of PostgreSQL holds */
} bp_process_wait_kind;

/* A process of a chain, and what it waits for itself. */
typedef struct bp_wait_link {
    uint64_t pid;
    char name[64];             /* any bytes */
    char state;                /* of its first thread; 0: not known */
    bp_process_wait_kind kind; /* with `waits_for` */
    char waits_for[128];       /* any bytes; "": it waits for none, or that is not known */
} bp_wait_link;

#define BP_WAIT_LINK_MAX 8

/* A thread waits for another process: the first of the chain, which waits for the second. The chain
 * of a file system or a semaphore may be empty. */
typedef struct bp_process_wait {
    bp_process_wait_kind kind;
    uint32_t fd; /* of a file lock; or the number of a semaphore in its set */
    uint32_t set;
    bool has_holder_ended; /* who changed a semaphore last */
    bp_file_lock_kind lock;
    char path[256]; /* of the file of the lock, or where the file system is; any bytes */
    char type[32], source[128]; /* of a file system; any bytes */
    bp_wait_link links[BP_WAIT_LINK_MAX];
    size_t link_count;
} bp_process_wait;

/* One thread. What is not known is 0, and left out. */
typedef struct bp_thread_state {
    bp_thread_reading read;
    bool is_waiting; /* for the thread `waits_for` */
    bp_futex_wait wait;
    size_t waits_for;  /* its index */
    bool is_futex_own; /* it waits on a futex that no other process can wake, as far as is known */
    uint32_t reader_count;    /* of the rwlock that it waits to write to */
    bool is_futex_shared;     /* in memory that others may share, and no other process does */
    char semaphore_name[256]; /* that it waits for, which no other process has open; any bytes */
    bp_fd_wait fd_wait;
    bool has_fd_wait;         /* on one */
    bool is_fd_closed;        /* which is not open any more in the thread's table of descriptors */
    bool does_poll;           /* it waits on several, or in an epoll */
    const bp_open_file *file; /* a pipe or socket that it waits on, in `files`; NULL: none */
    char connects_to[BP_UNIX_NAME_BYTES]; /* name of a unix socket; any bytes; "": to none */
    char *path; /* that its call was given, made absolute; any bytes; owned; NULL: none */
    bool has_semaphore;
    uint32_t semaphore; /* its number */
    /* The lock of `wait` is not a thread's of this process: another one's, or of one that ended. */
    bp_futex_owner other_owner;
    bp_process_wait *process_wait; /* owned; NULL: for no other process, as far as is known */
} bp_thread_state;

/* The threads of one process. Starts zeroed. */
typedef struct bp_process_threads {
    uint64_t pid;
    uint64_t birth; /* of its first thread */
    char name[64];  /* of it; any bytes */
    bp_syscall_arch arch;
    bp_thread_state *threads; /* ascending by tid; owned */
    size_t thread_count;
    size_t vanished_count;    /* they ended meanwhile, and are not listed */
    size_t passed_over_count; /* there was no time for them */
    size_t unread_count;      /* whose system call could not be read */
    int unread_errno;         /* the last reason */
    int kernel_stack_errno;   /* why there are no kernel stacks; or 0 */
    bp_open_files files;      /* those that threads wait on */
    bp_wait_link tracer;      /* pid 0: nobody traces it */
    bool has_signals;
    uint64_t caught_signals; /* that it has a handler for; a bit for each, of signal 1 the lowest */
    uint64_t blocked_signals; /* by every thread of those above */
} bp_process_threads;

void bp_process_threads_release(bp_process_threads *process);

/*
 * A deadlock: threads that wait for each other in a circle, none of them for a limited time. Finds
 * one that was not found before: the index of its thread with the lowest id, or SIZE_MAX. The other
 * threads follow by `waits_for`. `is_seen` is the caller's, a byte for each thread, 0 at first.
 */
size_t bp_deadlock_next(const bp_process_threads *process, unsigned char *is_seen);

/* The number of its threads. */
size_t bp_deadlock_length(const bp_process_threads *process, size_t first);

/* Appends "locker-1 (5187) and locker-2 (5188) wait for each other's mutexes". Names may hold any
 * bytes. NO_MEMORY. */
bugpack_status bp_deadlock_describe(const bp_process_threads *process, size_t first,
                                    bp_buffer *out);

/* Appends threads.json of a process and its descendants: the first of the `count`, at least one,
 * and the others below it. `search` is the one for the other ends of `files`. */
bugpack_status bp_threads_print(const bp_process_threads *processes, size_t count,
                                const bp_fd_search *search, bp_buffer *out, bugpack_error *error);

#endif
