/*
 * For which other process a thread waits: the holder of a lock, a child, the other end of a pipe or
 * socket; and what that one waits for in turn. Only files of /proc are opened, and no link below
 * fd/ is followed.
 */
#include "process/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "base/utf8.h"
#include "platform/linux/files.h"
#include "platform/linux/libc_calls.h"
#include "platform/linux/proc_text.h"
#include "platform/linux/system_text.h"

enum { extra_max = 64, target_max = 16 };
static const size_t kept_bytes_max = (size_t)256 * 1024;
static const uint64_t cpu_max_ns = 2 * BP_NS_PER_MS, all_cpu_ns = 20 * BP_NS_PER_MS;

/* A file of /proc that is read once, for all threads that need it one after the other. */
struct kept_file {
    char path[48]; /* "": not yet read */
    char *text;
    size_t bytes;
};

struct finder {
    const bp_process_threads *processes; /* of the report */
    size_t process_count;
    bp_process_threads
        extra[extra_max]; /* further ones; without threads where it may not be read */
    size_t extra_count;
    bool sees_all_threads; /* of the process whose wait is looked for */
    bool has_searched;     /* for who has the other end of the pipe of a further one */
    bool has_asked;        /* all processes for a description, which takes longer */
    uint64_t deadline_ns, cpu_end_ns;
    struct kept_file locks, mounts; /* the second: of one process at a time */
};

/* A thread's wait; its links are not yet known. */
struct wait {
    bp_process_wait is;
    char text[128];
    bool is_socket;
    uint64_t targets[target_max]; /* processes; it goes on when one of them does something */
    size_t target_count;
};

static bool has_time(const struct finder *finder) {
    return bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < finder->cpu_end_ns &&
           bp_clock_monotonic_ns() < finder->deadline_ns;
}

/* False where it is empty, or cannot be read. */
static bool read_kept(struct kept_file *file, const char *path) {
    if (file->text == NULL) {
        file->text = malloc(kept_bytes_max);
    }
    if (file->text != NULL && strcmp(file->path, path) != 0) {
        ssize_t length = bp_proc_read_small(AT_FDCWD, path, file->text, kept_bytes_max);
        file->bytes = length > 0 ? (size_t)length : 0;
        (void)snprintf(file->path, sizeof file->path, "%s", path);
    }
    return file->bytes > 0;
}

/* A process by its id, which is read the first time; NULL where it is not known. */
static const bp_process_threads *find_process(struct finder *finder, uint64_t pid) {
    for (size_t i = 0; i < finder->process_count; i++) {
        if (finder->processes[i].pid == pid) {
            return &finder->processes[i];
        }
    }
    for (size_t i = 0; i < finder->extra_count; i++) {
        if (finder->extra[i].pid == pid) {
            return finder->extra[i].thread_count > 0 ? &finder->extra[i] : NULL;
        }
    }
    if (finder->extra_count == extra_max || !has_time(finder)) {
        return NULL;
    }
    bp_process_threads *extra = &finder->extra[finder->extra_count++];
    extra->pid = pid;
    bool is_read = bp_threads_read((pid_t)pid, finder->deadline_ns, extra, NULL) == BUGPACK_OK;
    return is_read && extra->thread_count > 0 ? extra : NULL;
}

static void name_process(uint64_t pid, bp_wait_link *link) {
    bp_proc_stat stat;
    *link = (bp_wait_link){.pid = pid};
    if (bp_proc_read_stat(AT_FDCWD, &stat, "/proc/%" PRIu64 "/stat", pid) == 0) {
        memcpy(link->name, stat.name, sizeof link->name);
        link->state = stat.state;
    }
}

static void add_target(struct wait *wait, uint64_t pid) {
    for (size_t i = 0; i < wait->target_count; i++) {
        if (wait->targets[i] == pid) {
            return;
        }
    }
    if (wait->target_count < target_max) {
        wait->targets[wait->target_count++] = pid;
    }
}

