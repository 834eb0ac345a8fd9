/*
 * Checks for test programs with a main() of their own: threads, forks and kills do not go with
 * Criterion.
 */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Ends the program with status 1, and says where, when the condition does not hold. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A test that cannot run on this machine: say why, in one line. */
#define SKIP(reason)                                                                               \
    do {                                                                                           \
        (void)printf("skipped: %s\n", reason);                                                     \
        exit(77);                                                                                  \
    } while (0)

/* How long a run is: the program's argument, or what a sample of it is in CI. docs/VERIFICATION.md
 * says which programs have a long run. */
static inline unsigned long run_length(int argument_count, char **arguments, unsigned long usual) {
    return argument_count > 1 ? strtoul(arguments[1], NULL, 10) : usual;
}

/* Begins the program again so that mallinfo2 counts what is in use and no more: glibc counts freed
 * memory that it keeps for a thread. All threads share one arena. */
static inline void count_heap_exactly(char **arguments) {
    if (getenv("GLIBC_TUNABLES") == NULL) {
        (void)setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", 1);
        (void)execv("/proc/self/exe", arguments);
    }
}

#endif
