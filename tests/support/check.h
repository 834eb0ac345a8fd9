/*
 * Checks for test programs with a main() of their own: threads, forks and kills do not go with
 * Criterion.
 */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

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

#endif
