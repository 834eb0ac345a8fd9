#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/machine.h"
#include "platform/ring_dirs.h"

const char *bp_machine_environment(const char *name) {
    return issetugid() ? NULL : getenv(name);
}

bugpack_status bp_machine_report_directory(char *path, size_t path_bytes, bugpack_error *error) {
    const char *home = bp_machine_environment("HOME");
    if (home == NULL || home[0] != '/') {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "no report directory was given, and HOME names none");
    }
    int length = snprintf(path, path_bytes, "%s/Library/Application Support/bugpack", home);
    if (length < 0 || (size_t)length >= path_bytes) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the report directory's path is too long");
    }
    return BUGPACK_OK;
}

bool bp_ring_dirs_next(unsigned *cursor, bp_ring_dir *ret_dir) {
    char of_user[PATH_MAX];
    const char *base = bp_machine_environment("TMPDIR");
    if ((*cursor)++ > 0) {
        return false;
    }
    if (base == NULL || base[0] != '/') {
        /* A daemon has no TMPDIR; this asks for what a login would set it to. */
        size_t bytes = confstr(_CS_DARWIN_USER_TEMP_DIR, of_user, sizeof of_user);
        if (bytes == 0 || bytes > sizeof of_user || of_user[0] != '/') {
            return false;
        }
        base = of_user;
    }
    size_t base_bytes = strlen(base);
    while (base_bytes > 1 && base[base_bytes - 1] == '/') {
        base_bytes--; /* both end with one */
    }
    ret_dir->is_common = false;
    int length =
        snprintf(ret_dir->path, sizeof ret_dir->path, "%.*s/bugpack", (int)base_bytes, base);
    return base_bytes < sizeof ret_dir->path && length > 0 && (size_t)length < sizeof ret_dir->path;
}

bugpack_status bp_mapped_dirs_visit(const bp_mapped_dirs *dirs, pid_t pid, bugpack_error *error) {
    (void)dirs;
    (void)pid;
    (void)error;
    return BUGPACK_OK;
}

/* The rings are in memory here (stub/file_guard.c). */
bool bp_ring_dirs_is_in_memory(const char *path) {
    (void)path;
    return false;
}

uint64_t bp_ring_dirs_survival(const char *path, bool is_in_memory) {
    (void)path;
    (void)is_in_memory;
    return BUGPACK_SURVIVES_KILL;
}
