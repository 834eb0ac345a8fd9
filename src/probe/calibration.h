/*
 * Where a stripped shared jemalloc keeps its counters, found out by asking the library itself: a
 * short-lived program of ours loads the same file, asks mallctl where the counters of its thread
 * are, and tells how far that is from what the library's TLS slot says. Linux only.
 *
 * To load a library is to run its code, and a process under investigation can map any file. So only
 * a file that programs of this user would load anyway is run: bp_calibration_refusal is the rule.
 */
#ifndef BP_PROBE_CALIBRATION_H
#define BP_PROBE_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Distances from the address that the slot stands for to each counter, in bytes. */
typedef struct bp_calibration {
    int64_t allocated_place;
    int64_t deallocated_place;
} bp_calibration;

/* Whether both are multiples of eight, different, and within 64 KiB: a calibration from outside (a
 * cache, the helper's answer) is believed only then. Pure. */
bool bp_calibration_is_plausible(const bp_calibration *calibration);

/* What decides whether a library may be run. */
typedef struct bp_calibration_facts {
    const struct stat *mapped; /* the file that the process has mapped */
    const struct stat *named;  /* what its path names in our own mount namespace, or NULL */
    uid_t user;                /* whom we run as */
    /* The process has the root directory that we have. One in a container has not, and a file that
     * it wrote into a directory that it shares with us can have its path and our owner here. */
    bool has_own_root;
    /* The owners on its file system are to be believed: bp_calibration_owners_count. */
    bool owners_count;
} bp_calibration_facts;

/*
 * Why a library must not be run, or NULL when it may: when the process lives in our own root, both
 * files are the same regular one, it belongs to root or to the user, and nobody else may write to
 * it. So a library of another user's, of a container, or one that was deleted is not run. Pure.
 */
const char *bp_calibration_refusal(const bp_calibration_facts *facts);

/*
 * Whether what the file system says of owners was said by this machine's administrator: not when it
 * is mounted nosuid, like a stick, or what another user serves through FUSE. A part of the root
 * file system that is mounted so once more (/nix/store) is believed.
 */
bool bp_calibration_owners_count(int fd);

/*
 * Runs the helper, `calibrator_path` with the argument "calibrate-jemalloc", which is the bugpack
 * command (its own process calls it "/proc/self/exe"), for the library open as `library_fd`. It has
 * an empty environment but for what the C library needs, no descriptor but the library and a pipe,
 * gives up every privilege before it loads anything, and is killed after `timeout_ms`. False with a
 * clause in `reason`.
 *
 * The helper is a child of this process for that time. A process that waits for any child may
 * collect it in our place, which does not matter here.
 */
bool bp_calibration_run(const char *calibrator_path, int library_fd, uint64_t slot,
                        const char *prefix, uint32_t timeout_ms, bp_calibration *ret_calibration,
                        char *reason, size_t reason_bytes);

/*
 * Answers of earlier runs, by build id: one small file each in $XDG_CACHE_HOME/bugpack, or
 * ~/.cache/bugpack. What is not a directory of this user's alone, or a file of his in it, is left
 * alone; so is a text that is not exactly what store writes. Both are best effort.
 */
bool bp_calibration_cache_load(const char *build_id, uint64_t slot,
                               bp_calibration *ret_calibration);
void bp_calibration_cache_store(const char *build_id, uint64_t slot,
                                const bp_calibration *calibration);

/* The helper's main, once it has given up its privileges: arguments are the descriptor of the
 * library, the slot (hexadecimal) and the prefix of mallctl ("-" for none). Prints the answer to
 * descriptor 1. Returns the exit status. */
int bp_calibration_help(int argument_count, char **arguments);

/* The text of an answer and of a cached one, and back. Pure. */
#define BP_CALIBRATION_TEXT_BYTES 128
void bp_calibration_format(uint64_t slot, const bp_calibration *calibration,
                           char out[BP_CALIBRATION_TEXT_BYTES]);
bool bp_calibration_parse(const char *text, size_t text_bytes, uint64_t slot,
                          bp_calibration *ret_calibration);

#endif
