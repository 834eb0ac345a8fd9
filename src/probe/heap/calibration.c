#include "heap/calibration.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"

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

/* The library and the command may be of different versions. */
static const uint64_t answer_magic = 0x316d656a67706762; /* "bgpgjem1" */

/* The helper writes this. */
struct answer {
    uint64_t magic, slot;
    bp_calibration calibration;
};

/*
 * glibc reserves little space for thread-local blocks of libraries loaded late; jemalloc's 2.6 KB
 * fit only with this tunable.
 */
static char tunables[] = "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536";

static const uint64_t kill_grace_ns = BP_NS_PER_SEC; /* a filter may refuse kill */

/* The number that the library has in the helper. */
enum { helper_library_fd = 3, helper_lacks_memory = 71 /* EX_OSERR of sysexits.h */ };

/* 0; ETIMEDOUT; EPROTO if the helper failed or printed too much; any other errno if it could not be
 * started. */
static int run_helper(const char *path, const char *const *arguments, int library_fd,
                      uint64_t deadline_ns, bp_buffer *answer) {
    int ends[2];
    bp_child child = {.pid = 0};
    char *const environment[] = {tunables, NULL};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    const bp_child_plan plan = {
        .path = path,
        .arguments = arguments,
        .environment = environment,
        .fds = {BP_CHILD_NULL, ends[1], BP_CHILD_NULL, [helper_library_fd] = library_fd}};
    int result = bp_child_start(&plan, &child);
    bp_file_close(ends[1]);
    if (result == 0) {
        const bp_child_output outputs[] = {{ends[0], bp_buffer_sink, answer}, {.fd = -1}};
        const bp_child_limits limits = {.deadline_ns = deadline_ns};
        bugpack_status status = bp_child_read(&child, outputs, &limits);
        if (status != BUGPACK_OK) {
            (void)bp_child_kill(&child, SIGKILL, kill_grace_ns);
        }
        int exit_status = WIFEXITED(child.wait_status) ? WEXITSTATUS(child.wait_status) : -1;
        result = status == BUGPACK_OK && exit_status == 0 ? 0 : EPROTO;
        result = status == BUGPACK_OK && exit_status == helper_lacks_memory ? ENOMEM : result;
        result = status == BUGPACK_ERR_TIMEOUT ? ETIMEDOUT : result;
    }
    bp_file_close(ends[0]);
    return result;
}

bool bp_calibration_run(const char *calibrator_path, int library_fd, uint64_t slot,
                        const char *prefix, uint32_t timeout_ms, bp_calibration *ret_calibration,
                        char *reason, size_t reason_bytes) {
    char slot_text[24];
    char fd_text[12];
    struct answer answer = {.magic = 0};
    bp_buffer text;
    bp_buffer_init(&text, sizeof answer);
    (void)snprintf(fd_text, sizeof fd_text, "%d", helper_library_fd);
    (void)snprintf(slot_text, sizeof slot_text, "%" PRIx64, slot);
    const char *const arguments[] = {
        "bugpack", "calibrate-jemalloc", fd_text, slot_text, prefix[0] != '\0' ? prefix : "-",
        NULL};
    uint64_t deadline_ns = bp_clock_monotonic_ns() + timeout_ms * BP_NS_PER_MS;
    int result = run_helper(calibrator_path, arguments, library_fd, deadline_ns, &text);
    if (text.size == sizeof answer) {
        memcpy(&answer, text.data, sizeof answer);
    }
    bp_buffer_release(&text);
    if (result == 0 && answer.magic == answer_magic && answer.slot == slot &&
        bp_calibration_is_plausible(&answer.calibration)) {
        *ret_calibration = answer.calibration;
        return true;
    }
    if (result == 0 || result == EPROTO || result == ETIMEDOUT) {
        (void)snprintf(reason, reason_bytes, "%s",
                       result == ETIMEDOUT
                           ? "the helper that loads it did not end in time"
                           : "the helper that loads it gave no answer that makes sense");
        errno = 0;
    } else {
        (void)snprintf(reason, reason_bytes, "the helper %s: %s",
                       result == ENOMEM ? "could not load it" : "could not be started",
                       strerror(result));
        errno = result;
    }
    return false;
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

/* True if these are the counters, which grow by what is allocated. */
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

/* True if a limit of this process may be why an allocator could not be tried. */
static bool lacks_address_space(void) {
    static const size_t needed_bytes = (size_t)64 << 20;
    void *space = mmap(NULL, needed_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return space == MAP_FAILED || munmap(space, needed_bytes) != 0;
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
    uint64_t library_fd;
    struct answer answer = {.magic = answer_magic};
    if (argument_count != 4 || !read_number(arguments[1], 10, &library_fd) || library_fd > 1024 ||
        !read_number(arguments[2], 16, &answer.slot) || strlen(arguments[3]) > 16) {
        return 2;
    }
    const char *prefix = strcmp(arguments[3], "-") == 0 ? "" : arguments[3];
#ifdef SYS_close_range
    (void)syscall(SYS_close_range, (unsigned)library_fd + 1, ~0u, 0);
#endif
    /* PDEATHSIG last, because a change of the user resets it (prctl(2)). */
    if (!drop_capabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        return 1;
    }
    if (!calibrate((int)library_fd, answer.slot, prefix, &answer.calibration)) {
        return lacks_address_space() ? helper_lacks_memory : 1;
    }
    return write(1, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1;
}
