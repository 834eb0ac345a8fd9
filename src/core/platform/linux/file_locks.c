#include "platform/linux/file_locks.h"

#include <string.h>

#include "platform/linux/proc_text.h"

const char *bp_file_lock_kind_name(bp_file_lock_kind kind) {
    static const char *const names[] = {"flock", "posix", "ofd", "lease"};
    return names[kind];
}

/* As lock_get_status in fs/locks.c writes them. */
static bool take_kind(bp_proc_scan *scan, bp_file_lock_kind *ret_kind) {
    static const char *const words[] = {"FLOCK", "POSIX", "OFDLCK", "LEASE"};
    bp_proc_scan word;
    if (!bp_proc_take_word(scan, &word)) {
        return false;
    }
    for (unsigned kind = 0; kind < BP_FILE_LOCK_KIND_COUNT; kind++) {
        if (bp_proc_is(word, words[kind])) {
            *ret_kind = kind;
            return true;
        }
    }
    return false;
}

/* "1: -> FLOCK  ADVISORY  WRITE 1831 fe:00:10959075 0 EOF" */
bool bp_file_lock_parse(const char *line, size_t line_bytes, bp_file_lock *ret_lock) {
    bp_proc_scan scan = {line, line + line_bytes}, mode, access;
    bp_file_lock lock = {.pid = 0};
    uint64_t number, pid;
    bp_proc_skip_blanks(&scan);
    if (!bp_proc_take_number(&scan, 10, &number) || !bp_proc_take_byte(&scan, ':')) {
        return false;
    }
    bp_proc_skip_blanks(&scan);
    lock.is_wanted = bp_proc_take_text(&scan, "->");
    if (!take_kind(&scan, &lock.kind) || !bp_proc_take_word(&scan, &mode) ||
        !bp_proc_take_word(&scan, &access)) {
        return false;
    }
    bp_proc_skip_blanks(&scan);
    bool is_negative = bp_proc_take_byte(&scan, '-');
    if (!bp_proc_take_number(&scan, 10, &pid) || pid > INT32_MAX) {
        return false;
    }
    bp_proc_skip_blanks(&scan);
    lock.is_breaking = bp_proc_is(mode, "BREAKING");
    lock.is_exclusive = bp_proc_is(access, "WRITE");
    lock.pid = is_negative ? -(int64_t)pid : (int64_t)pid;
    /* the device in base 16 */
    if (!bp_proc_take_number(&scan, 16, &lock.major) || !bp_proc_take_byte(&scan, ':') ||
        !bp_proc_take_number(&scan, 16, &lock.minor) || !bp_proc_take_byte(&scan, ':') ||
        !bp_proc_take_number(&scan, 10, &lock.inode)) {
        return false;
    }
    *ret_lock = lock;
    return true;
}

static bool is_wanted_one(const bp_file_lock *lock, const bp_file_lock *wanted) {
    bool is_same_device = lock->major == wanted->major && lock->minor == wanted->minor;
    return lock->is_wanted && lock->kind == wanted->kind && lock->inode == wanted->inode &&
           (wanted->kind == BP_FILE_LOCK_OFD ? is_same_device : lock->pid == wanted->pid);
}

/* In the text, locks that wait follow the one that stands in their way. */
bool bp_file_lock_find_holder(const char *text, size_t text_bytes, const bp_file_lock *wanted,
                              bp_file_lock *ret_holder) {
    bp_proc_scan scan = {text, text + text_bytes}, line;
    bp_file_lock holder = {.is_wanted = true};
    while (bp_proc_take_line(&scan, &line)) {
        bp_file_lock lock;
        if (!bp_file_lock_parse(line.next, (size_t)(line.end - line.next), &lock)) {
            holder.is_wanted = true; /* none that is known */
        } else if (!lock.is_wanted) {
            holder = lock;
        } else if (!holder.is_wanted && is_wanted_one(&lock, wanted)) {
            *ret_holder = holder;
            return true;
        }
    }
    return false;
}

bool bp_file_lock_find_lease(const char *text, size_t text_bytes, bp_file_lock *ret_lease) {
    bp_proc_scan scan = {text, text + text_bytes}, line;
    bp_file_lock lock, found = {.pid = 0};
    size_t count = 0;
    while (bp_proc_take_line(&scan, &line)) {
        if (bp_file_lock_parse(line.next, (size_t)(line.end - line.next), &lock) &&
            lock.kind == BP_FILE_LOCK_LEASE && lock.is_breaking) {
            found = lock;
            count++;
        }
    }
    if (count == 1) {
        *ret_lease = found;
    }
    return count == 1;
}

bool bp_file_lock_of_call(bp_syscall_arch arch, const bp_thread_syscall *syscall, uint32_t *ret_fd,
                          bp_file_lock_kind *ret_kind) {
    enum { SETLKW = 7, OFD_SETLKW = 38 }; /* the same on all architectures that are known */
    const char *name =
        syscall->place == BP_THREAD_IN_CALL ? bp_syscall_name(arch, syscall->number) : NULL;
    uint32_t command = (uint32_t)syscall->arguments[1];
    if (name == NULL) {
        return false;
    }
    if (strcmp(name, "flock") == 0) {
        *ret_kind = BP_FILE_LOCK_FLOCK;
    } else if (strcmp(name, "fcntl") == 0 && (command == SETLKW || command == OFD_SETLKW)) {
        *ret_kind = command == SETLKW ? BP_FILE_LOCK_POSIX : BP_FILE_LOCK_OFD;
    } else {
        return false;
    }
    *ret_fd = (uint32_t)syscall->arguments[0];
    return true;
}
