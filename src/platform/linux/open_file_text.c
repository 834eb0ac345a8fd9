#include "platform/linux/open_file_text.h"

#include <string.h>

#include "platform/linux/proc_scan.h"

static const struct {
    const char *name, *inode_name;
} kinds[] = {
#define KIND(constant, name, inode) {name, inode},
    BP_OPEN_FILE_KINDS(KIND)
#undef KIND
};

const char *bp_open_file_kind_name(bp_open_file_kind kind) {
    return kinds[kind].name;
}

static bool begins_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "anon_inode:[eventfd]"; older ones, as inotify, have no brackets. */
static bp_open_file_kind kind_of_inode(const char *name) {
    name += name[0] == '[' ? 1 : 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t bytes = kinds[i].inode_name == NULL ? 0 : strlen(kinds[i].inode_name);
        if (bytes > 0 && strncmp(name, kinds[i].inode_name, bytes) == 0 &&
            (name[bytes] == '\0' || strcmp(name + bytes, "]") == 0)) {
            return (bp_open_file_kind)i;
        }
    }
    return BP_OPEN_FILE_OTHER;
}

/* The type bits of st_mode, as every kernel has them (include/uapi/linux/stat.h). */
static bp_open_file_kind kind_of_mode(uint32_t mode) {
    switch (mode >> 12) {
    case 001:
        return BP_OPEN_FILE_FIFO;
    case 002:
        return BP_OPEN_FILE_CHARACTER_DEVICE;
    case 004:
        return BP_OPEN_FILE_DIRECTORY;
    case 006:
        return BP_OPEN_FILE_BLOCK_DEVICE;
    case 010:
        return BP_OPEN_FILE_FILE;
    case 012:
        return BP_OPEN_FILE_SYMLINK;
    case 014:
        return BP_OPEN_FILE_SOCKET;
    default:
        return BP_OPEN_FILE_OTHER;
    }
}

bp_open_file_kind bp_open_file_kind_of(const char *target, uint32_t mode) {
    static const char anonymous[] = "anon_inode:";
    static const struct {
        const char *prefix;
        bp_open_file_kind kind;
    } rows[] = {{"pipe:[", BP_OPEN_FILE_PIPE},        {"socket:[", BP_OPEN_FILE_SOCKET},
                {"pidfd:[", BP_OPEN_FILE_PIDFD},      {"/memfd:", BP_OPEN_FILE_MEMFD},
                {"mnt:[", BP_OPEN_FILE_NAMESPACE},    {"net:[", BP_OPEN_FILE_NAMESPACE},
                {"pid:[", BP_OPEN_FILE_NAMESPACE},    {"user:[", BP_OPEN_FILE_NAMESPACE},
                {"ipc:[", BP_OPEN_FILE_NAMESPACE},    {"uts:[", BP_OPEN_FILE_NAMESPACE},
                {"cgroup:[", BP_OPEN_FILE_NAMESPACE}, {"time:[", BP_OPEN_FILE_NAMESPACE}};
    if (begins_with(target, anonymous)) {
        return kind_of_inode(target + sizeof anonymous - 1);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (begins_with(target, rows[i].prefix)) {
            return rows[i].kind;
        }
    }
    return kind_of_mode(mode);
}

bool bp_open_file_inode(const char *target, const char *prefix, uint64_t *ret_inode) {
    bp_proc_scan scan = {target, target + strlen(target)};
    uint64_t inode;
    if (!bp_proc_take_text(&scan, prefix) || !bp_proc_take_text(&scan, ":[") ||
        !bp_proc_take_number(&scan, 10, &inode) || !bp_proc_is(scan, "]")) {
        return false;
    }
    *ret_inode = inode;
    return true;
}

/* The number of a line, if that is all it has. */
static bool take_value(bp_proc_scan line, unsigned base, uint64_t *ret_value) {
    uint64_t value;
    bp_proc_skip_blanks(&line);
    if (!bp_proc_take_number(&line, base, &value)) {
        return false;
    }
    bp_proc_skip_blanks(&line);
    if (line.next != line.end) {
        return false;
    }
    *ret_value = value;
    return true;
}

void bp_fd_info_parse(const char *text, size_t text_bytes, bool is_cut, bp_fd_info *ret_info) {
    bp_fd_info info = {.flags = 0};
    uint64_t pid = 0;
    const struct {
        const char *key;
        unsigned base;
        uint64_t *value;
        bool *is_known;
    } rows[] = {{"flags:", 8, &info.flags, &info.has_flags},
                {"pos:", 10, &info.position, &info.has_position},
                {"eventfd-count:", 16, &info.value, &info.has_value},
                {"Pid:", 10, &pid, &info.has_pid},
                {"sigmask:", 16, &info.signals, &info.has_signals}};
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line;
    while (bp_proc_take_line(&scan, &line)) {
        bool is_watch = bp_proc_take_text(&line, "tfd:") || bp_proc_take_text(&line, "inotify wd:");
        info.watch_count += is_watch ? 1 : 0;
        if (bp_proc_is(line, "Pid:\t-1")) {
            info.has_pid = true;
            info.pid = -1;
        }
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            bp_proc_scan rest = line;
            if (!*rows[i].is_known && bp_proc_take_text(&rest, rows[i].key)) {
                *rows[i].is_known = take_value(rest, rows[i].base, rows[i].value);
            }
        }
    }
    info.has_watches = !is_cut;
    info.pid = pid > 0 && pid <= INT64_MAX ? (int64_t)pid : info.pid;
    *ret_info = info;
}

static const uint64_t path_flag = 010000000;

const char *bp_fd_access(uint64_t flags) {
    static const char *const names[] = {"read", "write", "read_write", NULL};
    return (flags & path_flag) != 0 ? "path" : names[flags & 3];
}

/* asm-generic/fcntl.h; arch/arm64 has three others. O_LARGEFILE says nothing. */
const char *bp_fd_flag(uint64_t flags, size_t index) {
    static const struct {
        uint64_t bits;
        const char *name;
    } rows[] = {
        {02000000, "close_on_exec"},
        {04000, "nonblocking"},
        {02000, "append"},
        {04010000, "sync"},
        {010000, "dsync"},
        {020000, "async"},
#if defined(__aarch64__)
        {0200000, "direct"},
        {020040000, "temporary_file"},
        {040000, "directory"},
        {0100000, "no_follow"},
#else
        {040000, "direct"},
        {020200000, "temporary_file"},
        {0200000, "directory"},
        {0400000, "no_follow"},
#endif
        {01000000, "no_atime"}
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((flags & rows[i].bits) == rows[i].bits) {
            /* O_SYNC is O_DSYNC with one more bit, and O_TMPFILE is O_DIRECTORY with one. */
            flags &= ~rows[i].bits;
            if (index-- == 0) {
                return rows[i].name;
            }
        }
    }
    return NULL;
}
