/* The machine, and the directories of this user. */
#ifndef BP_PLATFORM_HOST_H
#define BP_PLATFORM_HOST_H

#include <stddef.h>

#include <bugpack/error.h>

/* "linux", "macos", …: the `platform` of every report. Static. */
const char *bp_host_platform(void);

/* The machine's name, architecture and kernel release as uname(2) has them, and the id of this
 * boot;
 * "" for what is not known. */
#define BP_HOST_NAME_BYTES 256
#define BP_HOST_BOOT_ID_BYTES 37
typedef struct bp_host_identity {
    char name[BP_HOST_NAME_BYTES];
    char arch[65];
    char kernel[65];
    char boot_id[BP_HOST_BOOT_ID_BYTES];
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

#endif
