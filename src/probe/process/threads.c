#include "process/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "model/threads.h"
#include "platform/linux/files.h"
#include "platform/linux/mapped_files.h"
#include "platform/linux/proc_text.h"
#include "platform/linux/thread_reader.h"
#include "process/elf_object.h"
#include "process/java_threads.h"
#include "process/open_files.h"
#include "process/shared_futex.h"
#include "process/thread_pointers.h"

/* Lines of 80 bytes, of more watches than are looked at. */
static const size_t watches_bytes_max = 4096;

enum { monitor_max = 64 };

/* The id of a thread as the process itself counts, and the index of the thread. */
struct own_id {
    uint64_t tid, index;
};

struct reader {
    bp_thread_reader files; /* in /proc/<pid>/task */
    bp_process_threads process;
    struct own_id *ids; /* of the threads whose own id is known; ascending when waits are found */
    size_t id_count;
    bool counts_as_we_do; /* its ids are ours: it is in our pid namespace */
    bp_futex_process futexes;
    size_t epoll_count;
    bool has_java;
    bp_java_layout java;
    int memory_fd; /* stays with the program that it was opened on; -1: nothing can be read */
};

static const struct own_id *find_id(const struct reader *reader, uint64_t tid) {
    return bp_array_find_u64(tid, reader->ids, reader->id_count, sizeof *reader->ids);
}

static bool has_thread(void *context, uint64_t tid) {
    return find_id(context, tid) != NULL;
}

/* Only where the process counts its ids as we do. Where processes are hidden from us (hidepid in
 * proc(5)), kill(2) still knows them. */
static bp_futex_owner find_other(void *context, uint64_t tid) {
    struct reader *reader = context;
    uint64_t pid;
    if (!reader->counts_as_we_do) {
        return BP_FUTEX_OWNER_UNKNOWN;
    }
    ssize_t length = bp_proc_read_at(AT_FDCWD, reader->files.text, BP_THREAD_TEXT_BYTES,
                                     "/proc/%" PRIu64 "/status", tid);
    if (length < 0) {
        bool is_gone = bp_proc_is_gone(errno) && kill((pid_t)tid, 0) != 0 && errno == ESRCH;
        return is_gone ? BP_FUTEX_OWNER_ENDED : BP_FUTEX_OWNER_UNKNOWN;
    }
    bool is_other = bp_proc_find_number(reader->files.text, (size_t)length, "Tgid", 0, &pid) &&
                    pid != reader->process.pid;
    return is_other ? BP_FUTEX_OWNER_PROCESS : BP_FUTEX_OWNER_UNKNOWN;
}

/* At an address that a process made up: beyond INT64_MAX there is no memory of a program. */
static bool read_memory(void *context, uint64_t address, void *out, size_t bytes) {
    const struct reader *reader = context;
    return reader->memory_fd >= 0 && address <= (uint64_t)INT64_MAX - bytes &&
           bp_read_exactly(reader->memory_fd, address, out, bytes);
}

