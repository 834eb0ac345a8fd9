/* The machine, and the directories of this user. */
#ifndef BP_PLATFORM_MACHINE_H
#define BP_PLATFORM_MACHINE_H

#include <stddef.h>

#include <bugpack/error.h>

/* "linux", "macos", …: the `platform` of every report. Static. */
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

#endif
