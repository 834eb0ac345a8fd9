/*
 * How other programs see a zip that was written here: libzip, Info-ZIP and Python.
 */
#ifndef TESTS_SUPPORT_ZIP_READER_H
#define TESTS_SUPPORT_ZIP_READER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Runs a command in the shell and keeps the first `out_bytes` - 1 bytes that it prints on standard
 * output. Returns its exit status, or -1 when it did not run or did not exit.
 */
int command_output(const char *command, char *out, size_t out_bytes);

/* What list_zip.py prints of `path`; false, with the reason on stderr, when it cannot read it. */
bool zip_list(const char *path, char *out, size_t out_bytes);

/* Whether `unzip -t` finds no error. */
bool zip_passes_unzip(const char *path);

/*
 * Whether libzip, with its consistency checks, finds `count` entries there, of which the one named
 * `name` holds these bytes.
 */
bool zip_holds(const char *path, long count, const char *name, const void *bytes,
               size_t byte_count);

#endif
