#include "platform/linux/thread_wait.h"

#include <string.h>

#include "base/array.h"
#include "platform/linux/proc_text.h"

/* Takes " 0x7f", as it follows the number of the call. */
static bool take_value(bp_proc_scan *scan, uint64_t *ret_value) {
    return bp_proc_take_text(scan, " 0x") && bp_proc_take_number(scan, 16, ret_value);
}

/*
 * "running", "-1 <stack> <program>" or "<number> <six arguments> <stack> <program>". The number is
 * printed as an int, so that a program that asks for call 2^32-1 shows as blocked outside of one.
 */
bool bp_thread_syscall_parse(const char *text, size_t text_bytes, bp_thread_syscall *ret_syscall) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_thread_syscall syscall = {.place = BP_THREAD_RUNS};
    if (bp_proc_is(scan, "running\n")) {
        *ret_syscall = syscall;
        return true;
    }
    bool is_whole = true;
    if (bp_proc_take_byte(&scan, '-')) {
        syscall.place = BP_THREAD_BLOCKED;
        is_whole = bp_proc_take_number(&scan, 10, &syscall.number);
        syscall.number = 0;
    } else {
        syscall.place = BP_THREAD_IN_CALL;
        is_whole = bp_proc_take_number(&scan, 10, &syscall.number);
        for (size_t i = 0; is_whole && i < BP_SYSCALL_ARGUMENT_COUNT; i++) {
            is_whole = take_value(&scan, &syscall.arguments[i]);
        }
    }
    /* A line that does not end may be cut inside of a number. */
    if (!is_whole || !take_value(&scan, &syscall.stack_pointer) ||
        !take_value(&scan, &syscall.program_counter) || !bp_proc_is(scan, "\n")) {
        return false;
    }
    /* A kernel thread, or a worker that io_uring gives a process. Such a one seems to be in call 0,
     * or in the call that has made it: it runs no program, and so makes none. */
    if (syscall.stack_pointer == 0 && syscall.program_counter == 0) {
        syscall = (bp_thread_syscall){.place = BP_THREAD_BLOCKED};
    }
    *ret_syscall = syscall;
    return true;
}

/* Calls with more descriptors than these are not looked at. */
enum { polled_max = 64, selected_max = 1024 };

typedef enum call_form { FIRST_ARGUMENT, POLL, SELECT, EPOLL } call_form;

/* How a call gives its limit of time: not in an argument that we know, as a number of which one
 * below 0 is none, or as a pointer of which null is none. */
typedef enum call_limit { UNKNOWN, NUMBER, POINTER } call_limit;

typedef struct fd_call {
    const char *name;
    call_form form;
    call_limit limit;
    size_t limit_argument;
} fd_call;

/* NULL for a thread that is in no call that has a name. */
static const char *call_name(bp_syscall_arch arch, const bp_thread_syscall *syscall) {
    return syscall->place == BP_THREAD_IN_CALL ? bp_syscall_name(arch, syscall->number) : NULL;
}

/* NULL for a call that waits on no descriptor. */
static const fd_call *find_fd_call(bp_syscall_arch arch, const bp_thread_syscall *syscall) {
    static const char *const of_first[] = {
        "read",     "readv",  "preadv2", "write",    "writev", "pwritev2", "recvfrom", "recvmsg",
        "recvmmsg", "sendto", "sendmsg", "sendmmsg", "accept", "accept4",  "connect",  NULL};
    static const fd_call first = {.form = FIRST_ARGUMENT};
    static const fd_call calls[] = {
        {"poll", POLL, NUMBER, 2},          {"ppoll", POLL, POINTER, 2},
        {"select", SELECT, POINTER, 4},     {"pselect6", SELECT, POINTER, 4},
        {"epoll_wait", EPOLL, NUMBER, 3},   {"epoll_pwait", EPOLL, NUMBER, 3},
        {"epoll_pwait2", EPOLL, POINTER, 3}};
    const char *name = call_name(arch, syscall);
    if (name == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(name, calls[i].name) == 0) {
            return &calls[i];
        }
    }
    return bp_array_has_text(of_first, name) ? &first : NULL;
}

