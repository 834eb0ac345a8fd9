/*
 * For whom a thread waits: recorded memory of glibc 2.36, and the same with one thing wrong each.
 */
#include <pthread.h>

#include "platform/linux/thread_wait.h"
#include "unit/unit.h"

enum { AT = 0x7000, WORD_COUNT = 32, WAIT = 0, WAIT_BITSET = 9, LOCK_PI = 6, PRIVATE = 128 };

static const uint32_t with_waiters = 0x80000000u;

/* Memory from AT on. */
struct memory {
    uint32_t words[WORD_COUNT];
};

static bool read_memory(void *context, uint64_t address, void *out, size_t bytes) {
    const struct memory *memory = context;
    if (address < AT || address + bytes > AT + sizeof memory->words) {
        return false;
    }
    memcpy(out, (const char *)memory->words + (address - AT), bytes);
    return true;
}

static bool has_thread(void *context, uint64_t tid) {
    return tid == 41 || tid == 42;
}

static bp_futex_process process_of(struct memory *memory) {
    return (bp_futex_process){.arch = BP_SYSCALL_X86_64,
                              .has_glibc = true,
                              .has_descriptors = true,
                              .descriptor_tid = 16,
                              .descriptor_link = 0,
                              .link_next = 0,
                              .context = memory,
                              .read = read_memory,
                              .has_thread = has_thread};
}

static bp_thread_syscall futex(size_t word, uint32_t operation, uint32_t value) {
    return (bp_thread_syscall){.place = BP_THREAD_IN_CALL,
                               .number = 202,
                               .arguments = {AT + word * 4, operation, value, 0, 0, UINT32_MAX}};
}

/* What is found of a call at this word; 0: nothing. */
static uint64_t owner(const struct memory *memory, size_t word, uint32_t operation,
                      uint32_t value) {
    struct memory copy = *memory;
    bp_futex_process process = process_of(&copy);
    bp_thread_syscall syscall = futex(word, operation, value);
    bp_futex_wait wait = {.tid = 0};
    return bp_futex_wait_find(&process, &syscall, &wait) ? wait.tid : 0;
}

/* __lock, __count, __owner, __nusers, __kind, from the fifteenth word on: rwlocks begin before. */
enum { MUTEX = 15 };
static const struct memory locked = {{[MUTEX] = 2, 0, 41, 1, 0}};

Test(futex_wait, finds_the_owner_of_a_mutex) {
    struct memory memory = locked;
    bp_futex_process process = process_of(&memory);
    bp_thread_syscall syscall = futex(MUTEX, WAIT | PRIVATE, 2);
    bp_futex_wait wait = {.tid = 0};
    cr_assert(bp_futex_wait_find(&process, &syscall, &wait));
    cr_expect(eq(u64, wait.tid, 41));
    cr_expect(eq(int, wait.kind, BP_FUTEX_KIND_MUTEX));
    cr_expect(eq(u64, wait.address, AT + MUTEX * 4));
    cr_expect(not(wait.is_timed));
}

/* 51 is a thread of another process, and 52 has ended. */
static bp_futex_owner find_other(void *context, uint64_t tid) {
    if (tid == 51) {
        return BP_FUTEX_OWNER_PROCESS;
    }
    return tid == 52 ? BP_FUTEX_OWNER_ENDED : BP_FUTEX_OWNER_UNKNOWN;
}

static bp_futex_owner kind_of_owner(uint32_t tid, bool is_shared) {
    struct memory memory = locked;
    bp_futex_process process = process_of(&memory);
    bp_thread_syscall syscall = futex(MUTEX, is_shared ? WAIT : WAIT | PRIVATE, 2);
    bp_futex_wait wait = {.tid = 0};
    process.find_other = find_other;
    memory.words[MUTEX + 2] = tid;
    memory.words[MUTEX + 4] = is_shared ? 128 : 0;
    return bp_futex_wait_find(&process, &syscall, &wait) ? wait.owner : BP_FUTEX_OWNER_UNKNOWN;
}

