/*
 * Child processes to sample. Each dies with the test.
 */
#ifndef TESTS_STRESS_SAMPLER_CHILD_H
#define TESTS_STRESS_SAMPLER_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* A child with four threads, three of them with hostile names; returns when all are there. */
pid_t start_child(void);

/* The same, but the first of the four threads ends then, or is about to. */
pid_t start_child_without_main(void);

/* A child that runs a program with the argument "1000", past its exec. */
pid_t start_program(const char *path);

/* Kills a child and waits for its end; unless `reap`, a zombie is left. */
void kill_child(pid_t pid, bool reap);

#endif
