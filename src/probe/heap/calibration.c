#include "heap/calibration.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/private_file.h"
#include "platform/machine.h"
#include "process/tool.h"

static const int64_t far_bytes = 65536;

bool bp_calibration_is_plausible(const bp_calibration *calibration) {
    int64_t one = calibration->allocated_place;
    int64_t other = calibration->deallocated_place;
    return one != other && one > -far_bytes && one < far_bytes && other > -far_bytes &&
           other < far_bytes && one % 8 == 0 && other % 8 == 0;
}

const char *bp_calibration_refusal(const bp_calibration_facts *facts) {
    const struct stat *mapped = facts->mapped;
    const struct stat *named = facts->named;
    if (!facts->has_own_root) {
        return "the process has another root directory than we have: it is a container's";
    }
    if (named == NULL) {
        return "its path names no file here: it is a container's, or was deleted";
    }
    if (!S_ISREG(mapped->st_mode) || mapped->st_dev != named->st_dev ||
        mapped->st_ino != named->st_ino) {
        return "its path names another file here: it is a container's, or was replaced";
    }
    if (mapped->st_uid != 0 && mapped->st_uid != facts->user) {
        return "it belongs to another user";
    }
    if ((mapped->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return "others may write to it";
    }
    if (!facts->owners_count) {
        return "it is on a file system that is mounted nosuid, where anybody can be the owner";
    }
    return NULL;
}

bool bp_calibration_owners_count(int fd) {
    struct statvfs file_system;
    struct stat file, root;
    if (fstatvfs(fd, &file_system) != 0 || fstat(fd, &file) != 0) {
        return false;
    }
    return (file_system.f_flag & ST_NOSUID) == 0 ||
           (stat("/", &root) == 0 && root.st_dev == file.st_dev);
}

void bp_calibration_format(uint64_t slot, const bp_calibration *calibration,
                           char out[BP_CALIBRATION_TEXT_BYTES]) {
    (void)snprintf(out, BP_CALIBRATION_TEXT_BYTES,
                   "bugpack-jemalloc 1\nslot %" PRIx64 "\nallocated %" PRId64
                   "\ndeallocated %" PRId64 "\n",
                   slot, calibration->allocated_place, calibration->deallocated_place);
}

bool bp_calibration_parse(const char *text, size_t text_bytes, uint64_t slot,
                          bp_calibration *ret_calibration) {
    char copy[BP_CALIBRATION_TEXT_BYTES];
    char again[BP_CALIBRATION_TEXT_BYTES];
    bp_calibration calibration;
    uint64_t found_slot;
    if (text_bytes >= sizeof copy || memchr(text, '\0', text_bytes) != NULL) {
        return false;
    }
    memcpy(copy, text, text_bytes);
    copy[text_bytes] = '\0';
    if (sscanf(copy,
               "bugpack-jemalloc 1\nslot %16" SCNx64 "\nallocated %7" SCNd64
               "\ndeallocated %7" SCNd64 "\n",
               &found_slot, &calibration.allocated_place, &calibration.deallocated_place) != 3 ||
        found_slot != slot || !bp_calibration_is_plausible(&calibration)) {
        return false;
    }
    /* Reject any other text that sscanf accepts. */
    bp_calibration_format(slot, &calibration, again);
    if (strcmp(copy, again) != 0) {
        return false;
    }
    *ret_calibration = calibration;
    return true;
}

/*
 * glibc reserves little space for thread-local blocks of libraries loaded late; jemalloc's 2.6 KB
 * fit only with this tunable.
 */
static char tunables[] = "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536";

bool bp_calibration_run(const char *calibrator_path, int library_fd, uint64_t slot,
                        const char *prefix, uint32_t timeout_ms, bp_calibration *ret_calibration,
                        char *reason, size_t reason_bytes) {
    char slot_text[24];
    char answer[BP_CALIBRATION_TEXT_BYTES];
    size_t length;
    char fd_text[12];
    (void)snprintf(fd_text, sizeof fd_text, "%d", BP_TOOL_EXTRA_FD);
    (void)snprintf(slot_text, sizeof slot_text, "%" PRIx64, slot);
    const char *const arguments[] = {
        "bugpack", "calibrate-jemalloc", fd_text, slot_text, prefix[0] != '\0' ? prefix : "-",
        NULL};
    char *const environment[] = {tunables, NULL};
    const bp_tool helper = {.path = calibrator_path,
                            .arguments = arguments,
                            .environment = environment,
                            .extra_fd = library_fd,
                            .deadline_ns = bp_clock_monotonic_ns() + timeout_ms * BP_NS_PER_MS};
    int result = bp_tool_run(&helper, answer, sizeof answer, &length);
    if (result == 0 && bp_calibration_parse(answer, length, slot, ret_calibration)) {
        return true;
    }
    if (result == 0 || result == EPROTO || result == ETIMEDOUT) {
        (void)snprintf(reason, reason_bytes, "%s",
                       result == ETIMEDOUT
                           ? "the helper that loads it did not end in time"
                           : "the helper that loads it gave no answer that makes sense");
        errno = 0;
    } else {
        (void)snprintf(reason, reason_bytes, "the helper could not be started: %s",
                       strerror(result));
        errno = result;
    }
    return false;
}

/* The cache of earlier runs. The files are this user's, but are read like any untrusted input. */

static bool is_build_id(const char *text) {
    size_t length = strlen(text);
    return length >= 8 && length <= 64 && strspn(text, "0123456789abcdef") == length;
}

static bool cache_path(char out[PATH_MAX]) {
    const char *cache = bp_machine_environment("XDG_CACHE_HOME");
    const char *home = bp_machine_environment("HOME");
    int length;
    if (cache != NULL && cache[0] == '/') {
        length = snprintf(out, PATH_MAX, "%s/bugpack", cache);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(out, PATH_MAX, "%s/.cache/bugpack", home);
    } else {
        return false;
    }
    return length > 0 && length < PATH_MAX;
}

/* -1 when there is none, or it is not private to this user. */
static int open_cache(bool create) {
    char path[PATH_MAX];
    int fd = -1;
    if (!cache_path(path) || (create && bp_file_make_path(path, NULL) != BUGPACK_OK) ||
        bp_file_open_directory(path, false, &fd, NULL) != BUGPACK_OK) {
        return -1;
    }
    if (bp_file_check_private(fd, path, NULL) != BUGPACK_OK) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

bool bp_calibration_cache_load(const char *build_id, uint64_t slot,
                               bp_calibration *ret_calibration) {
    char name[96];
    char text[BP_CALIBRATION_TEXT_BYTES];
    struct stat info;
    int directory_fd = is_build_id(build_id) ? open_cache(false) : -1;
    if (directory_fd < 0) {
        return false;
    }
    (void)snprintf(name, sizeof name, "jemalloc-%s", build_id);
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    (void)close(directory_fd);
    if (fd < 0) {
        return false;
    }
    ssize_t length = -1;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & 022) == 0) {
        length = read(fd, text, sizeof text);
    }
    (void)close(fd);
    return length > 0 && bp_calibration_parse(text, (size_t)length, slot, ret_calibration);
}

