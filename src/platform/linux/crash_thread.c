/*
 * Alternate stacks: a handler cannot run on a stack that has overflowed.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/crash_handler.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51 /* since Linux 5.14; not in older headers of x86 */
#endif

/* Beside what the kernel stores of the registers. A handler of the host's runs on it, too. */
static const size_t handler_bytes = (size_t)64 << 10;

static pthread_key_t stack_key;
static pthread_once_t stack_key_once = PTHREAD_ONCE_INIT;
static atomic_bool has_stack_key;

static size_t guard_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t stack_bytes(void) {
    size_t frame_bytes = getauxval(AT_MINSIGSTKSZ);
    size_t page = guard_bytes();
    return (handler_bytes + frame_bytes + page - 1) / page * page;
}

/* The thread ends. */
static void free_stack(void *stack) {
    const stack_t none = {.ss_flags = SS_DISABLE};
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == stack) {
        (void)sigaltstack(&none, NULL);
    }
    (void)munmap((char *)stack - guard_bytes(), guard_bytes() + stack_bytes());
}

static void make_key(void) {
    atomic_store(&has_stack_key, pthread_key_create(&stack_key, free_stack) == 0);
}

bugpack_status bp_crash_thread_init(bugpack_error *error) {
    stack_t now;
    if (sigaltstack(NULL, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) {
        return BUGPACK_OK; /* the host's own */
    }
    (void)pthread_once(&stack_key_once, make_key);
    char *mapped = mmap(NULL, guard_bytes() + stack_bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED || !atomic_load(&has_stack_key)) {
        return bp_fail_memory(error, "make an alternate stack");
    }
    stack_t stack = {.ss_sp = mapped + guard_bytes(), .ss_size = stack_bytes()};
    if (mprotect(mapped, guard_bytes(), PROT_NONE) != 0 ||
        pthread_setspecific(stack_key, stack.ss_sp) != 0 || sigaltstack(&stack, NULL) != 0) {
        int system_errno = errno;
        (void)pthread_setspecific(stack_key, NULL);
        (void)munmap(mapped, guard_bytes() + stack_bytes());
        return bp_fail_errno(error, system_errno, "cannot make an alternate stack");
    }
    return BUGPACK_OK;
}
