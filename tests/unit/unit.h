/*
 * What every unit test includes: Criterion, and the headers of C that a test needs to say what went
 * wrong.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <bugpack/error.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a call said that failed. It begins empty: each test is a process. */
__attribute__((unused)) static bugpack_error failure = BUGPACK_ERROR_INIT;

/* Callbacks of tests look at few of their parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Releases a variable where its block ends, as in `CLEANUP(bp_buffer_release) bp_buffer out;`. It
 * has to be initialised before the block can be left. */
#define CLEANUP(release) __attribute__((cleanup(release)))

/* A bp_buffer that is released where its block ends. */
#define BUFFER(name, max_bytes)                                                                    \
    CLEANUP(bp_buffer_release) bp_buffer name;                                                     \
    bp_buffer_init(&name, max_bytes)

/* For CLEANUP: of a pointer to what malloc gave, and of a descriptor. */
static inline void free_memory(void *pointer) {
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    free(memory);
}

static inline void close_fd(int *fd) {
    (void)close(*fd);
}

#endif