Test(futex_wait, knows_an_owner_of_another_process_and_one_that_ended) {
    cr_expect(eq(int, kind_of_owner(41, false), BP_FUTEX_OWNER_THREAD));
    cr_expect(eq(int, kind_of_owner(51, true), BP_FUTEX_OWNER_PROCESS));
    cr_expect(eq(int, kind_of_owner(51, false), BP_FUTEX_OWNER_UNKNOWN), "it is private");
    cr_expect(eq(int, kind_of_owner(52, true), BP_FUTEX_OWNER_ENDED));
    cr_expect(eq(int, kind_of_owner(52, false), BP_FUTEX_OWNER_ENDED));
    cr_expect(eq(int, kind_of_owner(53, true), BP_FUTEX_OWNER_UNKNOWN));
}

Test(futex_wait, knows_a_wait_that_ends_by_itself) {
    struct memory memory = locked;
    bp_futex_process process = process_of(&memory);
    bp_thread_syscall syscall = futex(MUTEX, WAIT_BITSET | PRIVATE, 2);
    bp_futex_wait wait = {.tid = 0};
    cr_expect(not(bp_futex_wait_find(&process, &syscall, &wait)), "a condition, untimed");
    syscall.arguments[3] = 0x7ffd0000;
    cr_assert(bp_futex_wait_find(&process, &syscall, &wait));
    cr_expect(wait.is_timed);
}

Test(futex_wait, knows_nobody_where_one_thing_is_not_as_in_a_mutex) {
    static const struct {
        const char *what;
        size_t word;
        uint32_t value;
    } changes[] = {{"not contended", 0, 1},
                   {"free", 0, 0},
                   {"a count", 1, 1},
                   {"no owner", 2, 0},
                   {"an owner elsewhere", 2, 43},
                   {"no user", 3, 0},
                   {"a recursive one, free", 4, 1},
                   {"one that is shared", 4, 128},
                   {"one with a ceiling", 4, 64},
                   {"a robust one", 4, 16},
                   {"an unknown kind", 4, 0x100000},
                   {"a pointer", 3, 0}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct memory memory = locked;
        memory.words[MUTEX + changes[i].word] = changes[i].value;
        cr_expect(eq(u64, owner(&memory, MUTEX, WAIT | PRIVATE, 2), 0), "%s", changes[i].what);
    }
    cr_expect(eq(u64, owner(&locked, MUTEX, WAIT | PRIVATE, 2), 41));
    cr_expect(eq(u64, owner(&locked, MUTEX, WAIT | PRIVATE, 1), 0), "waits for another value");
    cr_expect(eq(u64, owner(&locked, MUTEX, WAIT, 2), 0), "waits as for a shared one");
    cr_expect(eq(u64, owner(&locked, MUTEX, 1 | PRIVATE, 2), 0), "wakes");
    cr_expect(eq(u64, owner(&locked, WORD_COUNT - 1, WAIT | PRIVATE, 2), 0), "unreadable");
}

Test(futex_wait, finds_the_owners_of_recursive_shared_and_robust_mutexes) {
    struct memory memory = locked;
    memory.words[MUTEX + 4] = PTHREAD_MUTEX_RECURSIVE;
    memory.words[MUTEX + 1] = 3;
    cr_expect(eq(u64, owner(&memory, MUTEX, WAIT | PRIVATE, 2), 41));
    memory = locked;
    memory.words[MUTEX + 4] = 128;
    cr_expect(eq(u64, owner(&memory, MUTEX, WAIT, 2), 41));
    memory.words[MUTEX + 4] = 16;
    memory.words[MUTEX] = with_waiters | 41;
    cr_expect(eq(u64, owner(&memory, MUTEX, WAIT, with_waiters | 41), 41));
    memory.words[MUTEX] |= 0x40000000;
    cr_expect(eq(u64, owner(&memory, MUTEX, WAIT, memory.words[MUTEX]), 0), "its owner has died");
}

