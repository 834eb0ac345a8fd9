/*
 * A file that has its name only when it is whole.
 */
#ifndef BP_INSPECT_NEW_FILE_H
#define BP_INSPECT_NEW_FILE_H

#include <stddef.h>

#include <bugpack/error.h>

/* Writes the file to `fd`, in the directory `dir_fd`. Neither is its own; `path` is for sentences.
 */
typedef bugpack_status bp_new_file_fill(void *context, int dir_fd, int fd, const char *path,
                                        bugpack_error *error);

/*
 * Has a file filled, syncs it and gives it the name in `path`, which has a slash and whose
 * directory is there; "-2" and so on is added to a name that is taken. `ret_name` gets the name
 * without the directory. What `fill` returns; IO; NO_MEMORY. Nothing is left behind on failure.
 */
bugpack_status bp_new_file_write(const char *path, bp_new_file_fill *fill, void *context,
                                 char *ret_name, size_t name_bytes, bugpack_error *error);

#endif