/* Takes a descriptor, once; false where there is no room. */
static bool take(bp_fd_wait *wait, uint64_t fd, uint64_t inode) {
    for (size_t i = 0; i < wait->count; i++) {
        if (wait->fds[i] == fd) {
            return true;
        }
    }
    if (wait->count == BP_FD_WAIT_MAX || fd > INT32_MAX) {
        return false;
    }
    wait->fds[wait->count] = (uint32_t)fd;
    wait->inodes[wait->count++] = inode;
    return true;
}

/* struct pollfd of poll(2); one below 0 is passed over. */
static bool find_polled(const bp_thread_syscall *syscall, bp_fd_wait_reader *read, void *context,
                        bp_fd_wait *wait) {
    struct {
        int32_t fd;
        int16_t events, returned;
    } items[polled_max];
    uint64_t count = (uint32_t)syscall->arguments[1];
    bool has_room = count > 0 && count <= polled_max &&
                    read(context, syscall->arguments[0], items, (size_t)count * sizeof items[0]);
    for (size_t i = 0; has_room && i < count; i++) {
        has_room = items[i].fd < 0 || take(wait, (uint64_t)items[i].fd, 0);
    }
    return has_room;
}

bool bp_fd_wait_find(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                     bp_fd_wait_reader *read, void *context, bp_fd_wait *ret_wait) {
    const fd_call *found = find_fd_call(arch, syscall);
    if (found == NULL) {
        return false;
    }
    uint64_t limit = syscall->arguments[found->limit_argument];
    bp_fd_wait wait = {.has_limit = found->limit != UNKNOWN, .is_epoll = found->form == EPOLL};
    wait.is_timed = found->limit == NUMBER ? (int32_t)(uint32_t)limit >= 0
                                           : found->limit == POINTER && limit != 0;
    bool is_found;
    if (found->form == POLL) {
        is_found = find_polled(syscall, read, context, &wait);
    } else if (found->form == SELECT) {
        /* Three sets of bits, in words of 64 bits. */
        uint64_t words[selected_max / 64];
        uint64_t count = (uint32_t)syscall->arguments[0];
        bool has_room = count <= selected_max;
        for (size_t set = 1; has_room && set <= 3; set++) {
            uint64_t address = syscall->arguments[set];
            has_room = address == 0 ||
                       read(context, address, words, (size_t)(count + 63) / 64 * sizeof *words);
            for (size_t i = 0; has_room && address != 0 && i < count; i++) {
                has_room = (words[i / 64] >> (i % 64) & 1) == 0 || take(&wait, i, 0);
            }
        }
        is_found = has_room;
    } else {
        is_found = take(&wait, (uint32_t)syscall->arguments[0], 0);
    }
    if (!is_found || wait.count == 0) {
        return false;
    }
    *ret_wait = wait;
    return true;
}

/* "tfd:        5 events:       19 data: 5  pos:0 ino:2f0c sdev:9" (ep_show_fdinfo in
 * fs/eventpoll.c). The events are 0 of one that was disabled, except for the flags. */
static bool take_watch(bp_fd_wait *wait, bp_proc_scan line) {
    static const uint64_t input_or_output = 0x7; /* EPOLLIN, EPOLLPRI, EPOLLOUT */
    uint64_t fd, events, data, inode;
    bp_proc_skip_blanks(&line);
    bool is_whole = bp_proc_take_number(&line, 10, &fd) && bp_proc_take_text(&line, " events:");
    bp_proc_skip_blanks(&line);
    is_whole =
        is_whole && bp_proc_take_number(&line, 16, &events) && bp_proc_take_text(&line, " data:");
    bp_proc_skip_blanks(&line);
    is_whole = is_whole && bp_proc_take_number(&line, 16, &data) && bp_proc_take_text(&line, " ");
    bp_proc_skip_blanks(&line);
    is_whole = is_whole && bp_proc_take_text(&line, "pos:");
    (void)bp_proc_take_byte(&line, '-');
    is_whole = is_whole && bp_proc_take_number(&line, 10, &data) &&
               bp_proc_take_text(&line, " ino:") && bp_proc_take_number(&line, 16, &inode) &&
               bp_proc_take_text(&line, " ");
    return is_whole && ((events & input_or_output) == 0 || take(wait, fd, inode));
}