Test(futex_wait, finds_the_owner_of_a_futex_with_inheritance_in_any_library) {
    struct memory memory = {{[MUTEX] = with_waiters | 42}};
    bp_futex_process process = process_of(&memory);
    bp_thread_syscall syscall = futex(MUTEX, LOCK_PI | PRIVATE, 0);
    bp_futex_wait wait = {.tid = 0};
    process.has_glibc = false;
    cr_assert(bp_futex_wait_find(&process, &syscall, &wait));
    cr_expect(eq(u64, wait.tid, 42));
    memory.words[MUTEX] = 42;
    cr_expect(not(bp_futex_wait_find(&process, &syscall, &wait)), "nobody waits");
}

Test(futex_wait, knows_nobody_without_glibc_or_the_architecture) {
    struct memory memory = locked;
    bp_futex_process process = process_of(&memory);
    bp_thread_syscall syscall = futex(MUTEX, WAIT | PRIVATE, 2);
    bp_futex_wait wait = {.tid = 0};
    process.has_glibc = false;
    cr_expect(not(bp_futex_wait_find(&process, &syscall, &wait)));
    process = process_of(&memory);
    process.arch = BP_SYSCALL_AARCH64;
    cr_expect(not(bp_futex_wait_find(&process, &syscall, &wait)), "202 is another call there");
    syscall.number = 98;
    cr_expect(bp_futex_wait_find(&process, &syscall, &wait));
    process.arch = BP_SYSCALL_UNKNOWN;
    cr_expect(not(bp_futex_wait_find(&process, &syscall, &wait)));
}

/* __readers, __writers, __wrphase_futex, __writers_futex, two pads, __cur_writer, __shared, 0s. */
enum { RWLOCK = 12 };
static const struct memory written = {{[RWLOCK] = 0x13, 0, 3, 1, 0, 0, 42, 0}};

Test(futex_wait, finds_the_writer_of_an_rwlock) {
    cr_expect(eq(u64, owner(&written, RWLOCK + 2, WAIT_BITSET | 256 | PRIVATE, 3), 42));
    struct memory memory = written;
    memory.words[RWLOCK + 3] = 3;
    memory.words[RWLOCK + 2] = 1;
    cr_expect(eq(u64, owner(&memory, RWLOCK + 3, WAIT_BITSET | 256 | PRIVATE, 3), 42));
}

Test(futex_wait, knows_nobody_where_one_thing_is_not_as_in_a_held_rwlock) {
    static const struct {
        const char *what;
        size_t word;
        uint32_t value;
    } changes[] = {{"held by readers", 0, 0x10},
                   {"a writer that waits for readers", 0, 0x12},
                   {"not waited for", 2, 1},
                   {"padding", 4, 1},
                   {"no writer", 6, 0},
                   {"a writer elsewhere", 6, 43},
                   {"shared", 7, 1},
                   {"flags", 12, 99}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct memory memory = written;
        memory.words[RWLOCK + changes[i].word] = changes[i].value;
        cr_expect(eq(u64, owner(&memory, RWLOCK + 2, WAIT_BITSET | 256 | PRIVATE, 3), 0), "%s",
                  changes[i].what);
    }
    cr_expect(eq(u64, owner(&written, RWLOCK + 2, WAIT_BITSET | 256 | PRIVATE, 2), 0),
              "a writer waits for readers");
}

static uint32_t readers(const struct memory *memory, uint32_t value) {
    struct memory copy = *memory;
    bp_futex_process process = process_of(&copy);
    bp_thread_syscall syscall = futex(RWLOCK + 2, WAIT_BITSET | 256 | PRIVATE, value);
    return bp_futex_wait_readers(&process, &syscall);
}

