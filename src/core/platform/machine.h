/* The machine, and the directories of this user. */
#ifndef BP_PLATFORM_MACHINE_H
#define BP_PLATFORM_MACHINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>
#include <bugpack/session.h>

/* "linux" or "macos": the `platform` of every report. Static. */
const char *bp_machine_platform(void);

/* The machine's name, architecture and kernel release as uname(2) has them, and the id of this
 * boot; "" for what is not known. */
#define BP_MACHINE_NAME_BYTES 256
#define BP_MACHINE_BOOT_ID_BYTES 37
typedef struct bp_machine_identity {
    char name[BP_MACHINE_NAME_BYTES];
    char arch[65];
    char kernel[65];
    char boot_id[BP_MACHINE_BOOT_ID_BYTES];
} bp_machine_identity;
void bp_machine_identify(bp_machine_identity *ret_identity);

/* An environment variable; NULL where it is not set, or where this process has more privileges than
 * whoever set it. Borrowed. */
const char *bp_machine_environment(const char *name);

/*
 * The directory that holds reports when the host names none, not yet made: on Linux
 * $XDG_STATE_HOME/bugpack when that is an absolute path, else ~/.local/state/bugpack; on macOS
 * ~/Library/Application Support/bugpack.
 */
bugpack_status bp_machine_report_directory(char *path, size_t path_bytes, bugpack_error *error);

/* A directory for ring files of hosts that name none. */
typedef struct bp_ring_dir {
    char path[PATH_MAX]; /* absolute; it may not exist yet */
    bool is_common;      /* not this user's own: in memory, and half of it has to stay free */
} bp_ring_dir;

/*
 * The next directory, in the order in which they are tried; `*cursor` begins with 0. False after
 * the last. On Linux: $XDG_RUNTIME_DIR/bugpack, /run/bugpack (for root), and
 * /dev/shm/bugpack-<uid>. On macOS $TMPDIR/bugpack, or the same from confstr(3).
 */
bool bp_ring_dirs_next(unsigned *cursor, bp_ring_dir *ret_dir);

/*
 * Visits the directories of files that a process has mapped: those that `is_wanted` by their last
 * component, of the user of that process and private, as the process sees them. A directory may be
 * visited more than once, and anything may be in it. With a `pid` of 0 the processes of this user
 * are read, one after the other, and all where this is root.
 */
typedef struct bp_mapped_dirs {
    bool (*is_wanted)(const char *name);
    /* Takes `dir_fd` over. Anything but OK ends the search. */
    bugpack_status (*visit)(void *context, pid_t pid, int dir_fd, bugpack_error *error);
    void *context; /* of `visit` */
} bp_mapped_dirs;

/* A process that may not be read has none; systems other than Linux show none. Errors: NO_MEMORY,
 * and those of `visit`. */
bugpack_status bp_mapped_dirs_visit(const bp_mapped_dirs *dirs, pid_t pid, bugpack_error *error);

/* True if a process has a thread of this name; false where that cannot be read. */
bool bp_process_has_thread(pid_t pid, const char *name);

/* True if the file system of a directory is in memory. */
bool bp_ring_dirs_is_in_memory(const char *path);

/* The ends that a ring file in this directory survives: BUGPACK_SURVIVES_…. An end counts unless
 * the path or the kind of file system speaks against it. */
uint64_t bp_ring_dirs_survival(const char *path, bool is_in_memory);

#endif