/* The children of all its threads; false where there are more than can be looked at. */
static bool list_children(const bp_process_threads *process, struct wait *wait) {
    bp_pid_list children = {.pids = NULL};
    int threads_fd = bp_proc_open_at(AT_FDCWD, O_PATH, "/proc/%" PRIu64 "/task", process->pid);
    for (size_t i = 0; i < process->thread_count; i++) {
        (void)bp_proc_list_children(threads_fd, process->threads[i].read.tid, &children);
    }
    for (size_t i = 0; i < children.count; i++) {
        add_target(wait, (uint64_t)children.pids[i]);
    }
    bp_file_close(threads_fd);
    free(children.pids);
    return wait->target_count > 0 && children.count <= target_max;
}

/* --- locks of files ----------------------------------------------------------------------- */

/* The path of a descriptor as the kernel writes it; false with "". */
static bool read_path(uint64_t pid, const char *fd, char *out, size_t out_bytes) {
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/%" PRIu64 "/fd/%s", pid, fd);
    ssize_t length = readlink(link, out, out_bytes - 1);
    out[length < 0 ? 0 : length] = '\0';
    return length > 0;
}

/* An open file that other processes may have as well: one with a lock, or a connection of FUSE. */
struct sought {
    const char *path;
    const bp_file_lock *lock; /* NULL: none */
    uint64_t connection;
};

/* True if fdinfo of the descriptor lists the lock as held, "lock:\t1: FLOCK …", or has the number
 * of the connection, as since Linux 6.15. */
static bool is_sought(uint64_t pid, uint32_t fd, const struct sought *sought) {
    char text[4096];
    bp_file_lock found;
    uint64_t connection;
    const bp_file_lock *lock = sought->lock;
    ssize_t length =
        bp_proc_read_at(AT_FDCWD, text, sizeof text, "/proc/%" PRIu64 "/fdinfo/%" PRIu32, pid, fd);
    bp_proc_scan scan = {text, text + (length < 0 ? 0 : length)}, line;
    if (lock == NULL) {
        return length > 0 &&
               bp_proc_find_number(text, (size_t)length, "fuse_connection", 0, &connection) &&
               connection == sought->connection;
    }
    while (bp_proc_take_line(&scan, &line)) {
        if (bp_proc_take_text(&line, "lock:") &&
            bp_file_lock_parse(line.next, (size_t)(line.end - line.next), &found) &&
            !found.is_wanted && found.kind == lock->kind && found.inode == lock->inode &&
            found.major == lock->major && found.minor == lock->minor) {
            return true;
        }
    }
    return false;
}

/* `pid` where a descriptor of that process, which is another one, is sought; else 0. */
static uint64_t holds(struct finder *finder, uint64_t own_pid, uint64_t pid,
                      const struct sought *sought) {
    bp_proc_list list = {.count = 0};
    bool is_holder = false;
    char fds[48];
    if (pid == own_pid) {
        return 0;
    }
    (void)snprintf(fds, sizeof fds, "/proc/%" PRIu64 "/fd", pid);
    (void)bp_proc_list_read(AT_FDCWD, fds, &list);
    for (size_t i = 0; i < list.count && !is_holder && has_time(finder); i++) {
        char name[24], target[sizeof((struct wait *)0)->is.path];
        (void)snprintf(name, sizeof name, "%" PRIu64, list.items[i].id);
        is_holder = read_path(pid, name, target, sizeof target) &&
                    strcmp(target, sought->path) == 0 &&
                    is_sought(pid, (uint32_t)list.items[i].id, sought);
    }
    bp_proc_list_release(&list);
    return is_holder ? pid : 0;
}

/*
 * A lock of a description (flock, OFD) is held by all that have the description: the process that
 * took it may have ended, or closed it. Its own children are searched, and then the newest
 * processes.
 */
