/*
 * The guard that tells a forked child: through more generations than a page of guards has room for,
 * each process is the owner of what it made itself and of nothing that it inherited.
 *
 *   fork_guard [GENERATIONS]
 */
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/thread.h"
#include "support/check.h"

enum { remembered_count = 4, limit_secs = 120 };

/* The newest guards, own and inherited, by generation. */
static bp_fork_guard *guards[remembered_count];

static bool is_told_apart(unsigned long generation) {
    bp_fork_guard *own = NULL;
    bp_fork_guard *again = NULL;
    for (unsigned long i = 1; i < remembered_count && i <= generation; i++) {
        if (bp_fork_guard_is_owner(guards[(generation - i) % remembered_count])) {
            return false;
        }
    }
    if (bp_fork_guard_new(&own, NULL) != BUGPACK_OK ||
        bp_fork_guard_new(&again, NULL) != BUGPACK_OK) {
        return false;
    }
    guards[generation % remembered_count] = own;
    for (unsigned long i = 1; i < remembered_count && i <= generation; i++) {
        if (bp_fork_guard_is_owner(guards[(generation - i) % remembered_count])) {
            return false;
        }
    }
    return bp_fork_guard_is_owner(own) && bp_fork_guard_is_owner(again);
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
    unsigned long count = run_length(argument_count, arguments, 4200);
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
