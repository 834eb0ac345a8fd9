/* Finds the other processes that have locks of a process's open files. */
#include "process/open_files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "platform/linux/file_locks.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_text.h"

static const size_t locks_bytes_max = (size_t)64 * 1024;

static bool may_want(const bp_open_file *file) {
    const char *access = file->info.has_flags ? bp_fd_access(file->info.flags) : NULL;
    bool is_written =
        access != NULL && (strcmp(access, "write") == 0 || strcmp(access, "read_write") == 0);
    return file->kind == BP_OPEN_FILE_FILE && file->has_inode && is_written && !file->info.has_lock;
}

static void take_lock(bp_open_files *process, const bp_file_lock *lock) {
    for (size_t i = 0; i < process->file_count; i++) {
        bp_open_file *file = &process->files[i];
        if (file->inode == lock->inode && file->device == (lock->major << 32 | lock->minor) &&
            (uint64_t)lock->pid != process->pid && file->locked_by.pid == 0 && may_want(file)) {
            bp_proc_stat stat;
            file->locked_by.pid = (uint64_t)lock->pid;
            file->is_flock = lock->kind == BP_FILE_LOCK_FLOCK;
            if (bp_proc_read_stat(AT_FDCWD, &stat, "/proc/%" PRId64 "/stat", lock->pid) == 0) {
                memcpy(file->locked_by.name, stat.name, sizeof file->locked_by.name);
                file->locked_by.state = stat.state;
            }
        }
    }
}

void bp_open_files_find_locks(bp_open_files *processes, size_t count) {
    char *text = malloc(locks_bytes_max);
    ssize_t length =
        text == NULL ? 0 : bp_proc_read_small(AT_FDCWD, "/proc/locks", text, locks_bytes_max);
    bp_proc_scan scan = {text, text + (length > 0 ? length : 0)}, line;
    while (length > 0 && bp_proc_take_line(&scan, &line)) {
        bp_file_lock lock;
        bool is_held = bp_file_lock_parse(line.next, (size_t)(line.end - line.next), &lock) &&
                       !lock.is_wanted && lock.is_exclusive && lock.pid > 0 &&
                       lock.kind <= BP_FILE_LOCK_POSIX;
        for (size_t i = 0; is_held && i < count; i++) {
            take_lock(&processes[i], &lock);
        }
    }
    free(text);
}
