/* The machine, and the directories of this user. */
#ifndef BP_PLATFORM_HOST_H
#define BP_PLATFORM_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

/* "linux", "macos", …: the `platform` of every report. Static. */
const char *bp_host_platform(void);

/* The machine's architecture and kernel release as uname(2) has them; "" when it fails. */
typedef struct bp_host_identity {
    char arch[65];
    char kernel[65];
} bp_host_identity;
void bp_host_identify(bp_host_identity *ret_identity);

/* An environment variable; NULL where it is not set, or where this process has more privileges than
 * whoever set it. Borrowed. */
const char *bp_host_environment(const char *name);

/*
 * The directory that holds reports when the host names none, not yet made: on Linux
 * $XDG_STATE_HOME/bugpack when that is an absolute path, else ~/.local/state/bugpack; on macOS
 * ~/Library/Application Support/bugpack.
 */
bugpack_status bp_host_report_directory(char *path, size_t path_bytes, bugpack_error *error);

/*
 * The directory of session files that must outlive a crash; it may not exist yet. On Linux
 * $XDG_RUNTIME_DIR/bugpack; on macOS $TMPDIR/bugpack, which is private to the user, or the same
 * directory from confstr(3). False when there is no absolute path.
 */
bool bp_host_runtime_directory(char *path, size_t path_bytes);

#endif
