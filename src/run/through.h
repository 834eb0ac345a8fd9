/*
 * Bytes of a file through a program, as age(1) or gpg(1), into another file.
 */
#ifndef BP_RUN_THROUGH_H
#define BP_RUN_THROUGH_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

/* All borrowed. */
typedef struct bp_run_through {
    const char *const *arguments; /* the program, searched in PATH, to a NULL */
    int from_fd;                  /* its standard input, from byte 0 */
    int to_fd;                    /* gets what it prints */
    uint32_t stall_ms;            /* it is killed when it has printed nothing for so long */
    uint64_t deadline_ns;         /* and at this time (monotonic); 0: never */
    bool (*is_cancelled)(void);   /* and when this is true; NULL: never */
} bp_run_through;

/*
 * Waits until the program has ended. It has a process group of its own, so that no terminal's
 * signal reaches it, and it cannot ask a question there.
 *
 * IO: it is not there, has failed, with what it said, was killed or has printed nothing; or `to_fd`
 * cannot be written. TIMEOUT, CANCELLED. After a failure `to_fd` may have a part.
 */
bugpack_status bp_run_through_program(const bp_run_through *through, bugpack_error *error);

#endif
