#include "platform/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/thread_reader.h"

/*
 * Counts the guards that this process and its ancestors have made. A forked child inherits its
 * parent's cached thread id; its session makes a guard, which changes this number.
 */
static atomic_uint newest_guard_number;

uint64_t bp_thread_id(void) {
    /* Cached, because gettid is a system call. */
    static _Thread_local uint64_t id;
    static _Thread_local unsigned id_guard_number;
    unsigned number = atomic_load_explicit(&newest_guard_number, memory_order_relaxed);
    if (id_guard_number != number || id == 0) {
        id = (uint64_t)gettid();
        id_guard_number = number;
    }
    return id;
}

void bp_thread_name_of(uint64_t tid, char out[BP_THREAD_NAME_BYTES]) {
    ssize_t length = bp_proc_read_at(AT_FDCWD, out, BP_THREAD_NAME_BYTES,
                                     "/proc/self/task/%" PRIu64 "/comm", tid);
    out[length > 0 ? length - 1 : 0] = '\0'; /* it ends in a newline */
}

bool bp_thread_is_traced(uint64_t tid) {
    char text[4096];
    uint64_t tracer = 0;
    ssize_t length =
        bp_proc_read_at(AT_FDCWD, text, sizeof text, "/proc/self/task/%" PRIu64 "/status", tid);
    return length > 0 && bp_proc_find_number(text, (size_t)length, "TracerPid", 0, &tracer) &&
           tracer != 0;
}

void bp_thread_set_name(const char *name) {
    (void)pthread_setname_np(pthread_self(), name);
}

void bp_thread_drop_signal(int number) {
    static const struct timespec at_once;
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, number);
    (void)sigtimedwait(&signals, NULL, &at_once);
}

static bool read_own(void *context, uint64_t address, void *out, size_t bytes) {
    (void)context;
    const struct iovec to = {out, bytes};
    const struct iovec from = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)bytes;
}

static bool is_owner(void *owner_tid, uint64_t tid) {
    return tid == *(const uint64_t *)owner_tid;
}

/* Read twice: its futex may have been given to another lock while it was read. */
bool bp_thread_waits_for(uint64_t tid, uint64_t owner_tid) {
    const bp_futex_process own = {.arch = BP_SYSCALL_OWN_ARCH,
#ifdef __GLIBC__
                                  .has_glibc = true,
#endif
                                  .context = &owner_tid,
                                  .read = read_own,
                                  .has_thread = is_owner};
    char text[512];
    const bp_thread_reader reader = {
        .dir_fd = AT_FDCWD, .task = "/proc/self/task/", .text = text, .text_bytes = sizeof text};
    bp_thread_reading reads[2];
    bp_futex_wait wait;
    bool does_wait = true;
    for (int i = 0; does_wait && i < 2; i++) {
        bp_thread_read(&reader, tid, 1u << BP_GROUP_SYSCALL, &reads[i]);
        does_wait = bp_futex_wait_find(&own, &reads[i].syscall, &wait) &&
                    wait.kind == BP_FUTEX_KIND_MUTEX && !wait.is_timed;
    }
    return does_wait && memcmp(&reads[0].syscall, &reads[1].syscall, sizeof reads[0].syscall) == 0;
}

static int add_thread_local(struct dl_phdr_info *object, size_t info_bytes, void *sum) {
    (void)info_bytes;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_TLS) {
            *(size_t *)sum += (size_t)(segment->p_memsz + segment->p_align);
        }
    }
    return 0;
}

size_t bp_thread_local_bytes(void) {
    /*
     * glibc takes them from the requested stack (allocate_stack in nptl), and no public function
     * gives their size. Those of libraries loaded later may be on the heap: counting them too costs
     * address space only.
     */
    size_t sum = 0;
    (void)dl_iterate_phdr(add_thread_local, &sum);
    return sum;
}

/* In glibc and musl none of these fails for a clock that the system has. */
void bp_condition_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

bool bp_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex,
                             uint64_t deadline_ns) {
    struct timespec deadline = bp_clock_timespec(deadline_ns);
    return pthread_cond_timedwait(condition, mutex, &deadline) != ETIMEDOUT;
}

/*
 * The guards of a process and its ancestors, consecutive in a page that the kernel zeroes in a
 * child: only the newest can be 1, and all sessions of a process share it. A child takes the next
 * one. The page is never freed, because calls on a closed session may still come.
 */
struct bp_fork_guard {
    atomic_uchar is_owner;
};

enum { guard_bytes = 4096 };

static bp_fork_guard *_Atomic newest_guard;

static bugpack_status map_guards(bp_fork_guard **ret_first, bugpack_error *error) {
    void *page =
        mmap(NULL, guard_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return bp_fail_errno(error, errno, "cannot guard the session against fork");
    }
    if (madvise(page, guard_bytes, MADV_WIPEONFORK) != 0) {
        int advise_errno = errno;
        (void)munmap(page, guard_bytes);
        return bp_fail_errno(error, advise_errno, "cannot guard the session against fork");
    }
    *ret_first = page;
    return BUGPACK_OK;
}

static bool is_first_of_page(const bp_fork_guard *guard) {
    return (uintptr_t)guard % guard_bytes == 0;
}

/* No lock: a fork might have left it held. */
bugpack_status bp_fork_guard_new(bp_fork_guard **ret_guard, bugpack_error *error) {
    bp_fork_guard *newest = atomic_load(&newest_guard);
    while (newest == NULL || !bp_fork_guard_is_owner(newest)) {
        bp_fork_guard *next = newest == NULL ? NULL : newest + 1;
        if (is_first_of_page(next)) { /* or none */
            bugpack_status status = map_guards(&next, error);
            if (status != BUGPACK_OK) {
                return status;
            }
        }
        atomic_store_explicit(&next->is_owner, 1, memory_order_relaxed);
        if (atomic_compare_exchange_strong(&newest_guard, &newest, next)) {
            newest = next;
            (void)atomic_fetch_add_explicit(&newest_guard_number, 1, memory_order_relaxed);
        } else if (is_first_of_page(next)) {
            (void)munmap(next, guard_bytes); /* another thread was first */
        }
    }
    *ret_guard = newest;
    return BUGPACK_OK;
}

void bp_fork_guard_free(bp_fork_guard *guard) {
    (void)guard;
}

bool bp_fork_guard_is_owner(const bp_fork_guard *guard) {
    return atomic_load_explicit(&guard->is_owner, memory_order_relaxed) != 0;
}