void bp_calibration_cache_store(const char *build_id, uint64_t slot,
                                const bp_calibration *calibration) {
    char name[96];
    char temporary[BP_PRIVATE_FILE_NAME_BYTES];
    char text[BP_CALIBRATION_TEXT_BYTES];
    int directory_fd = is_build_id(build_id) ? open_cache(true) : -1;
    if (directory_fd < 0) {
        return;
    }
    (void)snprintf(name, sizeof name, "jemalloc-%s", build_id);
    bp_calibration_format(slot, calibration, text);
    int fd = bp_private_file_open_named(directory_fd, temporary);
    if (fd >= 0) {
        /* Not synced: after a power cut it is measured again. */
        size_t length = strlen(text);
        bool is_written = write(fd, text, length) == (ssize_t)length;
        is_written = close(fd) == 0 && is_written;
        if (!is_written || renameat(directory_fd, temporary, directory_fd, name) != 0) {
            (void)unlinkat(directory_fd, temporary, 0);
        }
    }
    (void)close(directory_fd);
}

/* The helper process: only it loads a library of another program. */

typedef int mallctl_function(const char *, void *, size_t *, void *, size_t);
typedef void *malloc_function(size_t);

static const size_t trial_bytes = (size_t)1 << 20;

static uintptr_t thread_pointer(void) {
    uintptr_t pointer;
#if defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#elif defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
#else /* unsupported: no library is of this machine (process/elf_object.h) */
    pointer = 0;
#endif
    return pointer;
}

