#include "support/failing_malloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sanitizer.h"

#if !defined(__GLIBC__) || BP_SANITIZED

bool failing_malloc_is_available(void) {
    return false;
}

void failing_malloc_arm(unsigned long nth, bool and_all_later) {
    (void)nth;
    (void)and_all_later;
}

void failing_malloc_arm_burst(unsigned long nth, unsigned long count) {
    (void)nth;
    (void)count;
}

void failing_malloc_only_here(void) {
}

void failing_malloc_only_of(const char *library) {
    (void)library;
}

unsigned long failing_malloc_disarm(void) {
    return 0;
}

#else

/* The default visibility is what lets these stand in for libc's in the shared libraries too. */
#define INTERPOSED __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_bool is_armed;
static atomic_ulong fail_at;
static atomic_ulong fail_count;
static atomic_ulong own_tried, *tried = &own_tried; /* shared with processes that are forked */
static atomic_int only_tid;                         /* 0: all threads */
static const char *only_library;                    /* part of its path; NULL: all */

bool failing_malloc_is_available(void) {
    return true;
}

void failing_malloc_arm(unsigned long nth, bool and_all_later) {
    failing_malloc_arm_burst(nth, and_all_later ? ULONG_MAX : 1);
}

void failing_malloc_arm_burst(unsigned long nth, unsigned long count) {
    if (tried == &own_tried) {
        void *shared =
            mmap(NULL, sizeof *tried, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        tried = shared != MAP_FAILED ? shared : tried;
    }
    atomic_store(tried, 0);
    atomic_store(&fail_at, nth);
    atomic_store(&fail_count, count);
    atomic_store(&is_armed, true);
}

void failing_malloc_only_here(void) {
    atomic_store(&only_tid, (int)gettid());
}

void failing_malloc_only_of(const char *library) {
    only_library = library;
}

unsigned long failing_malloc_disarm(void) {
    atomic_store(&is_armed, false);
    return atomic_load(tried);
}

static bool is_meant(const void *caller) {
    Dl_info info;
    int only = atomic_load(&only_tid);
    return (only == 0 || only == (int)gettid()) &&
           (only_library == NULL ||
            (dladdr(caller, &info) != 0 && strstr(info.dli_fname, only_library) != NULL));
}

static bool fails_now(const void *caller) {
    if (!atomic_load(&is_armed) || !is_meant(caller)) {
        return false;
    }
    unsigned long number = atomic_fetch_add(tried, 1) + 1;
    unsigned long nth = atomic_load(&fail_at);
    bool fails = nth != 0 && number >= nth && number - nth < atomic_load(&fail_count);
    if (fails) {
        errno = ENOMEM;
    }
    return fails;
}

INTERPOSED void *malloc(size_t size) {
    return fails_now(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

INTERPOSED void *calloc(size_t count, size_t size) {
    return fails_now(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

INTERPOSED void *realloc(void *block, size_t size) {
    return fails_now(__builtin_return_address(0)) ? NULL : __libc_realloc(block, size);
}

INTERPOSED void *aligned_alloc(size_t alignment, size_t size) {
    return fails_now(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

#endif
