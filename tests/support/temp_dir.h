/*
 * A private directory for one test, removed afterwards with everything in it. Tests run side by
 * side, so each makes its own.
 */
#ifndef TESTS_SUPPORT_TEMP_DIR_H
#define TESTS_SUPPORT_TEMP_DIR_H

#include <stdbool.h>
#include <stddef.h>

typedef struct temp_dir {
    char path[256];
    int fd; /* the directory, open for reading; -1 when it could not be made */
} temp_dir;

/* Makes it, mode 0700, under $TMPDIR or /tmp. False, with a line on stderr, when it cannot. */
bool temp_dir_make(temp_dir *dir);

/* Removes it with all that is in it, without following links, and closes `fd`. */
void temp_dir_remove(temp_dir *dir);

/* How many entries it has, hidden ones included; SIZE_MAX when it cannot be read. */
size_t temp_dir_count(const temp_dir *dir);

/* Whether `name` is there, of whatever type; a dangling link counts. */
bool temp_dir_has(const temp_dir *dir, const char *name);

/* Makes a file there; false when that fails. A file that exists is overwritten. */
bool temp_dir_write(const temp_dir *dir, const char *name, const void *bytes, size_t byte_count);

/* Reads at most `max_bytes` of a file there; how many it got, or SIZE_MAX when it cannot. */
size_t temp_dir_read(const temp_dir *dir, const char *name, void *bytes, size_t max_bytes);

#endif
