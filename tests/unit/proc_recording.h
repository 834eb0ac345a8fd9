/*
 * Recorded and made-up processes for tests.
 */
#ifndef TESTS_UNIT_PROC_RECORDING_H
#define TESTS_UNIT_PROC_RECORDING_H

#include <stddef.h>

#include "platform/linux/process_private.h"

/* One case of fixtures/proc. Everything in it is valid until it is closed. */
typedef struct proc_recording {
    pid_t pid;
    bp_proc_root first, second;
    char expected[32768]; /* the text of expected.txt */
} proc_recording;

/* Opens a case, or ends the test. */
void recording_open(const char *name, proc_recording *ret_recording);
void recording_close(proc_recording *recording);

/* The word behind `key` in expected.txt; ends the test when there is none. Copied into `out`. */
void recording_expect(const proc_recording *recording, const char *key, char *out,
                      size_t out_bytes);

/* A directory that stands for /proc and holds process 7 with one thread; to be changed at will. */
typedef struct made_proc {
    char path[64];
    bp_proc_root root;
} made_proc;
void made_proc_init(made_proc *made);
void made_proc_write(const made_proc *made, const char *name, const char *text);
void made_proc_remove(const made_proc *made, const char *name);
void made_proc_release(made_proc *made);

/* A line of stat for process or thread 7. */
#define MADE_STAT(state, ticks, start)                                                             \
    "7 (made) " state " 1 7 7 0 -1 0 0 0 0 0 " ticks " 0 0 0 20 0 1 0 " start " 4096 1 \n"

#endif
