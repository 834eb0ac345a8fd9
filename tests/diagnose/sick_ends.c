/* Programs that end badly. */
#include "sick.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void abort_by_assert(void) {
    int answer = 41;
    assert(answer == 42);
}

static void free_twice(void) {
    char *volatile block = malloc(16);
    char *volatile again = block;
    free(block);
    free(again);
}

static void fail_with_words(void) {
    (void)fputs("cannot open /etc/viewer.conf: Permission denied\n", stderr);
    exit(3);
}

static void fail_silently(void) {
    exit(7);
}

__attribute__((noinline)) static void draw_nothing(int *where) {
    *(volatile int *)where = 1;
    __asm__ volatile("");
}

static void use_null(void) {
    int *volatile nowhere = NULL;
    draw_nothing(nowhere);
}

static void jump_to_null(void) {
    void (*volatile nowhere)(void) = NULL;
    nowhere();
}

__attribute__((noinline)) static int descend(volatile int depth) {
    volatile char block[4096];
    block[0] = (char)depth;
    return depth < 0 ? 0 : descend(depth + 1) + block[0];
}

static void overflow_stack(void) {
    exit(descend(0));
}

/* The file is cut while it is mapped. */
static void truncate_mapping(void) {
    int fd = open("cache.index", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    check(ftruncate(fd, 1 << 16));
    volatile char *bytes = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(bytes == MAP_FAILED ? -1 : 0);
    check(ftruncate(fd, 0));
    bytes[5000] = 1;
}

/* A filter that kills for getcpu, which nothing else here calls. */
static void call_what_is_forbidden(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getcpu, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
    (void)syscall(SYS_getcpu, NULL, NULL, NULL);
}

__attribute__((noinline)) static void divide_by_zero(void) {
    volatile int zero = 0;
    exit(100 / zero);
}

static void write_too_much(void) {
    struct rlimit bytes = {4096, 4096};
    int fd = open("large", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    check(setrlimit(RLIMIT_FSIZE, &bytes));
    (void)!pwrite(fd, "x", 1, 8192);
}

static void be_killed(void) {
    check(raise(SIGKILL));
}

const sick_program sick_ends[] = {{"assert", abort_by_assert},
                                  {"double-free", free_twice},
                                  {"words", fail_with_words},
                                  {"silent", fail_silently},
                                  {"null", use_null},
                                  {"jump-to-null", jump_to_null},
                                  {"stack-overflow", overflow_stack},
                                  {"truncated-mapping", truncate_mapping},
                                  {"forbidden-call", call_what_is_forbidden},
                                  {"division", divide_by_zero},
                                  {"file-size", write_too_much},
                                  {"killed", be_killed},
                                  {NULL, NULL}};