static uint64_t find_description_holder(struct finder *finder, const bp_process_threads *process,
                                        const struct sought *sought) {
    bp_proc_list list = {.count = 0};
    struct wait near = {.target_count = 0};
    uint64_t holder = 0;
    if (sought->lock != NULL && sought->lock->pid > 0) {
        add_target(&near, (uint64_t)sought->lock->pid);
    }
    (void)list_children(process, &near);
    for (size_t i = 0; i < near.target_count && holder == 0; i++) {
        holder = holds(finder, process->pid, near.targets[i], sought);
    }
    if (holder == 0) {
        finder->cpu_end_ns += finder->has_asked ? 0 : all_cpu_ns;
        finder->has_asked = true;
        (void)bp_proc_list_read(AT_FDCWD, "/proc", &list);
        bp_proc_list_sort(&list);
    }
    for (size_t i = list.count; i > 0 && holder == 0 && has_time(finder); i--) {
        holder = holds(finder, process->pid, list.items[i - 1].id, sought);
    }
    bp_proc_list_release(&list);
    return holder;
}

static bool read_locks(struct finder *finder) {
    return read_kept(&finder->locks, "/proc/locks");
}

static void set_lock(struct wait *wait, bp_file_lock_kind kind, uint64_t holder) {
    wait->is.kind = BP_WAIT_FOR_FILE_LOCK;
    wait->is.lock = kind;
    if (kind == BP_FILE_LOCK_LEASE) {
        (void)snprintf(wait->text, sizeof wait->text, "a lease of a file");
    } else {
        char path[97];
        bp_utf8_copy_ends(path, sizeof path, wait->is.path, strlen(wait->is.path));
        (void)snprintf(wait->text, sizeof wait->text, "a lock (%s) of %s",
                       bp_file_lock_kind_name(kind), path);
    }
    wait->target_count = 0;
    add_target(wait, holder);
}

static bool find_file_lock(struct finder *finder, const bp_process_threads *process,
                           const bp_thread_state *thread, struct wait *wait) {
    bp_file_lock wanted = {.pid = (int64_t)process->pid}, holder;
    char link[64], name[24];
    if (!bp_file_lock_of_call(process->arch, &thread->read.syscall, &wait->is.fd, &wanted.kind)) {
        return false;
    }
    (void)snprintf(name, sizeof name, "%" PRIu32, wait->is.fd);
    (void)snprintf(link, sizeof link, "/proc/%" PRIu64 "/fd/%s", process->pid, name);
    struct statx found;
    if (statx(AT_FDCWD, link, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &found) != 0 ||
        !read_path(process->pid, name, wait->is.path, sizeof wait->is.path) ||
        !read_locks(finder)) {
        return false;
    }
    wanted.inode = found.stx_ino;
    wanted.major = found.stx_dev_major;
    wanted.minor = found.stx_dev_minor;
    if (!bp_file_lock_find_holder(finder->locks.text, finder->locks.bytes, &wanted, &holder)) {
        return false;
    }
    const struct sought sought = {.path = wait->is.path, .lock = &holder};
    uint64_t pid = holder.kind == BP_FILE_LOCK_POSIX
                       ? (uint64_t)(holder.pid > 0 ? holder.pid : 0)
                       : find_description_holder(finder, process, &sought);
    if (pid != 0) {
        set_lock(wait, holder.kind, pid);
    }
    return pid != 0;
}

/* open(2) waits in __break_lease (fs/locks.c) until the holder gives its lease up. */
static bool find_lease(struct finder *finder, const bp_process_threads *process,
                       const bp_thread_state *thread, struct wait *wait) {
    bp_file_lock lease;
    if (strcmp(thread->read.wait_channel, "__break_lease") != 0 || !read_locks(finder) ||
        !bp_file_lock_find_lease(finder->locks.text, finder->locks.bytes, &lease) ||
        lease.pid <= 0 || (uint64_t)lease.pid == process->pid) {
        return false;
    }
    set_lock(wait, BP_FILE_LOCK_LEASE, (uint64_t)lease.pid);
    return true;
}

/* --- mutexes, children, peers ------------------------------------------------------------- */

static bool find_mutex(const bp_thread_state *thread, struct wait *wait) {
    char text[4096];
    uint64_t pid;
    if (thread->other_owner != BP_FUTEX_OWNER_PROCESS) {
        return false;
    }
    ssize_t length =
        bp_proc_read_at(AT_FDCWD, text, sizeof text, "/proc/%" PRIu64 "/status", thread->wait.tid);
    if (length < 0 || !bp_proc_find_number(text, (size_t)length, "Tgid", 0, &pid)) {
        return false;
    }
    wait->is.kind = BP_WAIT_FOR_MUTEX;
    (void)snprintf(wait->text, sizeof wait->text, "a mutex in shared memory");
    add_target(wait, pid);
    return true;
}

