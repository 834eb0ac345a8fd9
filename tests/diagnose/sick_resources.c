/* Programs that come to the end of something, or use more and more of it. */
#include "sick.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { mib = 1 << 20 };

static void descriptors(void) {
    struct rlimit limit = {64, 64};
    check(setrlimit(RLIMIT_NOFILE, &limit));
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {}
    check(close(63));
    say_ready();
    wait_for_ever();
}

static void deleted_file(void) {
    char name[] = "sick-XXXXXX";
    int fd = mkstemp(name);
    check(unlink(name));
    check(ftruncate(fd, (off_t)128 * mib));
    say_ready();
    wait_for_ever();
}

/* Healthy: a file that never had a name. */
static void temporary_file(void) {
    int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    check(ftruncate(fd, (off_t)128 * mib));
    say_ready();
    wait_for_ever();
}

/* A file in `mounted`, where the test has mounted something small. */
static void fill_file_system(void) {
    static char block[4096];
    int fd = open("mounted/spool", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    check(fd < 0 ? -1 : 0);
    while (write(fd, block, sizeof block) > 0) {}
    say_ready();
    wait_for_ever();
}

static void use_all_inodes(void) {
    char path[64];
    int first = open("mounted/first", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    check(first < 0 ? -1 : 0);
    for (int i = 0;; i++) {
        (void)snprintf(path, sizeof path, "mounted/mail-%d", i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) {
            break;
        }
        check(close(fd));
    }
    say_ready();
    wait_for_ever();
}

static void write_to_file(void) {
    int fd = open("mounted/journal", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    check(fd < 0 ? -1 : 0);
    say_ready();
    for (;;) {
        (void)!pwrite(fd, "x", 1, 0);
        (void)usleep(10000);
    }
}

static void use_memory(size_t bytes) {
    char *block = malloc(bytes);
    check(block == NULL ? -1 : 0);
    memset(block, 1, bytes);
    __asm__ volatile("" : : "r"(block) : "memory"); /* it is used, for all the compiler knows */
}

/* 25 MiB/s, for at most `seconds`. */
static void grow(int seconds) {
    for (int i = 0; i < 10 * seconds; i++) {
        use_memory(5 * mib / 2);
        (void)usleep(100000);
    }
}

static void grow_for_ever(void) {
    say_ready();
    grow(60);
    wait_for_ever();
}

static void *grow_in_thread(void *unused) {
    grow(60);
    return unused;
}

static void grow_beside_others(void) {
    tell("grower=%d", (int)start(grow_in_thread, NULL, "cache"));
    say_ready();
    wait_for_ever();
}

static void grow_and_fail(void) {
    grow(14);
    exit(1);
}

static void use_up(int limit) {
    struct rlimit bytes = {256 * mib, 256 * mib};
    check(setrlimit(limit, &bytes));
    volatile char *block;
    do {
        block = malloc(mib); /* not touched: it is about addresses */
    } while (block != NULL);
    say_ready();
    wait_for_ever();
}

static void use_address_space(void) {
    use_up(RLIMIT_AS);
}

/* Pages of one block in turn readable or not: each is a mapping. */
static void use_mappings(void) {
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), page_count = 1 << 20;
    char *block = mmap(NULL, page_count * page_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(block == MAP_FAILED ? -1 : 0);
    for (size_t i = 0; i < page_count; i += 2) {
        if (mprotect(block + i * page_bytes, page_bytes, PROT_READ) != 0) {
            break;
        }
    }
    say_ready();
    wait_for_ever();
}

/* Fills the limit of its user, who has no other process. */
static void use_processes(void) {
    struct rlimit limit = {40, 40};
    check(setrlimit(RLIMIT_NPROC, &limit));
    pid_t pid = 1;
    for (int i = 0; i < 100 && pid > 0; i++) {
        pid = fork();
    }
    if (pid != 0) {
        say_ready();
    }
    wait_for_ever();
}

/* Opens inotify for each folder, and never closes it. */
static void use_inotify(void) {
    for (int i = 0; i < 512 && inotify_init1(IN_CLOEXEC) >= 0; i++) {}
    say_ready();
    wait_for_ever();
}

static void use_data(void) {
    use_up(RLIMIT_DATA);
}

/* 60 MiB, in a control group of 64. */
static void fill_group(void) {
    use_memory((size_t)60 * mib);
    say_ready();
    wait_for_ever();
}

static void out_of_memory(void) {
    use_memory((size_t)200 * mib);
}

static void swapped_out(void) {
    size_t bytes = (size_t)128 * mib;
    char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(block == MAP_FAILED ? -1 : 0);
    for (size_t i = 0; i < bytes; i += 4096) {
        memcpy(block + i, &i, sizeof i);
    }
    check(madvise(block, bytes, MADV_PAGEOUT));
    say_ready();
    wait_for_ever();
}

static void *pause_in_thread(void *unused) {
    wait_for_ever();
    return unused;
}

static void start_threads(int count) {
    for (int i = 0; i < count; i++) {
        (void)start(pause_in_thread, NULL, "connection");
    }
    say_ready();
    wait_for_ever();
}

/* Until the test has made the file "go". */
static void await_go(void) {
    say_ready();
    while (access("go", F_OK) != 0) {
        (void)usleep(10000);
    }
}

/* 200 a second, of what is never closed. */
static void leak_files(void) {
    struct rlimit limit;
    check(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    check(setrlimit(RLIMIT_NOFILE, &limit));
    await_go();
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
        (void)usleep(5000);
    }
    wait_for_ever();
}

static const size_t mapped_bytes = (size_t)256 << 10;

static void *map_some(void) {
    void *block = mmap(NULL, mapped_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(block == MAP_FAILED ? -1 : 0);
    return block;
}

/* 50 MiB a second, that are neither used nor unmapped. */
static void leak_mappings(void) {
    await_go();
    for (int i = 0; i < 20000; i++) {
        (void)map_some();
        (void)usleep(5000);
    }
    wait_for_ever();
}

/* As many as it maps it unmaps. */
static void use_and_unmap(void) {
    enum { count_max = 100 };
    void *blocks[count_max];
    await_go();
    for (;;) {
        for (int i = 0; i < count_max; i++) {
            blocks[i] = map_some();
            (void)usleep(5000);
        }
        for (int i = 0; i < count_max; i++) {
            check(munmap(blocks[i], mapped_bytes));
        }
    }
}

/* For a minute, no faster than needed: a capture of thousands takes long on a busy machine. */
static void leak_threads(void) {
    await_go();
    for (int i = 0; i < 1500; i++) {
        (void)start(pause_in_thread, NULL, "connection");
        (void)usleep(40000);
    }
    wait_for_ever();
}

/* Helpers that never end. */
static void leak_children(void) {
    await_go();
    for (int i = 0; i < 1500; i++) {
        (void)start_child(wait_for_ever);
        (void)usleep(40000);
    }
    wait_for_ever();
}

/* Work comes, and a server gets all its workers. */
static void fill_workers(void) {
    await_go();
    for (int i = 0; i < 100; i++) {
        (void)start_child(wait_for_ever);
    }
    wait_for_ever();
}

/* As many connections come as go. */
static void use_files(void) {
    enum { count_max = 200 };
    int fds[count_max];
    await_go();
    for (;;) {
        for (int i = 0; i < count_max; i++) {
            fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
            (void)usleep(2000);
        }
        for (int i = 0; i < count_max; i++) {
            check(close(fds[i]));
        }
    }
}

/* Work comes, and a pool gets all its threads. */
static void fill_pool(void) {
    await_go();
    for (int i = 0; i < 200; i++) {
        (void)start(pause_in_thread, NULL, "worker");
    }
    wait_for_ever();
}

static void many_threads(void) {
    start_threads(600);
}

/* In a control group of 32 tasks. */
static void fill_task_limit(void) {
    start_threads(30);
}

const sick_program sick_resources[] = {{"descriptors", descriptors},
                                       {"deleted-file", deleted_file},
                                       {"temporary-file", temporary_file},
                                       {"deleted-executable", wait_for_ever},
                                       {"disk-full", fill_file_system},
                                       {"inodes-exhausted", use_all_inodes},
                                       {"disk-read-only", write_to_file},
                                       {"growth", grow_for_ever},
                                       {"growth-in-thread", grow_beside_others},
                                       {"growth-and-end", grow_and_fail},
                                       {"address-space", use_address_space},
                                       {"data", use_data},
                                       {"mappings", use_mappings},
                                       {"processes-of-user", use_processes},
                                       {"inotify", use_inotify},
                                       {"group-memory", fill_group},
                                       {"group-tasks", fill_task_limit},
                                       {"out-of-memory", out_of_memory},
                                       {"swapped", swapped_out},
                                       {"many-threads", many_threads},
                                       {"file-leak", leak_files},
                                       {"mapping-leak", leak_mappings},
                                       {"child-leak", leak_children},
                                       {"workers-filled", fill_workers},
                                       {"mappings-in-use", use_and_unmap},
                                       {"thread-leak", leak_threads},
                                       {"files-in-use", use_files},
                                       {"pool-filled", fill_pool},
                                       {NULL, NULL}};
