#include "probe/thread_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/mapped_files.h"
#include "probe/elf_object.h"
#include "probe/thread_pointers.h"

static int compare_ids(const void *one, const void *other) {
    const struct bp_own_id *left = one;
    const struct bp_own_id *right = other;
    return (left->tid > right->tid) - (left->tid < right->tid);
}

static const struct bp_own_id *find_id(const bp_thread_locks *locks, uint64_t tid) {
    struct bp_own_id key = {.tid = tid};
    return locks->count == 0 ? NULL
                             : bsearch(&key, locks->ids, locks->count, sizeof key, compare_ids);
}

static bool has_thread(void *context, uint64_t tid) {
    return find_id(context, tid) != NULL;
}

/* At an address that a process made up: beyond INT64_MAX there is no memory of a program. */
static bool read_memory(void *context, uint64_t address, void *out, size_t bytes) {
    const bp_thread_locks *locks = context;
    return locks->memory_fd >= 0 && address <= (uint64_t)INT64_MAX - bytes &&
           bp_read_exactly(locks->memory_fd, address, out, bytes);
}

/* The system calls of a 32-bit program have other numbers. */
static bp_syscall_arch arch_of(int thread_fd) {
    bp_elf_object executable;
    int fd = openat(thread_fd, "exe", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_ours = fd >= 0 && bp_elf_object_read(fd, &executable) == BP_ELF_OK;
    bp_file_close(fd);
    return is_ours ? BP_SYSCALL_OWN_ARCH : BP_SYSCALL_UNKNOWN;
}

/* libc.so.6 or, before 2.34, also libc-2.31.so: with a symbol that musl does not have. */
static bool read_glibc(int thread_fd, bp_mapped_file *file, bp_futex_process *process) {
    bp_elf_object libc;
    bp_libc_layout layout;
    Elf64_Sym symbol;
    bool is_there;
    const char *slash = strrchr(file->path, '/');
    const char *name = slash != NULL ? slash + 1 : file->path;
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

static bugpack_status find_glibc(int thread_fd, bp_futex_process *process, bugpack_error *error) {
    bp_mapped_files files = {0};
    int result = bp_mapped_files_read(thread_fd, &files);
    for (size_t i = 0; result == 0 && !process->has_glibc && i < files.count; i++) {
        process->has_glibc = read_glibc(thread_fd, &files.items[i], process);
    }
    if (result == 0) {
        bp_mapped_files_release(&files);
    }
    return result == ENOMEM ? bp_fail_memory(error, "look at the files of a process") : BUGPACK_OK;
}

/* A first thread that has ended shows neither memory nor files. */
static int open_living_thread(int threads_fd, const bp_process_threads *process) {
    for (size_t i = 0; i < process->thread_count; i++) {
        const bp_thread_state *thread = &process->threads[i];
        if (thread->state != 'Z' && thread->state != 'X') {
            int fd = bp_proc_open_at(threads_fd, O_PATH | O_DIRECTORY, "%llu",
                                     (unsigned long long)thread->tid);
            if (fd >= 0) {
                return fd;
            }
        }
    }
    return -1;
}

static bool is_any(const bp_process_threads *process,
                   bool (*is_possible)(bp_syscall_arch arch, const bp_thread_syscall *syscall)) {
    for (size_t i = 0; i < process->thread_count; i++) {
        const bp_thread_state *thread = &process->threads[i];
        if (thread->has_syscall && is_possible(process->arch, &thread->syscall)) {
            return true;
        }
    }
    return false;
}

bugpack_status bp_thread_locks_open(int threads_fd, bp_process_threads *process,
                                    const uint64_t *own_tids, bp_thread_locks *ret_locks,
                                    bugpack_error *error) {
    bp_thread_locks locks = {.memory_fd = -1};
    int thread_fd = open_living_thread(threads_fd, process);
    bugpack_status status = BUGPACK_OK;
    process->arch = thread_fd < 0 ? BP_SYSCALL_UNKNOWN : arch_of(thread_fd);
    locks.process =
        (bp_futex_process){.arch = process->arch, .read = read_memory, .has_thread = has_thread};
    bool has_locks = is_any(process, bp_futex_wait_is_possible);
    if (has_locks || is_any(process, bp_fd_wait_is_possible)) {
        locks.memory_fd = openat(thread_fd, "mem", O_RDONLY | O_CLOEXEC);
    }
    if (has_locks) {
        status = find_glibc(thread_fd, &locks.process, error);
        locks.ids = calloc(process->thread_count, sizeof *locks.ids);
        if (status == BUGPACK_OK && locks.ids == NULL) {
            status = bp_fail_memory(error, "list the threads of a process");
        }
    }
    bp_file_close(thread_fd);
    if (status != BUGPACK_OK) {
        bp_thread_locks_close(&locks);
        return status;
    }
    for (size_t i = 0; locks.ids != NULL && i < process->thread_count; i++) {
        if (own_tids[i] != 0) {
            locks.ids[locks.count++] = (struct bp_own_id){own_tids[i], i};
        }
    }
    if (locks.count > 1) {
        qsort(locks.ids, locks.count, sizeof *locks.ids, compare_ids);
    }
    *ret_locks = locks;
    return BUGPACK_OK;
}

void bp_thread_locks_close(bp_thread_locks *locks) {
    bp_file_close(locks->memory_fd);
    free(locks->ids);
}

bool bp_thread_locks_find(bp_thread_locks *locks, const bp_thread_syscall *syscall,
                          bp_futex_wait *ret_wait, size_t *ret_index) {
    locks->process.context = locks;
    if (!bp_futex_wait_find(&locks->process, syscall, ret_wait)) {
        return false;
    }
    *ret_index = (size_t)find_id(locks, ret_wait->tid)->index;
    return true;
}

bool bp_thread_locks_find_fd(bp_thread_locks *locks, const bp_thread_syscall *syscall,
                             bp_fd_wait *ret_wait) {
    return bp_fd_wait_find(locks->process.arch, syscall, read_memory, locks, ret_wait);
}