/* One that is to be told of a stopped child (WUNTRACED), as a shell with job control, waits for
 * something else. */
static bool find_child(const bp_process_threads *process, const bp_thread_state *thread,
                       struct wait *wait) {
    enum { ALL_CHILDREN = 0, ONE_CHILD = 1, TOLD_OF_STOP = 2 };
    const uint64_t *arguments = thread->read.syscall.arguments;
    const char *name = thread->read.syscall.place == BP_THREAD_IN_CALL
                           ? bp_syscall_name(process->arch, thread->read.syscall.number)
                           : NULL;
    bool is_wait4 = name != NULL && strcmp(name, "wait4") == 0;
    bool is_waitid = name != NULL && strcmp(name, "waitid") == 0;
    uint64_t options = is_wait4 ? arguments[2] : arguments[3];
    int32_t which = (int32_t)(uint32_t)(is_wait4 ? arguments[0] : arguments[1]);
    if ((!is_wait4 && !is_waitid) || (options & TOLD_OF_STOP) != 0) {
        return false;
    }
    bool is_one = is_wait4 ? which > 0 : (uint32_t)arguments[0] == ONE_CHILD && which > 0;
    bool is_any = is_wait4 ? which == -1 : (uint32_t)arguments[0] == ALL_CHILDREN;
    wait->is.kind = BP_WAIT_FOR_CHILD;
    (void)snprintf(wait->text, sizeof wait->text, "the end of its child");
    if (is_one) {
        add_target(wait, (uint64_t)which);
    }
    return is_one || (is_any && list_children(process, wait));
}

/* The file that a thread of a further process waits on; NULL if it is no pipe or socket, and where
 * not all processes could be searched in time for its other end. One search is for all that are
 * known by then. */
static const bp_open_file *find_further_file(struct finder *finder,
                                             const bp_process_threads *process,
                                             const bp_thread_state *thread) {
    bp_fd_search search = {.is_cut = true};
    bool is_further = process >= finder->extra && process < finder->extra + finder->extra_count;
    if (!is_further || finder->has_searched || !has_time(finder)) {
        return NULL;
    }
    finder->has_searched = true;
    uint64_t left_ns = finder->cpu_end_ns - bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    (void)bp_threads_find_files(finder->extra, finder->extra_count, finder->deadline_ns, &search,
                                NULL);
    finder->cpu_end_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + left_ns;
    for (size_t i = 0; search.is_cut && i < finder->extra_count; i++) {
        for (size_t k = 0; k < finder->extra[i].thread_count; k++) {
            finder->extra[i].threads[k].file = NULL;
        }
    }
    return thread->file;
}

/* True if a thread that waits on the file may be woken by its own process: by another thread, or by
 * a handler of a signal, which often writes to a pipe and hardly ever reads from one. */
static bool may_wake_itself(const struct finder *finder, const bp_process_threads *process,
                            const bp_open_file *file) {
    bool may_handle = (process->caught_signals & ~process->blocked_signals) != 0;
    bool may_read = (file->info.flags & O_ACCMODE) != O_WRONLY;
    return !finder->sees_all_threads || !process->has_signals || (may_handle && may_read);
}

/* An eventfd is passed over: the kernel, too, writes to one. */
static bool find_peer(struct finder *finder, const bp_process_threads *process,
                      const bp_thread_state *thread, struct wait *wait) {
    const bp_open_file *file = thread->file;
    if (file == NULL && thread->has_fd_wait) {
        file = find_further_file(finder, process, thread);
    }
    bool is_timed = thread->fd_wait.has_limit && thread->fd_wait.is_timed;
    if (file == NULL || file->kind == BP_OPEN_FILE_EVENTFD || file->holder_count == 0 ||
        file->has_more_holders || is_timed) {
        return false;
    }
    for (size_t i = 0; i < file->holder_count; i++) {
        if (file->holders[i].pid != process->pid) {
            add_target(wait, file->holders[i].pid);
        } else if (may_wake_itself(finder, process, file)) {
            return false;
        }
    }
    wait->is.kind = BP_WAIT_FOR_PEER;
    wait->is_socket = file->kind == BP_OPEN_FILE_SOCKET;
    (void)snprintf(wait->text, sizeof wait->text, "%s %" PRIu32, bp_open_file_kind_name(file->kind),
                   file->number);
    return wait->target_count > 0;
}

