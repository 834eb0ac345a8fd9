/*
 * A Mach that counts: a kernel with one process, our own. It hands out port rights and memory and
 * remembers what came back, and each of its calls can be made to fail. Any thread may call it.
 */
#ifndef TESTS_SUPPORT_MACH_FAKE_KERNEL_H
#define TESTS_SUPPORT_MACH_FAKE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MACH_FAKE_THREADS_MAX = 200 };

typedef struct mach_fake_thread {
    uint64_t id;
    uint64_t user_us, system_us;
    char name[64];
    bool is_pthread; /* else pthread_from_mach_thread_np knows none */
} mach_fake_thread;

/* The process; a test changes it as it likes, between calls or in `on_call`. */
typedef struct mach_fake_world {
    bool is_alive;
    mach_fake_thread threads[MACH_FAKE_THREADS_MAX];
    size_t thread_count;
    uint64_t ended_us; /* CPU time of threads that are gone */
    uint64_t virtual_bytes, resident_bytes, heap_used_bytes, heap_held_bytes;
    uint64_t read_bytes, written_bytes;
    uint32_t numer, denom;      /* of mach_timebase_info */
    uint64_t kernel_hertz;      /* of what the kernel hands out; hw.tbfrequency says so */
    uint64_t absolute, started; /* ticks that exclude sleep, in their own units: see below */
    uint64_t asleep_ns;
    uint64_t start_secs, start_usecs; /* by the wall clock */
    int32_t faults, pageins;
    char name[32], command[16];
    const char *path, *directory;
    const char *arguments; /* what KERN_PROCARGS2 shows */
    size_t arguments_bytes;
    int fd_count;
    bool has_frequency; /* whether there is a hw.tbfrequency */
    int short_by;       /* bytes that libproc leaves out at the end of each structure */
    /* Called before each call is answered, with the call's name. May be NULL. */
    void (*on_call)(const char *call);
} mach_fake_world;

extern mach_fake_world mach_fake;

/* A process with three threads on Apple silicon, 100 s old, and nothing outstanding. */
void mach_fake_reset(void);

/* Adds a thread; NULL when there are as many as there can be. */
mach_fake_thread *mach_fake_add(uint64_t id, const char *name, uint64_t user_us,
                                uint64_t system_us);

/* Ends a thread: its time goes over to `ended_us`. */
void mach_fake_end(size_t index);

/* What is out and has not come back, and what came back that was not out. */
typedef struct mach_fake_account {
    size_t rights, lists, list_bytes;
    size_t wrong_releases;
    uint64_t rights_given; /* ever */
} mach_fake_account;
mach_fake_account mach_fake_outstanding(void);

/*
 * From now on counts the calls that can fail, the allocations of the code under test among them,
 * and lets the `nth` (1-based; 0: none) fail with `code`: a kern_return_t of Mach's, or an errno.
 * The count ends at the next arming.
 */
void mach_fake_fail(unsigned long nth, int mach_code, int errno_code);
unsigned long mach_fake_calls(void);

/* The name of the call that was made to fail, or of the fact that it reads; "" when none was. */
const char *mach_fake_failed_call(void);

/* Lets the nth release of a right from now on be refused; the right stays out. 0: none. */
void mach_fake_refuse_release(unsigned long nth);

/* For the files of the fake: takes the lock; the second says whether this call is to fail. */
void mach_fake_hold(void);
bool mach_fake_enter(const char *call);
void mach_fake_leave(void);
int mach_fake_mach_code(void);
int mach_fake_errno_code(void);

#endif
