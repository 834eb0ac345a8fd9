/*
 * When a file was written last, to the nanosecond: POSIX and macOS call the field differently.
 */
#ifndef BP_PLATFORM_FILE_TIME_H
#define BP_PLATFORM_FILE_TIME_H

#include <sys/stat.h>
#include <time.h>

static inline struct timespec bp_file_written_at(const struct stat *info) {
#ifdef __APPLE__
    return info->st_mtimespec;
#else
    return info->st_mtim;
#endif
}

#endif