/* --- file systems, semaphores ------------------------------------------------------------- */

/* The mount of the path that a call was given, or of its descriptor. */
static bool find_mount(struct finder *finder, const bp_process_threads *process,
                       const bp_thread_state *thread, const bp_file_call *call,
                       bp_mount *ret_mount) {
    char path[1024], fd[24], mounts[48];
    (void)snprintf(fd, sizeof fd, "%" PRId32, call->fd);
    (void)snprintf(mounts, sizeof mounts, "/proc/%" PRIu64 "/mountinfo", process->pid);
    bool has_path = call->path == 0 && read_path(process->pid, fd, path, sizeof path);
    return (has_path || thread->path != NULL) && read_kept(&finder->mounts, mounts) &&
           bp_mount_find(finder->mounts.text, finder->mounts.bytes, has_path ? path : thread->path,
                         ret_mount);
}

/* Finds the FUSE, NFS or SMB whose answer the kernel waits for, by the function that waits. A path
 * that leads there by a symbolic link is not recognised. */
static bool find_filesystem(struct finder *finder, const bp_process_threads *process,
                            const bp_thread_state *thread, struct wait *wait) {
    static const char *const functions[] = {
        "request_wait_answer", "fuse_", "__fuse_", "rpc_wait", "nfs",
        "wait_for_response",   "cifs",  NULL};
    static const char *const types[] = {"fuse", "nfs", "cifs", "smb3", NULL};
    bp_file_call call;
    bp_mount mount;
    if (!bp_array_has_start(functions, thread->read.wait_channel) ||
        !bp_file_call_find(process->arch, &thread->read.syscall, &call) ||
        !find_mount(finder, process, thread, &call, &mount) ||
        !bp_array_has_start(types, mount.type)) {
        return false;
    }
    wait->is.kind = BP_WAIT_FOR_FILESYSTEM;
    memcpy(wait->is.path, mount.point, sizeof wait->is.path);
    memcpy(wait->is.type, mount.type, sizeof wait->is.type);
    memcpy(wait->is.source, mount.source, sizeof wait->is.source);
    (void)snprintf(wait->text, sizeof wait->text, "the file system at %.96s", mount.point);
    if (mount.type[0] == 'f') {
        const struct sought sought = {.path = "/dev/fuse", .connection = mount.minor};
        wait->targets[0] = find_description_holder(finder, process, &sought);
        wait->target_count = wait->targets[0] != 0;
    }
    return true;
}

/* Semaphores are those of an IPC namespace. */
static bool find_semaphore(const bp_process_threads *process, const bp_thread_state *thread,
                           struct wait *wait) {
    char own[64] = "", other[64] = "", link[64];
    if (!thread->has_semaphore) {
        return false;
    }
    (void)snprintf(link, sizeof link, "/proc/%" PRIu64 "/ns/ipc", process->pid);
    bool is_same = readlink(link, other, sizeof other - 1) > 0 &&
                   readlink("/proc/self/ns/ipc", own, sizeof own - 1) > 0 &&
                   strcmp(own, other) == 0;
    wait->is.kind = BP_WAIT_FOR_SEMAPHORE;
    wait->is.set = (uint32_t)thread->read.syscall.arguments[0];
    wait->is.fd = thread->semaphore;
    (void)snprintf(wait->text, sizeof wait->text, "semaphore %" PRIu32 " of set %" PRIu32,
                   wait->is.fd, wait->is.set);
    int pid = is_same ? semctl((int)wait->is.set, (int)wait->is.fd, GETPID) : 0;
    if (pid > 0 && (uint64_t)pid != process->pid) {
        wait->is.has_holder_ended = kill(pid, 0) != 0 && errno == ESRCH;
        add_target(wait, (uint64_t)pid);
    }
    return true;
}

