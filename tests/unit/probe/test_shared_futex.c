/*
 * The search for other processes that have the memory in which a thread waits: for a child that may
 * have it, too.
 */
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "process/shared_futex.h"
#include "unit/unit.h"

static char name[BP_SHARED_FUTEX_NAME_BYTES];

static bool is_alone(const void *address) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d", (int)getpid());
    int thread_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool result = bp_shared_futex_is_alone(thread_fd, (uint64_t)getpid(), (uintptr_t)address, name);
    (void)close(thread_fd);
    return result;
}

static void *map(int kind) {
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    cr_assert(ne(ptr, memory, MAP_FAILED));
    return memory;
}

static pid_t fork_child(void) {
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    return child;
}

static void end(pid_t child) {
    (void)kill(child, SIGKILL);
    cr_assert(eq(int, waitpid(child, NULL, 0), child));
}

/* Only root sees the maps of all processes, and a busy machine may have no time for them. */
static void expect_alone(const void *address, const char *wanted_name) {
    for (unsigned i = 0; geteuid() == 0 && !is_alone(address); i++) {
        cr_assert(lt(uint, i, 50), "other processes seem to have it");
    }
    cr_expect(eq(str, name, geteuid() == 0 ? (char *)wanted_name : ""));
}

Test(shared_futex, is_not_alone_in_private_memory_nor_in_none) {
    cr_expect(not(is_alone(map(MAP_PRIVATE))));
    cr_expect(not(is_alone(NULL)));
}

Test(shared_futex, is_alone_once_the_child_has_ended) {
    const void *memory = map(MAP_SHARED);
    pid_t child = fork_child();
    cr_expect(not(is_alone(memory)));
    end(child);
    expect_alone(memory, "");
}

Test(shared_futex, tells_the_name_of_a_semaphore_as_long_as_it_has_one) {
    char path[64];
    (void)snprintf(path, sizeof path, "/sem.bugpack-%d", (int)getpid());
    sem_t *semaphore = sem_open(path + 5, O_CREAT | O_EXCL, 0600, 0);
    cr_assert(ne(ptr, semaphore, SEM_FAILED));
    pid_t child = fork_child();
    bool is_shared = !is_alone(semaphore);
    end(child);
    expect_alone(semaphore, path + 1);
    cr_assert(eq(int, sem_unlink(path + 5), 0));
    cr_expect(is_shared);
    expect_alone(semaphore, "");
}
