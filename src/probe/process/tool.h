/*
 * A program that is run for what it prints. The calling process is its parent, and a host that
 * waits for any child may reap it. Linux only.
 */
#ifndef BP_PROCESS_TOOL_H
#define BP_PROCESS_TOOL_H

#include <stddef.h>
#include <stdint.h>

/* The number that `extra_fd` has in the program. */
enum { BP_TOOL_EXTRA_FD = 3 };

/* All borrowed. The program has no other descriptors of ours; its input is empty and what it prints
 * as errors is dropped. */
typedef struct bp_tool {
    const char *path;
    const char *const *arguments;
    char *const *environment;
    int extra_fd;         /* -1: none */
    uint64_t deadline_ns; /* monotonic */
} bp_tool;

/*
 * Waits until the program ends. At the deadline it gets SIGTERM, so that it can leave its files in
 * order, and then SIGKILL. 0 with the length of what it printed; ETIMEDOUT; EPROTO if it failed or
 * printed `out_bytes` or more; any other errno if it could not be started.
 */
int bp_tool_run(const bp_tool *tool, char *out, size_t out_bytes, size_t *ret_length);

#endif