/* A server of PostgreSQL has its own locks, and says so in its title (ProcSleep, set_ps_display).
 */
static bool find_database_lock(const bp_process_threads *process, struct wait *wait) {
    char title[256];
    ssize_t length = strcmp(process->name, "postgres") != 0
                         ? -1
                         : bp_proc_read_at(AT_FDCWD, title, sizeof title - 1,
                                           "/proc/%" PRIu64 "/cmdline", process->pid);
    title[length < 0 ? 0 : length] = '\0';
    if (!bp_text_begins(title, "postgres: ") || !bp_text_ends(title, " waiting")) {
        return false;
    }
    wait->is.kind = BP_WAIT_FOR_DATABASE_LOCK;
    (void)snprintf(wait->text, sizeof wait->text, "a lock of its database, by its title");
    return true;
}

static bool is_lock(bp_process_wait_kind kind) {
    return kind == BP_WAIT_FOR_FILE_LOCK || kind == BP_WAIT_FOR_MUTEX ||
           kind == BP_WAIT_FOR_DATABASE_LOCK;
}

/* True if both have the socket of a call as the same descriptor, as of one that began the two. */
static bool has_same_socket(const bp_process_threads *one, const bp_process_threads *other,
                            const bp_thread_syscall *call) {
    char fd[24], socket[2][64];
    (void)snprintf(fd, sizeof fd, "%d", (int)call->arguments[0]);
    return read_path(one->pid, fd, socket[0], sizeof socket[0]) &&
           read_path(other->pid, fd, socket[1], sizeof socket[1]) &&
           strcmp(socket[0], socket[1]) == 0;
}

/* True if workers of a server take turns to accept, as those of Apache: the one that has the lock
 * is of the same name, and waits for a client of both. A second server is none of them. */
static bool waits_for_turn(struct finder *finder, const bp_process_threads *process,
                           const struct wait *wait) {
    bool is_turn = is_lock(wait->is.kind) || wait->is.kind == BP_WAIT_FOR_SEMAPHORE;
    const bp_process_threads *holder =
        is_turn && wait->target_count == 1 ? find_process(finder, wait->targets[0]) : NULL;
    bool accepts = false;
    for (size_t i = 0; holder != NULL && !accepts && i < holder->thread_count; i++) {
        const bp_thread_syscall *taken = &holder->threads[i].read.syscall;
        const char *call =
            taken->place == BP_THREAD_IN_CALL ? bp_syscall_name(holder->arch, taken->number) : NULL;
        accepts = call != NULL && bp_text_begins(call, "accept") &&
                  has_same_socket(holder, process, taken);
    }
    return accepts && strcmp(holder->name, process->name) == 0;
}

static bool find_wait(struct finder *finder, const bp_process_threads *process,
                      const bp_thread_state *thread, struct wait *wait) {
    *wait = (struct wait){.target_count = 0};
    return bp_thread_has(&thread->read, BP_GROUP_SYSCALL) &&
           (find_database_lock(process, wait) || find_mutex(thread, wait) ||
            find_file_lock(finder, process, thread, wait) ||
            find_lease(finder, process, thread, wait) || find_peer(finder, process, thread, wait) ||
            find_child(process, thread, wait) || find_filesystem(finder, process, thread, wait) ||
            find_semaphore(process, thread, wait)) &&
           !waits_for_turn(finder, process, wait);
}

/* --- chains ------------------------------------------------------------------------------- */

struct chain {
    bp_wait_link links[BP_WAIT_LINK_MAX];
    size_t count;
    uint64_t origin; /* the process that a circle would come back to; 0: it has several threads */
};

static bool has_deadlock(const bp_process_threads *process) {
    unsigned char *is_seen = calloc(process->thread_count, 1);
    bool has_it = is_seen != NULL && process->thread_count == 1 &&
                  bp_deadlock_next(process, is_seen) != SIZE_MAX;
    free(is_seen);
    return has_it;
}

