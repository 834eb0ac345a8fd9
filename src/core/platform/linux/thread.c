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
 * The last number that this process or an ancestor has had. A forked child inherits its parent's
 * cached thread id; its session asks for a number, which changes this one.
 */
static atomic_uint newest_number;

uint64_t bp_thread_id(void) {
    /* Cached, because gettid is a system call. */
    static _Thread_local uint64_t id;
    static _Thread_local unsigned id_number;
    unsigned number = atomic_load_explicit(&newest_number, memory_order_relaxed);
    if (id_number != number || id == 0) {
        id = (uint64_t)gettid();
        id_number = number;
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

/* The number of this process, in a page that the kernel zeroes in a child. It is never freed,
 * because calls on a closed session may still come. */
static atomic_uint *_Atomic number_page;

static bugpack_status map_page(bugpack_error *error) {
    enum { page_bytes = 4096 };
    atomic_uint *before = NULL;
    atomic_uint *page =
        mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int result = page == MAP_FAILED || madvise(page, page_bytes, MADV_WIPEONFORK) != 0 ? errno : 0;
    bool is_needed = result == 0 && atomic_compare_exchange_strong(&number_page, &before, page);
    if (page != MAP_FAILED && !is_needed) {
        (void)munmap(page, page_bytes);
    }
    return result == 0 ? BUGPACK_OK
                       : bp_fail_errno(error, result, "cannot guard the session against fork");
}

/* No lock: a fork might have left it held. */
bugpack_status bp_fork_number_make(unsigned *ret_number, bugpack_error *error) {
    if (atomic_load(&number_page) == NULL) {
        bugpack_status status = map_page(error);
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    unsigned number = 0;
    unsigned next = atomic_fetch_add(&newest_number, 1) + 1;
    bool is_first = atomic_compare_exchange_strong(atomic_load(&number_page), &number, next);
    *ret_number = is_first ? next : number;
    return BUGPACK_OK;
}

bool bp_fork_number_is(unsigned number) {
    return atomic_load_explicit(atomic_load(&number_page), memory_order_relaxed) == number;
}