/* The system calls of a 32-bit program have other numbers. */
static bp_syscall_arch arch_of(int thread_fd, bool *ret_is_static_glibc) {
    bp_elf_object executable;
    int fd = openat(thread_fd, "exe", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_ours = fd >= 0 && bp_elf_object_read(fd, &executable) == BP_ELF_OK;
    *ret_is_static_glibc = is_ours && bp_elf_is_static_glibc(&executable);
    bp_file_close(fd);
    return is_ours ? BP_SYSCALL_OWN_ARCH : BP_SYSCALL_UNKNOWN;
}

/* libc.so.6 or, before 2.34, also libc-2.31.so: with a symbol that musl does not have. */
static bool read_glibc(int thread_fd, bp_mapped_file *file, bp_futex_process *process) {
    bp_elf_object libc;
    bp_libc_layout layout;
    Elf64_Sym symbol;
    bool is_there;
    const char *name = bp_file_base_name(file->path);
    if (strncmp(name, "libc.so.6", 9) != 0 && strncmp(name, "libc-2.", 7) != 0) {
        return false;
    }
    int fd = bp_mapped_file_open(thread_fd, file, &is_there);
    bool is_glibc = fd >= 0 && bp_elf_object_read(fd, &libc) == BP_ELF_OK &&
                    bp_elf_find_symbol(&libc, "gnu_get_libc_version", &symbol);
    if (is_glibc && bp_libc_layout_read(&libc, &layout)) {
        process->has_descriptors = true;
        process->descriptor_tid = layout.descriptor_tid;
        process->descriptor_link = layout.descriptor_link;
        process->link_next = layout.link_next;
    }
    bp_file_close(fd);
    return is_glibc;
}

static bool read_java(struct reader *reader, int thread_fd, bp_mapped_file *file) {
    bp_elf_object libjvm;
    uint64_t code;
    bool is_there;
    if (strcmp(bp_file_base_name(file->path), "libjvm.so") != 0) {
        return false;
    }
    int fd = bp_mapped_file_open(thread_fd, file, &is_there);
    reader->java = (bp_java_layout){.read = read_memory, .context = reader};
    bool is_java = fd >= 0 && bp_elf_object_read(fd, &libjvm) == BP_ELF_OK &&
                   bp_elf_code_address(&libjvm, &code) &&
                   bp_java_layout_read(&libjvm, file->code_start - code, &reader->java);
    bp_file_close(fd);
    return is_java;
}

/* A futex without the flag for this is private all the same, unless it is in shared memory: glibc
 * joins threads by such a one, and libstdc++ waits so for a future. */
static void find_own_futexes(bp_process_threads *process, int thread_fd,
                             const bp_mapped_files *files) {
    bool may_search = process->pid != (uint64_t)getpid(); /* a host has better things to do */
    for (size_t i = 0; i < process->thread_count; i++) {
        bp_thread_state *thread = &process->threads[i];
        uint64_t address;
        if (!bp_thread_has(&thread->read, BP_GROUP_SYSCALL) ||
            !bp_futex_wait_is_possible(process->arch, &thread->read.syscall)) {
            continue;
        }
        bool is_private = bp_futex_wait_is_private(&thread->read.syscall, &address);
        bool is_shared = !files->is_known || files->cut != NULL;
        for (size_t k = 0; !is_private && k < files->shared_count; k++) {
            is_shared =
                is_shared || (files->shared[k].start <= address && address < files->shared[k].end);
        }
        thread->is_futex_own = is_private || !is_shared;
        if (may_search && !thread->is_futex_own && thread->read.syscall.arguments[3] == 0) {
            may_search = false; /* one search for each process */
            thread->is_futex_shared =
                bp_shared_futex_is_alone(thread_fd, process->pid, address, thread->semaphore_name);
            thread->is_futex_own = thread->is_futex_shared && thread->semaphore_name[0] == '\0';
        }
    }
}

static bugpack_status find_libraries(struct reader *reader, int thread_fd, bugpack_error *error) {
    bp_mapped_files files = {0};
    bp_futex_process *process = &reader->futexes;
    int result = bp_mapped_files_read(thread_fd, false, &files);
    for (size_t i = 0; result == 0 && i < files.count; i++) {
        process->has_glibc = process->has_glibc || read_glibc(thread_fd, &files.items[i], process);
        reader->has_java = reader->has_java || read_java(reader, thread_fd, &files.items[i]);
    }
    find_own_futexes(&reader->process, thread_fd, &files);
    if (result == 0) {
        bp_mapped_files_release(&files);
    }
    return result == ENOMEM ? bp_fail_memory(error, "look at the files of a process") : BUGPACK_OK;
}

static bool is_any(const bp_process_threads *process,
                   bool (*is_possible)(bp_syscall_arch arch, const bp_thread_syscall *syscall)) {
    for (size_t i = 0; i < process->thread_count; i++) {
        const bp_thread_state *thread = &process->threads[i];
        if (bp_thread_has(&thread->read, BP_GROUP_SYSCALL) &&
            is_possible(process->arch, &thread->read.syscall)) {
            return true;
        }
    }
    return false;
}

/* True if it was awake for less than 0.1 ms at a time since it began. */
static bool wakes_for_moments(const bp_thread_reading *thread) {
    enum { switches_min = 100, moment_ns = 100000 };
    const uint64_t *counters = thread->counters;
    uint64_t switches = counters[BP_COUNTER_VOLUNTARY_SWITCHES];
    return bp_thread_has(thread, BP_GROUP_STATUS) && switches >= switches_min &&
           counters[BP_COUNTER_USER_CPU] + counters[BP_COUNTER_SYSTEM_CPU] <= switches * moment_ns;
}

/* A thread that wakes a thousand times a second may be awake whenever it is looked at, as its turn
 * on a busy machine comes with ours: it is looked at again, for what it waits in. Not for a lock:
 * that all wait for one at the same instant is a finding. */
static void read_calls_again(struct reader *reader) {
    static const uint32_t groups = 1u << BP_GROUP_SYSCALL | 1u << BP_GROUP_WAIT_CHANNEL;
    static const uint64_t pause_ns = 200000;
    enum { looks_max = 64 }; /* at all threads */
    bp_process_threads *process = &reader->process;
    int looks = 0;
    for (size_t i = 0; i < process->thread_count; i++) {
        bp_thread_reading *thread = &process->threads[i].read, now;
        bool is_wanted = bp_thread_has(thread, BP_GROUP_SYSCALL) && wakes_for_moments(thread) &&
                         !bp_proc_has_thread_ended(&thread->stat);
        for (; looks < looks_max && is_wanted && thread->syscall.place == BP_THREAD_RUNS; looks++) {
            bp_clock_sleep_until(bp_clock_monotonic_ns() + pause_ns);
            bp_thread_read(&reader->files, thread->tid, groups, &now);
            bool may_be_lock = bp_futex_wait_is_possible(process->arch, &now.syscall) &&
                               now.syscall.arguments[3] == 0; /* without a limit of time */
            if (now.syscall.place == BP_THREAD_IN_CALL && !may_be_lock) {
                thread->syscall = now.syscall;
                memcpy(thread->wait_channel, now.wait_channel, sizeof now.wait_channel);
                thread->stat.state = 'S';
            }
        }
    }
}

/*
 * Sets the arch of the process. Its memory and its files are looked at only if a thread may wait
 * for a lock, its memory also if a call is readable. What cannot be read is nothing that is waited
 * for. NO_MEMORY.
 */
static bugpack_status open_memory(struct reader *reader, bugpack_error *error) {
    bp_process_threads *process = &reader->process;
    bugpack_status status = BUGPACK_OK;
    bool has_glibc = false;
    int thread_fd = -1;
    for (size_t i = 0; thread_fd < 0 && i < process->thread_count; i++) {
        const bp_thread_reading *thread = &process->threads[i].read;
        if (!bp_proc_has_thread_ended(&thread->stat)) {
            thread_fd = bp_proc_open_at(reader->files.dir_fd, O_PATH | O_DIRECTORY, "%" PRIu64,
                                        thread->tid);
        }
    }
    process->arch = thread_fd < 0 ? BP_SYSCALL_UNKNOWN : arch_of(thread_fd, &has_glibc);
    read_calls_again(reader);
    reader->futexes = (bp_futex_process){.arch = process->arch,
                                         .has_glibc = has_glibc,
                                         .read = read_memory,
                                         .has_thread = has_thread,
                                         .find_other = find_other,
                                         .context = reader};
    bool has_locks = is_any(process, bp_futex_wait_is_possible);
    if (has_locks || is_any(process, bp_call_is_readable)) {
        reader->memory_fd = openat(thread_fd, "mem", O_RDONLY | O_CLOEXEC);
    }
    if (has_locks) {
        status = find_libraries(reader, thread_fd, error);
        qsort(reader->ids, reader->id_count, sizeof *reader->ids, bp_array_compare_u64);
        reader->counts_as_we_do = reader->id_count > 0;
        for (size_t i = 0; i < reader->id_count; i++) {
            const struct own_id *id = &reader->ids[i];
            reader->counts_as_we_do =
                reader->counts_as_we_do && process->threads[id->index].read.tid == id->tid;
        }
    } else {
        reader->id_count = 0;
    }
    bp_file_close(thread_fd);
    return status;
}

/* Only root may read kernel stacks: a first refusal is enough. */
static void read_thread(struct reader *reader, uint64_t tid) {
    static const uint32_t groups = 1u << BP_GROUP_STAT | 1u << BP_GROUP_STATUS |
                                   1u << BP_GROUP_SYSCALL | 1u << BP_GROUP_WAIT_CHANNEL;
    bp_process_threads *process = &reader->process;
    bp_thread_reading *thread = &process->threads[process->thread_count].read;
    uint32_t kernel_stack = process->kernel_stack_errno == 0 ? 1u << BP_GROUP_KERNEL_STACK : 0;
    bp_thread_read(&reader->files, tid, groups | kernel_stack, thread);
    if (thread->errnos[BP_GROUP_STAT] == ESRCH) {
        process->vanished_count++;
        return;
    }
    int syscall_errno = thread->errnos[BP_GROUP_SYSCALL];
    if (syscall_errno != 0 && syscall_errno != ESRCH) {
        process->unread_count++;
        process->unread_errno = syscall_errno;
    }
    if (thread->errnos[BP_GROUP_KERNEL_STACK] != ESRCH && kernel_stack != 0) {
        process->kernel_stack_errno = thread->errnos[BP_GROUP_KERNEL_STACK];
    }
    if (thread->own_tid != 0) {
        process->tracer.pid = thread->tracer_pid;
        reader->ids[reader->id_count++] = (struct own_id){thread->own_tid, process->thread_count};
    }
    if (thread->has_signals) {
        uint64_t others = process->has_signals ? process->blocked_signals : UINT64_MAX;
        process->caught_signals = thread->caught_signals;
        process->blocked_signals = others & thread->blocked_signals;
        process->has_signals = true;
    }
    process->thread_count++;
}

static bugpack_status read_threads(struct reader *reader, uint64_t deadline_ns,
                                   bugpack_error *error) {
    bp_process_threads *process = &reader->process;
    bp_proc_list list;
    int result = bp_proc_list_read(reader->files.dir_fd, NULL, &list);
    process->threads = calloc(list.count + 1, sizeof *process->threads);
    reader->ids = calloc(list.count + 1, sizeof *reader->ids);
    if (process->threads == NULL || reader->ids == NULL) {
        result = ENOMEM;
    }
    if (result == 0 && list.count > 0) {
        bp_proc_stat first = {.pid = list.items[0].id}; /* the kernel lists it first */
        (void)bp_proc_read_stat(reader->files.dir_fd, &first, "%" PRIu64 "/stat", first.pid);
        process->birth = first.start_ticks;
        memcpy(process->name, first.name, sizeof process->name);
        bp_proc_list_sort(&list);
        for (size_t i = 0; i < list.count; i++) {
            if (bp_clock_monotonic_ns() > deadline_ns) {
                process->passed_over_count = list.count - i;
                break;
            }
            read_thread(reader, list.items[i].id);
        }
    }
    bp_proc_list_release(&list);
    if (result == 0 && process->thread_count == 0 && process->passed_over_count == 0) {
        result = ESRCH;
    }
    if (result == ENOMEM) {
        return bp_fail_memory(error, "list the threads of a process");
    }
    return result == 0
               ? BUGPACK_OK
               : bp_fail_process_errno(error, result, "cannot list the threads of process %" PRIu64,
                                       process->pid);
}

static bool has_stayed(const bp_thread_reader *files, const bp_thread_state *thread) {
    return bp_thread_has(&thread->read, BP_GROUP_STATUS) &&
           bp_thread_reader_has_stayed(files, &thread->read);
}

/* The waits for monitors of Java, which its virtual machine knows of. */
struct monitors {
    bp_java_wait waits[monitor_max];
    size_t count;
};

static void read_monitors(struct reader *reader, struct monitors *ret_monitors) {
    ret_monitors->count =
        !reader->has_java ? 0 : bp_java_find_waits(&reader->java, ret_monitors->waits, monitor_max);
}

static void take_monitors(struct reader *reader) {
    struct monitors monitors;
    read_monitors(reader, &monitors);
    for (size_t i = 0; i < monitors.count; i++) {
        const bp_java_wait *wait = &monitors.waits[i];
        const struct own_id *waiter = find_id(reader, wait->tid);
        const struct own_id *owner = find_id(reader, wait->owner_tid);
        bp_thread_state *thread = waiter != NULL ? &reader->process.threads[waiter->index] : NULL;
        if (thread != NULL && owner != NULL && bp_thread_has(&thread->read, BP_GROUP_SYSCALL) &&
            !thread->is_waiting &&
            bp_futex_wait_is_possible(reader->process.arch, &thread->read.syscall)) {
            thread->is_waiting = true;
            thread->waits_for = (size_t)owner->index;
            thread->wait = (bp_futex_wait){.kind = BP_FUTEX_KIND_MONITOR,
                                           .owner = BP_FUTEX_OWNER_THREAD,
                                           .address = wait->monitor,
                                           .tid = wait->owner_tid};
        }
    }
}

static bool has_monitor(const struct reader *reader, const struct monitors *monitors,
                        const bp_thread_state *thread) {
    for (size_t i = 0; i < monitors->count; i++) {
        const bp_java_wait *wait = &monitors->waits[i];
        const struct own_id *waiter = find_id(reader, wait->tid);
        if (waiter != NULL && &reader->process.threads[waiter->index] == thread) {
            return wait->monitor == thread->wait.address && wait->owner_tid == thread->wait.tid;
        }
    }
    return false;
}

/* True if both readings agree. */
static bool still_waits(struct reader *reader, const struct monitors *monitors,
                        const bp_thread_state *thread) {
    bp_futex_wait wait;
    if (thread->wait.kind == BP_FUTEX_KIND_MONITOR) {
        return has_monitor(reader, monitors, thread) && has_stayed(&reader->files, thread);
    }
    return bp_futex_wait_find(&reader->futexes, &thread->read.syscall, &wait) &&
           wait.kind == thread->wait.kind && wait.tid == thread->wait.tid &&
           wait.owner == thread->wait.owner && has_stayed(&reader->files, thread);
}

/* Reads what an epoll watches. */
static bool take_watches(struct reader *reader, bp_thread_state *thread) {
    bp_fd_wait *wait = &thread->fd_wait;
    ssize_t length = bp_proc_read_at(reader->files.dir_fd, reader->files.text, watches_bytes_max,
                                     "%" PRIu64 "/fdinfo/%" PRIu32, thread->read.tid, wait->fds[0]);
    return length > 0 && (size_t)length < watches_bytes_max &&
           bp_fd_wait_take_watches(wait, reader->files.text, (size_t)length);
}

/* Reads a text of the process that ends in a NUL, a piece at a time: the page behind it may not be
 * there. */
static bool read_text(struct reader *reader, uint64_t address, char *out, size_t out_bytes) {
    enum { piece_bytes = 256 };
    for (size_t used = 0; used < out_bytes;) {
        size_t bytes = piece_bytes - (address + used) % piece_bytes;
        bytes = bytes < out_bytes - used ? bytes : out_bytes - used;
        if (!read_memory(reader, address + used, out + used, bytes)) {
            return false;
        }
        if (memchr(out + used, '\0', bytes) != NULL) {
            return true;
        }
        used += bytes;
    }
    return false;
}

/* The path that a call was given, of a thread that has stayed in it. */
static void find_path(struct reader *reader, bp_thread_state *thread) {
    char text[1024], link[64], directory[1024];
    bp_file_call call;
    if (!bp_file_call_find(reader->process.arch, &thread->read.syscall, &call) || call.path == 0 ||
        !read_text(reader, call.path, text, sizeof text) || !has_stayed(&reader->files, thread)) {
        return;
    }
    if (text[0] == '/') {
        thread->path = strdup(text);
        return;
    }
    (void)snprintf(link, sizeof link,
                   call.fd == BP_FILE_CALL_CWD ? "%" PRIu64 "/cwd" : "%" PRIu64 "/fd/%d",
                   thread->read.tid, call.fd);
    ssize_t length = readlinkat(reader->files.dir_fd, link, directory, sizeof directory);
    if (length > 0 && length < (ssize_t)sizeof directory &&
        asprintf(&thread->path, "%.*s%s%s", (int)length, directory, text[0] != '\0' ? "/" : "",
                 text) < 0) {
        thread->path = NULL;
    }
}

/* Reads the link of the descriptor that the thread waits on, in the thread's own table
 * (unshare(2)). -1 with errno. */
static ssize_t read_fd_link(const bp_thread_reader *files, const bp_thread_state *thread,
                            char *target, size_t target_bytes) {
    char link[64];
    (void)snprintf(link, sizeof link, "%" PRIu64 "/fd/%" PRIu32, thread->read.tid,
                   thread->fd_wait.fds[0]);
    return readlinkat(files->dir_fd, link, target, target_bytes);
}

/* On one descriptor alone, or on several, or on what an epoll watches. */
static void find_fd_wait(struct reader *reader, bp_thread_state *thread) {
    enum { epoll_max = 32 };
    bp_syscall_arch arch = reader->process.arch;
    bp_fd_wait *wait = &thread->fd_wait;
    if (!bp_thread_has(&thread->read, BP_GROUP_SYSCALL) ||
        !bp_fd_wait_find(arch, &thread->read.syscall, read_memory, reader, wait)) {
        return;
    }
    thread->has_fd_wait = !wait->is_epoll && wait->count == 1;
    if (thread->has_fd_wait) {
        char target[64];
        (void)bp_unix_connect_find(arch, &thread->read.syscall, read_memory, reader,
                                   thread->connects_to);
        thread->is_fd_closed = read_fd_link(&reader->files, thread, target, sizeof target) < 0 &&
                               errno == ENOENT && has_stayed(&reader->files, thread);
    } else if (wait->is_epoll) {
        thread->does_poll = reader->epoll_count++ < epoll_max && take_watches(reader, thread);
    } else {
        thread->does_poll = true;
    }
}

/*
 * All waits are found before the first is checked again. A thread that has not run between its two
 * checks waited all the while, so all that is left held at one instant.
 */
static void find_waits(struct reader *reader) {
    bp_process_threads *process = &reader->process;
    for (size_t i = 0; i < process->thread_count; i++) {
        bp_thread_state *thread = &process->threads[i];
        thread->is_waiting =
            bp_thread_has(&thread->read, BP_GROUP_SYSCALL) &&
            bp_futex_wait_find(&reader->futexes, &thread->read.syscall, &thread->wait);
        if (thread->is_waiting && thread->wait.owner == BP_FUTEX_OWNER_THREAD) {
            thread->waits_for = (size_t)find_id(reader, thread->wait.tid)->index;
        }
        find_fd_wait(reader, thread);
        if (bp_thread_has(&thread->read, BP_GROUP_SYSCALL)) {
            uint32_t readers = bp_futex_wait_readers(&reader->futexes, &thread->read.syscall);
            thread->reader_count = readers > 0 && has_stayed(&reader->files, thread) ? readers : 0;
            find_path(reader, thread);
            thread->has_semaphore = bp_semaphore_find(process->arch, &thread->read.syscall,
                                                      read_memory, reader, &thread->semaphore);
        }
    }
    take_monitors(reader);
    struct monitors again;
    read_monitors(reader, &again);
    for (size_t i = 0; i < process->thread_count; i++) {
        bp_thread_state *thread = &process->threads[i];
        bool is_held = thread->is_waiting && still_waits(reader, &again, thread);
        thread->is_waiting = is_held && thread->wait.owner == BP_FUTEX_OWNER_THREAD;
        thread->other_owner =
            is_held && !thread->is_waiting ? thread->wait.owner : BP_FUTEX_OWNER_UNKNOWN;
    }
}

static bugpack_status open_files(uint64_t pid, bp_thread_reader *ret_files, bugpack_error *error) {
    int fd = pid == (uint64_t)getpid()
                 ? open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                 : bp_proc_open_at(AT_FDCWD, O_RDONLY | O_DIRECTORY, "/proc/%" PRIu64 "/task", pid);
    if (fd < 0) {
        return bp_fail_process_errno(error, errno, "cannot list the threads of process %" PRIu64,
                                     pid);
    }
    *ret_files = (bp_thread_reader){.dir_fd = fd,
                                    .task = "",
                                    .ticks_per_sec = (uint64_t)sysconf(_SC_CLK_TCK),
                                    .text = malloc(BP_THREAD_TEXT_BYTES),
                                    .text_bytes = BP_THREAD_TEXT_BYTES};
    return ret_files->text != NULL ? BUGPACK_OK
                                   : bp_fail_memory(error, "read the threads of a process");
}

static void close_files(bp_thread_reader *files) {
    bp_file_close(files->dir_fd);
    free(files->text);
}

bugpack_status bp_threads_read(pid_t pid, uint64_t deadline_ns, bp_process_threads *ret_process,
                               bugpack_error *error) {
    struct reader reader = {.process = {.pid = (uint64_t)(pid == 0 ? getpid() : pid)},
                            .files = {.dir_fd = -1},
                            .memory_fd = -1};
    bugpack_status status = open_files(reader.process.pid, &reader.files, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = read_threads(&reader, deadline_ns, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = open_memory(&reader, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    find_waits(&reader);
    *ret_process = reader.process;
    reader.process = (bp_process_threads){0};
out:
    bp_process_threads_release(&reader.process);
    free(reader.ids);
    bp_file_close(reader.memory_fd);
    close_files(&reader.files);
    return status;
}

static bugpack_status read_files(bp_process_threads *process, uint64_t deadline_ns,
                                 bugpack_error *error) {
    size_t count = 0;
    uint64_t *numbers = calloc(process->thread_count + 1, sizeof *numbers);
    if (numbers == NULL) {
        return bp_fail_memory(error, "read the open files of a process");
    }
    for (size_t i = 0; i < process->thread_count; i++) {
        if (process->threads[i].has_fd_wait) {
            numbers[count++] = process->threads[i].fd_wait.fds[0];
        }
    }
    qsort(numbers, count, sizeof *numbers, bp_array_compare_u64);
    bugpack_status status = BUGPACK_OK;
    if (count > 0) {
        pid_t pid = process->pid == (uint64_t)getpid() ? 0 : (pid_t)process->pid;
        status = bp_open_files_read(pid, numbers, count, deadline_ns, &process->files, error);
    }
    free(numbers);
    if (status == BUGPACK_OK && process->files.birth != process->birth) {
        bp_open_files_release(&process->files); /* of another process */
    }
    return status == BUGPACK_ERR_NO_MEMORY ? status : BUGPACK_OK;
}

static int compare_number(const void *number, const void *file) {
    uint32_t wanted = *(const uint32_t *)number;
    uint32_t found = ((const bp_open_file *)file)->number;
    return (wanted > found) - (wanted < found);
}

/* The pipe or socket that has the number; NULL where it is anything else. */
static const bp_open_file *find_file(const bp_open_files *files, uint32_t number) {
    const bp_open_file *file = files->file_count == 0
                                   ? NULL
                                   : bsearch(&number, files->files, files->file_count,
                                             sizeof *files->files, compare_number);
    bool has_end =
        file != NULL && (file->kind == BP_OPEN_FILE_PIPE || file->kind == BP_OPEN_FILE_FIFO ||
                         file->kind == BP_OPEN_FILE_EVENTFD || file->kind == BP_OPEN_FILE_SOCKET);
    return has_end ? file : NULL;
}

bool bp_thread_has_stayed(uint64_t pid, const bp_thread_state *thread) {
    bp_thread_reader files = {.dir_fd = -1};
    bool has_it = open_files(pid, &files, NULL) == BUGPACK_OK && has_stayed(&files, thread);
    close_files(&files);
    return has_it;
}

/* Only of a thread that has not run since its call was read. */
static bugpack_status take_files(bp_process_threads *process, bugpack_error *error) {
    bp_thread_reader files = {.dir_fd = -1};
    bugpack_status status = open_files(process->pid, &files, error);
    for (size_t i = 0; status == BUGPACK_OK && i < process->thread_count; i++) {
        bp_thread_state *thread = &process->threads[i];
        const bp_open_file *file =
            thread->has_fd_wait ? find_file(&process->files, thread->fd_wait.fds[0]) : NULL;
        char target[64];
        ssize_t length = file != NULL ? read_fd_link(&files, thread, target, sizeof target) : 0;
        /* The link may be cut, and `target` lacks the mark of a file that was deleted. */
        size_t most = file != NULL ? strlen(file->target) : 0;
        most = length < (ssize_t)most ? (size_t)length : most;
        bool is_its = length > 0 && strncmp(file->target, target, most) == 0;
        thread->file = is_its && has_stayed(&files, thread) ? file : NULL;
        bool is_socket = thread->file != NULL && thread->file->socket != NULL;
        if (is_socket && thread->connects_to[0] != '\0') {
            memcpy(thread->file->socket->remote, thread->connects_to, sizeof thread->connects_to);
        }
    }
    close_files(&files);
    return status == BUGPACK_ERR_NO_MEMORY ? status : BUGPACK_OK;
}

bugpack_status bp_threads_find_files(bp_process_threads *processes, size_t count,
                                     uint64_t deadline_ns, bp_fd_search *ret_search,
                                     bugpack_error *error) {
    bp_fd_search search = {.was_needed = false};
    bp_open_files *files = calloc(count, sizeof *files);
    bugpack_status status =
        files == NULL ? bp_fail_memory(error, "read the open files of processes") : BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        status = read_files(&processes[i], deadline_ns, error);
        files[i] = processes[i].files; /* a list for the search, which writes to the files in it */
    }
    if (status == BUGPACK_OK) {
        status = bp_open_files_find_ends(files, count, deadline_ns, &search, error);
    }
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        status = processes[i].files.file_count > 0 ? take_files(&processes[i], error) : BUGPACK_OK;
    }
    free(files);
    if (status == BUGPACK_OK) {
        *ret_search = search;
    }
    return status;
}