bool bp_fd_wait_take_watches(bp_fd_wait *wait, const char *text, size_t text_bytes) {
    bp_proc_scan scan = {text, text + text_bytes}, line;
    bool is_whole = true;
    wait->count = 0;
    wait->is_epoll = false;
    while (is_whole && bp_proc_take_line(&scan, &line)) {
        is_whole = !bp_proc_take_text(&line, "tfd:") || take_watch(wait, line);
    }
    return is_whole && wait->count > 0;
}

bool bp_unix_connect_find(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                          bp_fd_wait_reader *read, void *context, char out[BP_UNIX_NAME_BYTES]) {
    enum { family_unix = 1, family_bytes = 2 };
    struct {
        uint16_t family;
        char path[BP_UNIX_NAME_BYTES];
    } address = {.family = 0};
    const char *name = call_name(arch, syscall);
    uint32_t bytes = (uint32_t)syscall->arguments[2];
    if (name == NULL || strcmp(name, "connect") != 0 || bytes <= family_bytes ||
        bytes >= family_bytes + BP_UNIX_NAME_BYTES ||
        !read(context, syscall->arguments[1], &address, bytes) || address.family != family_unix) {
        return false;
    }
    if (address.path[0] == '\0') {
        address.path[0] = '@';
    }
    memcpy(out, address.path, BP_UNIX_NAME_BYTES);
    return true;
}

bool bp_file_call_find(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                       bp_file_call *ret_call) {
    static const char *const of_paths[] = {"open",   "creat",    "stat",  "lstat",  "access",
                                           "statfs", "readlink", "mkdir", "rmdir",  "unlink",
                                           "rename", "truncate", "chdir", "execve", NULL};
    static const char *const below_fds[] = {"openat",     "openat2",  "newfstatat", "statx",
                                            "faccessat",  "mkdirat",  "faccessat2", "unlinkat",
                                            "readlinkat", "renameat", "renameat2",  NULL};
    static const char *const of_fds[] = {"read",       "readv",   "pread64",   "preadv", "write",
                                         "writev",     "fstat",   "pwrite64",  "fsync",  "pwritev",
                                         "getdents64", "fstatfs", "fdatasync", NULL};
    const char *name = call_name(arch, syscall);
    const uint64_t *arguments = syscall->arguments;
    bp_file_call call = {.fd = (int32_t)(uint32_t)arguments[0]};
    if (name == NULL) {
        return false;
    }
    if (bp_array_has_text(of_paths, name)) {
        call = (bp_file_call){arguments[0], BP_FILE_CALL_CWD};
    } else if (bp_array_has_text(below_fds, name)) {
        call.path = arguments[1];
    } else if (!bp_array_has_text(of_fds, name)) {
        return false;
    }
    *ret_call = call;
    return true;
}

static bool is_semaphore_call(bp_syscall_arch arch, const bp_thread_syscall *syscall) {
    static const char *const calls[] = {"semop", "semtimedop", NULL};
    const char *name = call_name(arch, syscall);
    return name != NULL && bp_array_has_text(calls, name) && syscall->arguments[2] == 1;
}

bool bp_semaphore_find(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                       bp_fd_wait_reader *read, void *context, uint32_t *ret_number) {
    uint16_t operation[3]; /* struct sembuf: the number comes first */
    if (!is_semaphore_call(arch, syscall) ||
        !read(context, syscall->arguments[1], operation, sizeof operation)) {
        return false;
    }
    *ret_number = operation[0];
    return true;
}

bool bp_call_is_readable(bp_syscall_arch arch, const bp_thread_syscall *syscall) {
    bp_file_call call;
    return find_fd_call(arch, syscall) != NULL || is_semaphore_call(arch, syscall) ||
           (bp_file_call_find(arch, syscall, &call) && call.path != 0);
}

/* include/uapi/linux/futex.h of the kernel. */
enum {
    FUTEX_COMMAND_WAIT = 0,
    FUTEX_COMMAND_LOCK_PI = 6,
    FUTEX_COMMAND_WAIT_BITSET = 9,
    FUTEX_COMMAND_LOCK_PI2 = 13,
    FUTEX_COMMAND_MASK = 0x7f,
    FUTEX_IS_PRIVATE = 0x80
};
static const uint32_t futex_has_waiters = 0x80000000u;
static const uint32_t futex_owner_died = 0x40000000u;
static const uint32_t futex_tid_mask = 0x3fffffffu;

