/*
 * Where a stripped shared jemalloc has its counters. A short-lived helper loads the same file, asks
 * mallctl for the addresses of its thread's counters, and writes their distances from the address
 * in the library's TLS slot. Only a file that programs of this user would load anyway is run:
 * bp_calibration_refusal is the rule. Linux only.
 */
#ifndef BP_HEAP_CALIBRATION_H
#define BP_HEAP_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Distances of the counters from the address that the slot gives, in bytes. */
typedef struct bp_calibration {
    int64_t allocated_place;
    int64_t deallocated_place;
} bp_calibration;

/* True if both are multiples of eight, different, and within 64 KiB. Only then is a value of a
 * cache or the helper accepted. Pure. */
bool bp_calibration_is_plausible(const bp_calibration *calibration);

/* The facts that decide whether a library may be run. */
typedef struct bp_calibration_facts {
    const struct stat *mapped; /* the file that the process has mapped */
    const struct stat *named;  /* what its path names in our own mount namespace, or NULL */
    uid_t user;                /* whom we run as */
    /* The process has our root directory. A containerised process does not, and a file that it
     * wrote into a shared directory can have its path and our owner here. */
    bool has_own_root;
    /* bp_calibration_owners_count */
    bool owners_count;
} bp_calibration_facts;

/*
 * Why a library must not be run, or NULL when it may: the process has our root, both files are the
 * same regular one, it belongs to root or to the user, and no other user may write to it. So a
 * library of another user, of a container, or a deleted one is not run. Pure.
 */
const char *bp_calibration_refusal(const bp_calibration_facts *facts);

/*
 * True if the owners on its file system can be trusted: not on a nosuid mount, such as a stick or a
 * FUSE mount of another user. A nosuid mount of the root file system (/nix/store) is trusted.
 */
bool bp_calibration_owners_count(int fd);

/*
 * Runs the helper, the command `calibrator_path` with "calibrate-jemalloc", for the library open as
 * `library_fd`. It has only the environment that the C library needs, and no descriptor but the
 * library and a pipe; it drops every privilege before it loads anything, and is killed after
 * `timeout_ms`. False with a clause in `reason`, and with errno where the helper could not be
 * started or a limit leaves it too little memory, else 0. It is a child of this process: a host
 * that waits for any child may reap it.
 */
bool bp_calibration_run(const char *calibrator_path, int library_fd, uint64_t slot,
                        const char *prefix, uint32_t timeout_ms, bp_calibration *ret_calibration,
                        char *reason, size_t reason_bytes);

/* The helper's main. Arguments: the descriptor of the library, the slot (hexadecimal) and the
 * prefix of mallctl ("-" for none). Writes the result to descriptor 1. Returns the exit status. */
int bp_calibration_help(int argument_count, char **arguments);

#endif
