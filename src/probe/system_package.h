/*
 * Which installed package a file is from. Linux only.
 */
#ifndef BP_PROBE_SYSTEM_PACKAGE_H
#define BP_PROBE_SYSTEM_PACKAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/linux/system_text.h"

/*
 * Opens a regular file below `root_fd` without leaving it, whatever links are there: the root of a
 * container belongs to somebody else. -1 with errno. The descriptor is the caller's to close.
 */
int bp_system_open(int root_fd, const char *path);

/* The same of anything, with these flags. */
int bp_system_open_below(int root_fd, const char *path, int flags);

/* Searches the lists of dpkg below `root_fd` until the deadline, without running it. */
bool bp_system_find_package(int root_fd, const char *path, uint64_t deadline_ns,
                            bp_package *ret_package);

/*
 * Runs rpm, to ask which package of this machine has a file. Only where there is a database of the
 * system: rpm makes one where it finds none. It reads no settings of the user. False without a
 * package; then `*ret_is_late` is whether rpm was ended, at the deadline or after five seconds.
 */
bool bp_system_ask_rpm(const char *path, uint64_t deadline_ns, bp_package *ret_package,
                       bool *ret_is_late);

#endif