static bool read_number(const char *text, unsigned base, uint64_t *ret_value) {
    char *end;
    *ret_value = strtoull(text, &end, (int)base);
    return end != text && *end == '\0';
}

static bool find_function(void *library, const char *prefix, const char *name, void *function) {
    char full_name[64];
    (void)snprintf(full_name, sizeof full_name, "%s%s", prefix, name);
    void *found = dlsym(library, full_name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* Whether these are the counters: they grow by what is allocated. */
static bool try_counters(malloc_function *allocate, const uint64_t *allocated,
                         const uint64_t *deallocated) {
    uint64_t before = *allocated;
    uint64_t freed_before = *deallocated;
    void *volatile block = allocate(trial_bytes); /* never freed: the process ends */
    uint64_t grown_bytes = *allocated - before;
    return block != NULL && grown_bytes >= trial_bytes && grown_bytes <= 2 * trial_bytes &&
           *deallocated - freed_before < trial_bytes;
}

static bool calibrate(int library_fd, uint64_t slot, const char *prefix,
                      bp_calibration *ret_calibration) {
    char path[40];
    mallctl_function *mallctl;
    malloc_function *allocate;
    struct link_map *map;
    uint64_t *allocated = NULL;
    uint64_t *deallocated = NULL;
    size_t pointer_bytes = sizeof allocated;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", library_fd);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 ||
        !find_function(library, prefix, "mallctl", &mallctl) ||
        !find_function(library, prefix, "malloc", &allocate)) {
        return false;
    }
    if (mallctl("thread.allocatedp", &allocated, &pointer_bytes, NULL, 0) != 0 ||
        mallctl("thread.deallocatedp", &deallocated, &pointer_bytes, NULL, 0) != 0 ||
        allocated == NULL || deallocated == NULL ||
        !try_counters(allocate, allocated, deallocated)) {
        return false;
    }
    int64_t distance;
    memcpy(&distance, (const char *)map->l_addr + slot, sizeof distance);
    uintptr_t block = thread_pointer() + (uintptr_t)distance;
    ret_calibration->allocated_place = (int64_t)((uintptr_t)allocated - block);
    ret_calibration->deallocated_place = (int64_t)((uintptr_t)deallocated - block);
    return bp_calibration_is_plausible(ret_calibration);
}

/*
 * Drops the privileges of the helper's own file and inherited ones: bugpack may be installed with
 * CAP_SYS_PTRACE, and any user could name any library to it.
 */
static bool drop_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return setresgid(getgid(), getgid(), getgid()) == 0 &&
           setresuid(getuid(), getuid(), getuid()) == 0 && syscall(SYS_capset, &header, none) == 0;
}

int bp_calibration_help(int argument_count, char **arguments) {
    uint64_t library_fd, slot;
    bp_calibration calibration;
    char answer[BP_CALIBRATION_TEXT_BYTES];
    if (argument_count != 4 || !read_number(arguments[1], 10, &library_fd) || library_fd > 1024 ||
        !read_number(arguments[2], 16, &slot) || strlen(arguments[3]) > 16) {
        return 2;
    }
    const char *prefix = strcmp(arguments[3], "-") == 0 ? "" : arguments[3];
#ifdef SYS_close_range
    (void)syscall(SYS_close_range, (unsigned)library_fd + 1, ~0u, 0);
#endif
    /* PDEATHSIG last, because a change of the user resets it (prctl(2)). */
    if (!drop_capabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 ||
        !calibrate((int)library_fd, slot, prefix, &calibration)) {
        return 1;
    }
    bp_calibration_format(slot, &calibration, answer);
    size_t length = strlen(answer);
    return write(1, answer, length) == (ssize_t)length ? 0 : 1;
}
