/* The helper process: only it loads a library of another program. */
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/calibration.h"

typedef int mallctl_function(const char *, void *, size_t *, void *, size_t);
typedef void *malloc_function(size_t);

static const size_t trial_bytes = (size_t)1 << 20;

static uintptr_t thread_pointer(void) {
    uintptr_t pointer;
#if defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#else
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
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
