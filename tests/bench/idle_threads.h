/*
 * A process with as many threads as a bench wants.
 */
#ifndef TESTS_BENCH_IDLE_THREADS_H
#define TESTS_BENCH_IDLE_THREADS_H

/* Starts threads that do nothing for ever until there are `thread_count`, the calling one included,
 * and returns when all run. Small stacks: 10,000 fit. Ends the program when it cannot. */
void start_idle_threads(unsigned thread_count);

#endif
