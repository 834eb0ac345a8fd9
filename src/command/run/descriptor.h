/*
 * Descriptors that no command inherits.
 */
#ifndef BP_RUN_DESCRIPTOR_H
#define BP_RUN_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

/* Two ends, close-on-exec, -1 or untouched on failure: the first one is read. */
bugpack_status bp_descriptor_pipe(int ret_fds[2], bugpack_error *error);

/* False with errno. Not by fcntl, which a sandbox may refuse. */
bool bp_descriptor_keep_from_exec(int fd);

/* For a descriptor whose open file is ours alone: the flag is the file's, not the descriptor's.
 * False with errno. */
bool bp_descriptor_stop_blocking(int fd);

/* Closes a descriptor that is not -1, and sets it to -1. */
void bp_descriptor_close(int *fd);

/* Reads a message whole, whatever signals come. It is small enough (PIPE_BUF) not to be split.
 * False at an end or an error. */
bool bp_descriptor_read_all(int fd, void *bytes, size_t byte_count);

#endif
