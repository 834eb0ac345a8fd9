/*
 * A file that does not exist until it is complete.
 *
 * It is written without a name where the system can (O_TMPFILE), else under a temporary name of
 * ours, with mode 0600 whatever the umask, and gets its name in one step that never replaces
 * anything: no file, no symbolic link, no FIFO. Measured reasons are in docs/ARCHITECTURE.md.
 */
#ifndef BP_PLATFORM_STAGED_FILE_H
#define BP_PLATFORM_STAGED_FILE_H

#include <stddef.h>

#include <bugpack/error.h>

typedef struct bp_staged_file bp_staged_file;

/*
 * Starts a file in the directory `dir_fd`, which is borrowed and must outlive it. `dir_name` is for
 * error sentences and is copied. IO with the errno where no file can be made, or where the file
 * system lets others read it whatever its mode.
 */
bugpack_status bp_staged_file_new(int dir_fd, const char *dir_name, bp_staged_file **ret_file,
                                  bugpack_error *error);

/* Where to write. Readable and writable, close-on-exec, owned by the staged file. */
int bp_staged_file_fd(const bp_staged_file *file);

/* Brings the contents to the disk (F_FULLFSYNC where there is one). */
bugpack_status bp_staged_file_sync(bp_staged_file *file, bugpack_error *error);

/*
 * Gives the file `stem` + `extension` as its name, or `stem`-2, -3, … up to -9999 where that is
 * taken, and syncs the directory. The name that it got, without the directory, is put in
 * `ret_name`. A stem that is too long for the file system (NAME_MAX with suffix and extension)
 * fails (IO, ENAMETOOLONG), as does a `ret_name` that is too small; a stem that is empty or has a
 * slash is INVALID, and so is a second publishing. UNSUPPORTED where the file system has neither
 * hard links nor a rename that never replaces. When only the sync of the directory fails, the file
 * stands and the call succeeds: the caller has a whole file, and a file system that cannot sync a
 * directory is not a reason to lose it.
 */
bugpack_status bp_staged_file_publish(bp_staged_file *file, const char *stem, const char *extension,
                                      char *ret_name, size_t name_bytes, bugpack_error *error);

/* Frees it; what was not published is gone, without a trace in the directory. NULL is fine. */
void bp_staged_file_free(bp_staged_file *file);

/*
 * Removes the temporary files that dead processes of this user left in `dir_fd`: regular files of
 * our name pattern and uid that nobody holds a lock on and that are older than a minute. Best
 * effort. Returns how many went.
 */
size_t bp_staged_file_sweep(int dir_fd);

#endif
