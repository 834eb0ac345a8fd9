/*
 * Reads a report as a maintainer would: entry by entry, by name.
 */
#ifndef TESTS_SUPPORT_REPORT_READER_H
#define TESTS_SUPPORT_REPORT_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "support/temp_dir.h"

/* The text of one entry with a NUL behind it, to be freed; NULL when the zip or the entry is not
 * there or not whole. `ret_bytes` is optional. */
char *report_read(const char *zip_path, const char *entry, size_t *ret_bytes);

/* Whether the text of `entry` holds `needle`. */
bool report_entry_contains(const char *zip_path, const char *entry, const char *needle);

/* The names of all entries in their order, each followed by '\n', to be freed; NULL on failure. */
char *report_list(const char *zip_path);

/* The path of the only *.zip in a directory into `path`; false when there is none or more than one.
 */
bool report_find_only(const temp_dir *dir, char *path, size_t path_bytes);

#endif
