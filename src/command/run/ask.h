/*
 * Asking a running session for a report.
 */
#ifndef BP_RUN_ASK_H
#define BP_RUN_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

/* A session that can be asked. */
typedef struct bp_run_answering {
    char app_name[65];
    char target_name[64]; /* "": it is about its own process */
    pid_t pid, target_pid;
    bool is_mapped; /* found in the memory of `pid`, which has to be the process that answers */
    int dir_fd;     /* the caller's to close, and the list's to free */
} bp_run_answering;

/* Lists the sessions of this user that have a socket; with a `pid` those of this process or about
 * it, where root asks of any user. They are looked for where sessions are, and then in the mappings
 * of processes: of `pid` where it was not found, or of all. Errors: NO_MEMORY. */
bugpack_status bp_run_ask_list(pid_t pid, bp_run_answering **ret_sessions, size_t *ret_count,
                               bugpack_error *error);
void bp_run_ask_free(bp_run_answering *sessions, size_t count);

/*
 * Asks for a report of at most `max_zip_bytes` (0: no limit), and waits for the answer until
 * `deadline_ns` (monotonic). The status is that of the report. Errors besides: NO_PROCESS, DENIED,
 * TIMEOUT, IO; UNSUPPORTED from a session of an earlier version, which has written a report without
 * that limit: the message names it.
 */
bugpack_status bp_run_ask(const bp_run_answering *session, uint64_t max_zip_bytes,
                          uint64_t deadline_ns, uint32_t *ret_missing_count, char *ret_path,
                          size_t path_bytes, bugpack_error *error);

#endif
