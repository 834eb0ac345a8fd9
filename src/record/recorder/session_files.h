/*
 * The files of a session directory, `<base>/<app>-<pid>-<session id>/`, of mode 0700: a lock, the
 * session's identity, its rings, and a file for each traffic channel.
 *
 * A session is dead when its lock can be taken, whatever became of its process id. When it was last
 * alive is in its rings.
 */
#ifndef BP_RECORDER_SESSION_FILES_H
#define BP_RECORDER_SESSION_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "base/clock.h"
#include "base/id.h"
#include "platform/machine.h"
#include "ring/ring.h"

#define BP_SESSION_LOCK_NAME "lock"
#define BP_SESSION_IDENTITY_NAME "session"
#define BP_RING_NAME_BYTES 32

/* The identity of a session for recovery. Texts are NUL-terminated, any bytes; "" is unknown. A
 * file has it as it is, so it is laid out alike in programs of 32 and of 64 bits. */
typedef struct bp_session_identity {
    char session_id[BP_ID_BYTES];
    char app_name[65];
    char app_version[129];
    char app_build_id[129];
    char report_dir[4096];
    char bugpack_version[16];
    _Alignas(8) int64_t pid;
    uint64_t pid_namespace; /* that `pid` is of: an inode of /proc/<pid>/ns; 0: unknown */
    int64_t target_pid;     /* 0: the session was about its own process */
    char target_name[64];
    bp_instant opened;
    uint64_t uptime_ns; /* of the process that the session is about, at `opened`; 0: not known */
    /* Of a dead session, from its rings. Wall time = monotonic time + wall_offset_ns. */
    uint64_t wall_offset_ns;
    bp_instant last_alive;
    char boot_id[BP_MACHINE_BOOT_ID_BYTES]; /* "": not known */
    uint32_t ring_kinds; /* those that it has beside traffic: a bit for each bp_ring_kind */
    char machine[BP_MACHINE_NAME_BYTES]; /* its name; "": it was not asked for */
} bp_session_identity;

/* The pid namespace of this process; 0 where it cannot be known. Needs no descriptor. */
uint64_t bp_session_pid_namespace(void);

/* The bytes of the identity's file; the caller frees them. NULL without memory. */
void *bp_session_identity_seal(const bp_session_identity *identity, size_t *ret_bytes);

/* Opens a file of a session for reading: close-on-exec, without following a link or waiting for a
 * FIFO, and only one of the directory's owner. -1 with errno. */
int bp_session_file_open(int dir_fd, const char *name);

/* Reads the identity from its file, and validates it as if somebody else had written it. CORRUPT
 * when it is missing, damaged, or of another version; IO or NO_MEMORY when it cannot be read now.
 */
bugpack_status bp_session_identity_read(int dir_fd, bp_session_identity *ret_identity,
                                        bugpack_error *error);

/* Composes `<app>-<pid>-<session id>`, in characters that any file system allows. */
#define BP_SESSION_NAME_BYTES 256
void bp_session_name(const bp_session_identity *identity, char name[BP_SESSION_NAME_BYTES]);

/* The parts of the name of a session directory; the app's name may differ in what is no
 * letter or digit. False for any other name. */
bool bp_session_name_read(const char *name, bp_session_identity *ret_identity);

bool bp_session_is_name(const char *name);

/* True if a directory is of a session of this process: by its id, unless that is of another pid
 * namespace. */
bool bp_session_is_of(int dir_fd, pid_t pid, bp_session_identity *ret_identity);

/* The file name of a ring. `number`: of a channel, else 0. */
void bp_session_ring_name(bp_ring_kind kind, uint32_t number, char name[BP_RING_NAME_BYTES]);

/* The format of the file name of a channel's bp_traffic_identity; `%u` is its number. */
#define BP_CHANNEL_FILE_FORMAT "channel-%u"

/* True if a file of a session can never be read; any other errno may pass. */
bool bp_session_errno_is_damage(int system_errno);

/* Reads when a dead session was last alive, or that it was closed (BP_RING_CLOSED_NS), from the
 * newest note in its rings. False when there is none. */
bool bp_session_files_read_alive(int dir_fd, bp_session_identity *identity);

/*
 * Removes a session directory with its files. It is renamed first, to a name that ends in
 * BP_SESSION_DONE: one that is found later is half removed, and of no session. False with errno
 * when something is left.
 */
#define BP_SESSION_DONE ".done"
/* Ends the name of one that is being made: no scan visits it before it has its lock. */
#define BP_SESSION_NEW ".new"
bool bp_session_files_remove(int base_fd, int dir_fd, const char *name);

/*
 * The directory that holds the session directories.
 */

typedef struct bp_ring_base {
    const char *path; /* absolute, borrowed */
    bool is_chosen;   /* by us: the directory above it is examined as well */
    bool is_common;   /* its file system has to be in memory, and half of it has to stay free */
} bp_ring_base;

/*
 * Opens it. It must be a directory, and not a link, of this user alone. What is above a chosen one
 * must belong to this user or to root, and nobody else may replace its entries. With `create` a
 * missing one is made, with mode 0700. Errors: IO, DENIED; the errno is ENOENT if it is missing and
 * EPERM if it is another user's.
 */
bugpack_status bp_ring_base_open(const bp_ring_base *base, bool create, int *ret_fd,
                                 bugpack_error *error);

#endif
