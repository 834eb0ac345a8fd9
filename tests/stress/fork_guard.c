/*
 * The number that tells a forked child: through many generations each process has the one that it
 * made itself and none that it inherited.
 *
 *   fork_guard [GENERATIONS]
 */
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/thread.h"
#include "support/check.h"

enum { remembered_count = 4, limit_secs = 120 };

/* The newest numbers, own and inherited, by generation. */
static unsigned numbers[remembered_count];

static bool is_told_apart(unsigned long generation) {
    unsigned own, again;
    for (unsigned long i = 1; i < remembered_count && i <= generation; i++) {
        if (bp_fork_number_is(numbers[(generation - i) % remembered_count])) {
            return false;
        }
    }
    if (bp_fork_number_make(&own, NULL) != BUGPACK_OK ||
        bp_fork_number_make(&again, NULL) != BUGPACK_OK) {
        return false;
    }
    numbers[generation % remembered_count] = own;
    for (unsigned long i = 1; i < remembered_count && i <= generation; i++) {
        if (bp_fork_number_is(numbers[(generation - i) % remembered_count])) {
            return false;
        }
    }
    return bp_fork_number_is(own) && bp_fork_number_is(again);
}

/* Each generation forks the next and ends, so that there are never more than two; the last one, or
 * the first one that is wrong, writes how far it came. */
static void run_generations(unsigned long count, int told) {
    (void)alarm(limit_secs);
    unsigned long generation = 0;
    while (is_told_apart(generation) && generation < count) {
        pid_t child = fork();
        if (child != 0) {
            _exit(child < 0);
        }
        generation++;
    }
    _exit(write(told, &generation, sizeof generation) != (ssize_t)sizeof generation);
}

int main(int argument_count, char **arguments) {
    unsigned long count = run_length(argument_count, arguments, 500);
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t first = fork();
    CHECK(first >= 0);
    if (first == 0) {
        (void)close(ends[0]);
        run_generations(count, ends[1]);
    }
    (void)close(ends[1]);
    unsigned long reached = 0;
    CHECK(read(ends[0], &reached, sizeof reached) == (ssize_t)sizeof reached);
    CHECK(waitpid(first, NULL, 0) == first);
    CHECK(reached == count);
    (void)close(ends[0]);
    (void)printf("%lu generations\n", reached);
    return 0;
}