/* __kind of a mutex: the type is in the lowest two bits (nptl/pthreadP.h). */
enum {
    KIND_TYPE = 3,
    KIND_RECURSIVE = 1,
    KIND_ROBUST = 16,
    KIND_SHARED = 128,
    KIND_ELISION = 256 | 512
};

/* Values of glibc's lock words: contended (sysdeps/nptl/lowlevellock.h), and in an rwlock that a
 * thread waits for, in the upper bit (nptl/pthread_rwlock_common.c). */
enum {
    LOCK_CONTENDED = 2,
    RWLOCK_WAIT = 3,
    RWLOCK_HELD_BY_WRITER = 3,
    RWLOCK_WANTED = 2, /* by a writer, while readers have it */
    RWLOCK_READER_SHIFT = 3
};

/* struct __pthread_mutex_s, as far as it is needed. */
struct mutex {
    uint32_t lock, count, owner, user_count, kind;
};

/* struct __pthread_rwlock_arch_t up to __flags. */
struct rwlock {
    uint32_t readers, writers, phase_futex, writers_futex, pad3, pad4, writer, is_shared;
    uint64_t pad1, pad2;
    uint32_t flags;
};

/* A futex call with its arguments under their names. */
struct call {
    uint64_t address;
    uint32_t command, value;
    bool is_private, is_timed;
};

static bool take_call(bp_syscall_arch arch, const bp_thread_syscall *syscall, struct call *call) {
    static const uint64_t numbers[] = {
        [BP_SYSCALL_UNKNOWN] = UINT64_MAX, [BP_SYSCALL_X86_64] = 202, [BP_SYSCALL_AARCH64] = 98};
    uint32_t operation = (uint32_t)syscall->arguments[1];
    *call = (struct call){.address = syscall->arguments[0],
                          .command = operation & FUTEX_COMMAND_MASK,
                          .value = (uint32_t)syscall->arguments[2],
                          .is_private = (operation & FUTEX_IS_PRIVATE) != 0,
                          .is_timed = syscall->arguments[3] != 0};
    return syscall->place == BP_THREAD_IN_CALL && syscall->number == numbers[arch] &&
           call->address >= sizeof(struct rwlock) && call->address % sizeof(uint32_t) == 0 &&
           (call->command == FUTEX_COMMAND_WAIT || call->command == FUTEX_COMMAND_WAIT_BITSET ||
            call->command == FUTEX_COMMAND_LOCK_PI || call->command == FUTEX_COMMAND_LOCK_PI2);
}

bool bp_futex_wait_is_possible(bp_syscall_arch arch, const bp_thread_syscall *syscall) {
    struct call call;
    return take_call(arch, syscall, &call);
}

bool bp_futex_wait_is_private(const bp_thread_syscall *syscall, uint64_t *ret_address) {
    *ret_address = syscall->arguments[0];
    return (syscall->arguments[1] & FUTEX_IS_PRIVATE) != 0;
}

/* Another process can hold only what is shared. Of a lock that looks like one by chance, the id of
 * its owner is hardly one that the kernel gives out (PID_MAX_LIMIT in linux/threads.h). */
static bp_futex_owner owner_of(const bp_futex_process *process, const struct call *call,
                               uint64_t tid) {
    static const uint64_t tid_max = 4194304;
    if (tid == 0 || tid > tid_max) {
        return BP_FUTEX_OWNER_UNKNOWN;
    }
    if (process->has_thread(process->context, tid)) {
        return BP_FUTEX_OWNER_THREAD;
    }
    bp_futex_owner owner = process->find_other != NULL ? process->find_other(process->context, tid)
                                                       : BP_FUTEX_OWNER_UNKNOWN;
    bool is_possible = owner == BP_FUTEX_OWNER_ENDED || !call->is_private;
    return is_possible ? owner : BP_FUTEX_OWNER_UNKNOWN;
}