Test(futex_wait, counts_the_readers_that_a_writer_waits_for) {
    static const struct memory wanted = {{[RWLOCK] = 0x12, 0, 2, 1, 0, 0, 0, 0}};
    cr_expect(eq(u32, readers(&wanted, 2), 2));
    cr_expect(eq(u32, readers(&wanted, 3), 0), "another value");
    cr_expect(eq(u32, readers(&written, 2), 0), "held by a writer");
    struct memory memory = wanted;
    memory.words[RWLOCK + 4] = 1;
    cr_expect(eq(u32, readers(&memory, 2), 0), "padding");
}

/* A descriptor: the link to the next and the one back, then, at 16, the id. The next follows. */
static const struct memory joined = {
    {[MUTEX + 1] = AT + 24 * 4, 0, 0, 0, 42, [24] = 0, 0, AT + (MUTEX + 1) * 4}};

Test(futex_wait, finds_the_thread_that_is_joined) {
    cr_expect(eq(u64, owner(&joined, MUTEX + 5, WAIT_BITSET | 256, 42), 42));
    cr_expect(eq(u64, owner(&joined, MUTEX + 5, WAIT_BITSET | 256 | PRIVATE, 42), 0), "private");
    cr_expect(eq(u64, owner(&joined, MUTEX + 5, WAIT_BITSET | 256, 41), 0), "another value");
    struct memory memory = joined;
    memory.words[26]++;
    cr_expect(eq(u64, owner(&memory, MUTEX + 5, WAIT_BITSET | 256, 42), 0), "no list");
    memory = joined;
    memory.words[MUTEX + 5] = 43;
    cr_expect(eq(u64, owner(&memory, MUTEX + 5, WAIT_BITSET | 256, 43), 0), "a thread elsewhere");
}

/* The lock of a FILE: the word, how often its owner has it, and the owner's descriptor. */
static const struct memory printed = {{[MUTEX + 1] = 2, 1, AT + 24 * 4, [28] = 42}};

Test(futex_wait, finds_the_thread_that_has_a_stream) {
    cr_expect(eq(u64, owner(&printed, MUTEX + 1, WAIT | PRIVATE, 2), 42));
    cr_expect(eq(u64, owner(&printed, MUTEX + 1, WAIT, 2), 0), "shared");
    cr_expect(eq(u64, owner(&printed, MUTEX + 1, WAIT | PRIVATE, 1), 0), "another value");
    for (size_t i = 1; i <= 3; i++) { /* not locked; nobody has it; no descriptor */
        struct memory memory = printed;
        memory.words[MUTEX + i] = 0;
        cr_expect(eq(u64, owner(&memory, MUTEX + 1, WAIT | PRIVATE, 2), 0), "word %zu", i);
    }
    struct memory memory = printed;
    memory.words[28] = 43;
    cr_expect(eq(u64, owner(&memory, MUTEX + 1, WAIT | PRIVATE, 2), 0), "a thread elsewhere");
}

#if defined(__GLIBC__) && defined(__LP64__)
/* The layouts above are those of this build's C library. */
_Static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0, "lock");
_Static_assert(offsetof(pthread_mutex_t, __data.__count) == 4, "count");
_Static_assert(offsetof(pthread_mutex_t, __data.__owner) == 8, "owner");
_Static_assert(offsetof(pthread_mutex_t, __data.__nusers) == 12, "users");
_Static_assert(offsetof(pthread_mutex_t, __data.__kind) == 16, "kind");
_Static_assert(offsetof(pthread_rwlock_t, __data.__wrphase_futex) == 8, "phase");
_Static_assert(offsetof(pthread_rwlock_t, __data.__writers_futex) == 12, "writers");
_Static_assert(offsetof(pthread_rwlock_t, __data.__cur_writer) == 24, "writer");
_Static_assert(offsetof(pthread_rwlock_t, __data.__shared) == 28, "shared");
_Static_assert(offsetof(pthread_rwlock_t, __data.__flags) == 48, "flags");
#endif