static bool is_in_chain(const struct chain *chain, uint64_t pid) {
    bool is_in = pid == chain->origin;
    for (size_t i = 0; i < chain->count; i++) {
        is_in = is_in || chain->links[i].pid == pid;
    }
    return is_in;
}

static bool follow_all(struct finder *finder, const struct wait *wait, struct chain *chain);

/* True if a thread waits without a time limit for its own process, and no handler of a signal may
 * wake it. Faults come from a thread that runs, 32 and 33 are of the C library
 * (nptl/internal-signals.h), and SIGINT is Ctrl-C, which Python always handles. */
static bool waits_for_own_thread(const bp_process_threads *process, const bp_thread_state *thread) {
    static const unsigned char others[] = {SIGILL,  SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV,
                                           SIGPIPE, SIGSYS,  SIGINT,  32,     33};
    uint64_t handled = process->caught_signals & ~process->blocked_signals;
    for (size_t i = 0; i < sizeof others; i++) {
        handled &= ~((uint64_t)1 << (others[i] - 1));
    }
    return thread->is_futex_own && thread->read.syscall.arguments[3] == 0 && process->has_signals &&
           handled == 0;
}

/* True if a thread that waits in the same way for the same processes was there before. */
static bool is_followed(const struct wait *wait, uint64_t *followed, size_t *count) {
    uint64_t hash = XXH3_64bits_withSeed(wait->targets, wait->target_count * sizeof *wait->targets,
                                         2 * (uint64_t)wait->is.kind + wait->is_socket);
    for (size_t i = 0; i < *count; i++) {
        if (followed[i] == hash) {
            return true;
        }
    }
    followed[(*count)++] = hash;
    return false;
}

/*
 * Appends a process, and what it waits for. True where the chain ends in something that does not go
 * on by itself: a stopped process, a lock that another one holds, a deadlock, or its own beginning.
 * Of several threads each has to be stuck, or to wait for the others; the longest chain stays.
 */
// NOLINTNEXTLINE(misc-no-recursion): no deeper than a chain has links
static bool follow(struct finder *finder, uint64_t pid, struct chain *chain) {
    enum { threads_max = 16 };
    bool is_circle = is_in_chain(chain, pid), is_bad = false;
    if (chain->count == BP_WAIT_LINK_MAX || pid == (uint64_t)getpid()) {
        return false;
    }
    bp_wait_link *link = &chain->links[chain->count++];
    name_process(pid, link);
    if (is_circle || link->state == 'T' || link->state == 't') {
        return true;
    }
    const bp_process_threads *process =
        link->state == 'S' && has_time(finder) ? find_process(finder, pid) : NULL;
    bool is_known = process != NULL && process->passed_over_count == 0;
    if (is_known && has_deadlock(process)) {
        (void)snprintf(link->waits_for, sizeof link->waits_for, "a lock that it holds itself");
        return true;
    }
    const struct chain begin = *chain;
    size_t count = is_known ? process->thread_count : 0, followed_count = 0;
    uint64_t followed[threads_max]; /* hashes of what they wait for */
    for (size_t i = 0; i < count && count <= threads_max; i++) {
        const bp_thread_state *thread = &process->threads[i];
        struct chain next = begin;
        struct wait wait;
        finder->sees_all_threads = true;
        bool is_found = find_wait(finder, process, thread, &wait);
        if (!(is_found || waits_for_own_thread(process, thread)) ||
            !bp_thread_has_stayed(pid, thread)) {
            *chain = begin;
            return false;
        }
        if (!is_found || is_followed(&wait, followed, &followed_count)) {
            continue;
        }
        next.links[begin.count - 1].kind = wait.is.kind;
        memcpy(next.links[begin.count - 1].waits_for, wait.text, sizeof wait.text);
        is_bad = follow_all(finder, &wait, &next) || is_lock(wait.is.kind);
        bool is_longest = chain->count == begin.count || next.count > chain->count;
        *chain = is_longest ? next : *chain;
        if (!is_bad) {
            *chain = count == 1 ? next : begin;
            return false;
        }
    }
    return is_bad;
}