/* The kernel defines the word (futex(2), "Priority-inheritance futexes"), whatever the library. */
static bool find_inheriting(const bp_futex_process *process, const struct call *call,
                            uint64_t *ret_tid) {
    uint32_t word;
    if (!process->read(process->context, call->address, &word, sizeof word) ||
        (word & futex_has_waiters) == 0 || (word & futex_owner_died) != 0 ||
        owner_of(process, call, word & futex_tid_mask) == BP_FUTEX_OWNER_UNKNOWN) {
        return false;
    }
    *ret_tid = word & futex_tid_mask;
    return true;
}

/* The word of a robust mutex holds its owner as well. */
static bool is_held_robust(const struct call *call, const struct mutex *mutex) {
    return (mutex->kind & ~(uint32_t)(KIND_TYPE | KIND_ROBUST | KIND_SHARED | KIND_ELISION)) == 0 &&
           mutex->lock == call->value && (mutex->lock & futex_has_waiters) != 0 &&
           (mutex->lock & futex_owner_died) == 0 && (mutex->lock & futex_tid_mask) == mutex->owner;
}

static bool is_held_plain(const struct call *call, const struct mutex *mutex) {
    return (mutex->kind & ~(uint32_t)(KIND_TYPE | KIND_SHARED | KIND_ELISION)) == 0 &&
           mutex->lock == LOCK_CONTENDED && call->value == LOCK_CONTENDED &&
           call->is_private == ((mutex->kind & KIND_SHARED) == 0) &&
           ((mutex->kind & KIND_TYPE) == KIND_RECURSIVE) == (mutex->count != 0);
}

/* The lock of a FILE (_IO_lock_t in sysdeps/nptl/stdio-lock.h): its owner is the descriptor of a
 * thread, which has the id. */
static bool find_stdio(const bp_futex_process *process, const struct call *call,
                       uint64_t *ret_tid) {
    struct {
        uint32_t lock, count;
        uint64_t owner;
    } file;
    uint32_t tid;
    if (!process->has_descriptors || call->command != FUTEX_COMMAND_WAIT || !call->is_private ||
        call->is_timed || call->value != LOCK_CONTENDED ||
        !process->read(process->context, call->address, &file, sizeof file) ||
        file.lock != LOCK_CONTENDED || file.count == 0 || file.owner == 0 ||
        !process->read(process->context, file.owner + process->descriptor_tid, &tid, sizeof tid) ||
        owner_of(process, call, tid) != BP_FUTEX_OWNER_THREAD) {
        return false;
    }
    *ret_tid = tid;
    return true;
}

/*
 * A mutex has one user at least while it is locked, and one that is not robust has a count only if
 * it is recursive. A lock of glibc's own (stdio, malloc) has the same word, and other fields behind
 * it, which name the owner of the former alone. A timed wait is a WAIT_BITSET, and an untimed one a
 * WAIT: so the untimed wait for a condition is none of this.
 */
static bool find_mutex(const bp_futex_process *process, const struct call *call,
                       uint64_t *ret_tid) {
    struct mutex mutex;
    if ((call->command == FUTEX_COMMAND_WAIT_BITSET) != call->is_timed ||
        !process->read(process->context, call->address, &mutex, sizeof mutex)) {
        return false;
    }
    bool is_held = (mutex.kind & KIND_ROBUST) != 0 ? is_held_robust(call, &mutex)
                                                   : is_held_plain(call, &mutex);
    if (!is_held || mutex.user_count == 0 ||
        owner_of(process, call, mutex.owner) == BP_FUTEX_OWNER_UNKNOWN) {
        return find_stdio(process, call, ret_tid);
    }
    *ret_tid = mutex.owner;
    return true;
}

static bool read_rwlock(const bp_futex_process *process, const struct call *call, uint64_t address,
                        struct rwlock *rwlock) {
    return process->read(process->context, address, rwlock, sizeof *rwlock) && rwlock->pad3 == 0 &&
           rwlock->pad4 == 0 && rwlock->pad1 == 0 && rwlock->pad2 == 0 &&
           rwlock->is_shared == !call->is_private && rwlock->flags <= 3;
}

