/*
 * A file that does not exist until it is complete: written without a name (O_TMPFILE), else under a
 * temporary one, with mode 0600 whatever the umask. It gets its name in one step that never
 * replaces anything. Measured reasons are in docs/ARCHITECTURE.md.
 */
#ifndef BP_PLATFORM_STAGED_FILE_H
#define BP_PLATFORM_STAGED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

#include <bugpack/error.h>
#include <bugpack/report.h>

typedef struct bp_staged_file bp_staged_file;

/* Calls that look at a report before it gets its name; all NULL for none. Borrowed. */
typedef struct bp_publish_hook {
    bugpack_before_publish_callback *call;
    void *context;
} bp_publish_hook;

/*
 * Starts a file in the directory `dir_fd`, which is borrowed and must outlive it. `dir_name` is for
 * error sentences and is copied. IO with the errno where no file can be made, or where the file
 * system lets others read it whatever its mode.
 */
bugpack_status bp_staged_file_new(int dir_fd, const char *dir_name, bp_staged_file **ret_file,
                                  bugpack_error *error);

/* Where to write. Readable and writable, close-on-exec, owned by the staged file. */
int bp_staged_file_fd(const bp_staged_file *file);

/* All is written, `byte_count` bytes: asks the hook. Its failure. */
bugpack_status bp_staged_file_ask(const bp_staged_file *file, const bp_publish_hook *hook,
                                  uint64_t byte_count, bugpack_error *error);

/* Brings the contents to the disk (F_FULLFSYNC where there is one). */
bugpack_status bp_staged_file_sync(bp_staged_file *file, bugpack_error *error);

/*
 * Gives the file `stem` + `extension` as its name, or `stem`-2, -3, … up
 * to -9999 where that is taken, and syncs the directory. `ret_name` gets the name without the
 * directory. Errors: IO with EIO or ENOSPC when that sync fails, which leaves the file where it is
 * and names it in the sentence; IO with ENAMETOOLONG for a name too long for the file system or for
 * `ret_name`; INVALID for a stem that is empty or has a slash, and for a second publishing;
 * UNSUPPORTED where the file system has neither hard links nor a rename that never replaces.
 */
bugpack_status bp_staged_file_publish(bp_staged_file *file, const char *stem, const char *extension,
                                      char *ret_name, size_t name_bytes, bugpack_error *error);

/* Frees it; what was not published is gone, without a trace in the directory. NULL is fine. */
void bp_staged_file_free(bp_staged_file *file);

/* When a file was written last, to the nanosecond: POSIX and macOS call the field differently. */
static inline struct timespec bp_file_written_at(const struct stat *info) {
#ifdef __APPLE__
    return info->st_mtimespec;
#else
    return info->st_mtim;
#endif
}

/*
 * Removes the temporary files that dead processes of this user left in `dir_fd`: regular files of
 * our name pattern and uid that nobody holds a lock on and that are older than a minute. Best
 * effort. Returns how many went.
 */
size_t bp_staged_file_sweep(int dir_fd);

/*
 * What of a staged file differs from system to system: each call is implemented once per system.
 * All but the first return -1 with errno on failure.
 */

/* The path by which linkat(2) can give this unnamed file a name; false where there is none. */
#define BP_STAGED_PATH_BYTES 32
bool bp_staged_unnamed_path(int fd, char ret_path[BP_STAGED_PATH_BYTES]);

/* Brings what was written to the disk, as far down as the system can reach. */
int bp_staged_sync(int fd);

/* Syncs a directory. False with errno where a name in it may be lost; every other errno means that
 * the file system has no such sync (fsync(2)). */
bool bp_staged_sync_directory(int dir_fd);

/*
 * Renames within `dir_fd`; EEXIST where `to` is taken, by whatever. Where that cannot be had in one
 * step it fails: it never replaces, and never holds the place with an empty file.
 */
int bp_staged_rename_new(int dir_fd, const char *from, const char *to);

#endif