/*
 * All that it may be helped by have to be stuck, or be in the chain of one that is. The longest
 * chain stays. Two that read from one socket are no circle: each may wait there for the end of the
 * other alone, and for something else by a signal.
 */
// NOLINTNEXTLINE(misc-no-recursion): no deeper than a chain has links
static bool follow_all(struct finder *finder, const struct wait *wait, struct chain *chain) {
    enum { pipeline_max = 4 };
    const struct chain begin = *chain;
    bool is_pipeline = wait->target_count > 1 && wait->target_count <= pipeline_max;
    for (size_t i = 0; is_pipeline && i < wait->target_count; i++) {
        (void)find_process(finder, wait->targets[i]); /* before the one search */
    }
    bool is_stuck[target_max] = {false}, is_best_stuck = false;
    for (size_t i = 0; i < wait->target_count; i++) {
        struct chain next = begin;
        is_stuck[i] = !(wait->is_socket && is_in_chain(&begin, wait->targets[i])) &&
                      follow(finder, wait->targets[i], &next);
        bool is_longer = is_stuck[i] == is_best_stuck && next.count > chain->count;
        bool is_best = is_longer || (is_stuck[i] && !is_best_stuck);
        if (is_best) {
            *chain = next;
            is_best_stuck = is_stuck[i];
        }
    }
    for (size_t i = 0; i < wait->target_count; i++) {
        if (!is_stuck[i] &&
            (chain->count == begin.count || chain->links[begin.count].pid == wait->targets[i] ||
             !is_in_chain(chain, wait->targets[i]))) {
            return false;
        }
    }
    return wait->target_count > 0;
}

/* Worth knowing also where no process is known for it. */
static bool is_object(bp_process_wait_kind kind) {
    return kind == BP_WAIT_FOR_FILESYSTEM || kind == BP_WAIT_FOR_SEMAPHORE;
}

/* False without memory. */
static bool find_process_wait(struct finder *finder, const bp_process_threads *process,
                              bp_thread_state *thread) {
    struct wait wait;
    finder->sees_all_threads = process->thread_count == 1 && process->passed_over_count == 0;
    struct chain chain = {.origin = finder->sees_all_threads ? process->pid : 0};
    if (!find_wait(finder, process, thread, &wait)) {
        return true;
    }
    bool is_stuck = follow_all(finder, &wait, &chain);
    bool is_known = chain.count > 0 && (is_stuck || is_lock(wait.is.kind));
    if (!(is_known || is_object(wait.is.kind)) || !bp_thread_has_stayed(process->pid, thread)) {
        return true;
    }
    bp_process_wait *found = calloc(1, sizeof *found);
    if (found == NULL) {
        return false;
    }
    *found = wait.is;
    found->link_count = chain.count;
    memcpy(found->links, chain.links, sizeof found->links);
    thread->process_wait = found;
    return true;
}

bugpack_status bp_threads_find_processes(bp_process_threads *processes, size_t count,
                                         uint64_t deadline_ns, bugpack_error *error) {
    struct finder *finder = calloc(1, sizeof *finder);
    if (finder == NULL) {
        return bp_fail_memory(error, "find what threads wait for");
    }
    finder->processes = processes;
    finder->process_count = count;
    finder->deadline_ns = deadline_ns;
    finder->cpu_end_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_max_ns;
    bool has_memory = true;
    for (size_t i = 0; has_memory && i < count; i++) {
        if (processes[i].tracer.pid != 0) {
            name_process(processes[i].tracer.pid, &processes[i].tracer);
        }
        for (size_t j = 0; has_memory && j < processes[i].thread_count && has_time(finder); j++) {
            has_memory = find_process_wait(finder, &processes[i], &processes[i].threads[j]);
        }
    }
    for (size_t i = 0; i < finder->extra_count; i++) {
        bp_process_threads_release(&finder->extra[i]);
    }
    free(finder->locks.text);
    free(finder->mounts.text);
    free(finder);
    return has_memory ? BUGPACK_OK : bp_fail_memory(error, "find what threads wait for");
}