uint32_t bp_futex_wait_readers(const bp_futex_process *process, const bp_thread_syscall *syscall) {
    struct call call;
    struct rwlock rwlock;
    bool is_wanted =
        take_call(process->arch, syscall, &call) && process->has_glibc &&
        call.value == RWLOCK_WANTED &&
        read_rwlock(process, &call, call.address - offsetof(struct rwlock, phase_futex), &rwlock) &&
        (rwlock.readers & RWLOCK_HELD_BY_WRITER) == RWLOCK_WANTED && rwlock.writer == 0 &&
        rwlock.phase_futex == RWLOCK_WANTED;
    return is_wanted ? rwlock.readers >> RWLOCK_READER_SHIFT : 0;
}

static bool is_held_by_writer(const bp_futex_process *process, const struct call *call,
                              uint64_t address, struct rwlock *rwlock) {
    return read_rwlock(process, call, address, rwlock) &&
           (rwlock->readers & RWLOCK_HELD_BY_WRITER) == RWLOCK_HELD_BY_WRITER &&
           owner_of(process, call, rwlock->writer) != BP_FUTEX_OWNER_UNKNOWN;
}

/* Readers wait on the third word, and further writers on the fourth. */
static bool find_rwlock(const bp_futex_process *process, const struct call *call,
                        uint64_t *ret_tid) {
    struct rwlock of_reader, of_writer;
    bool is_reader =
        is_held_by_writer(process, call, call->address - offsetof(struct rwlock, phase_futex),
                          &of_reader) &&
        of_reader.phase_futex == RWLOCK_WAIT;
    bool is_writer =
        is_held_by_writer(process, call, call->address - offsetof(struct rwlock, writers_futex),
                          &of_writer) &&
        of_writer.writers_futex == RWLOCK_WAIT;
    if (call->value != RWLOCK_WAIT || is_reader == is_writer) {
        return false;
    }
    *ret_tid = is_reader ? of_reader.writer : of_writer.writer;
    return true;
}

/*
 * pthread_join waits until the kernel clears the id in the thread's descriptor. That it is one is
 * seen by its place in glibc's list of threads: the next link points back to it.
 */
static bool find_thread(const bp_futex_process *process, const struct call *call,
                        uint64_t *ret_tid) {
    uint64_t link = call->address - process->descriptor_tid + process->descriptor_link;
    uint64_t next, back;
    uint32_t tid;
    const uint64_t previous =
        process->link_next + sizeof(uint64_t); /* list_t in include/list_t.h */
    if (!process->has_descriptors || call->is_private ||
        !process->read(process->context, call->address, &tid, sizeof tid) || tid != call->value ||
        !process->read(process->context, link + process->link_next, &next, sizeof next) ||
        !process->read(process->context, next + previous, &back, sizeof back) || back != link ||
        tid == 0 || !process->has_thread(process->context, tid)) {
        return false;
    }
    *ret_tid = tid;
    return true;
}

bool bp_futex_wait_find(const bp_futex_process *process, const bp_thread_syscall *syscall,
                        bp_futex_wait *ret_wait) {
    struct call call;
    bp_futex_wait wait = {.kind = BP_FUTEX_KIND_MUTEX};
    if (!take_call(process->arch, syscall, &call)) {
        return false;
    }
    bool is_found = false;
    if (call.command == FUTEX_COMMAND_LOCK_PI || call.command == FUTEX_COMMAND_LOCK_PI2) {
        is_found = find_inheriting(process, &call, &wait.tid);
    } else if (process->has_glibc) {
        static bool (*const find[])(const bp_futex_process *process, const struct call *call,
                                    uint64_t *ret_tid) = {[BP_FUTEX_KIND_MUTEX] = find_mutex,
                                                          [BP_FUTEX_KIND_RWLOCK] = find_rwlock,
                                                          [BP_FUTEX_KIND_THREAD] = find_thread};
        for (unsigned kind = 0; !is_found && kind < BP_FUTEX_KIND_COUNT; kind++) {
            wait.kind = kind;
            is_found = find[kind](process, &call, &wait.tid);
        }
    }
    if (is_found) {
        wait.owner = owner_of(process, &call, wait.tid);
        wait.address = call.address;
        wait.is_timed = call.is_timed;
        *ret_wait = wait;
    }
    return is_found;
}
