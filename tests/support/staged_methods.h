/*
 * For tests of staged files: each runs once without a name and once under a temporary one.
 */
#ifndef TESTS_SUPPORT_STAGED_METHODS_H
#define TESTS_SUPPORT_STAGED_METHODS_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "platform/staged_file.h"
#include "support/no_tmpfile.h"
#include "support/temp_dir.h"

/* Two tests that are given `method`: 1 where there is no O_TMPFILE. */
#define BOTH_METHODS(suite, name)                                                                  \
    static void suite##_##name(size_t method);                                                     \
    Test(suite, name##_without_a_name) {                                                           \
        suite##_##name(0);                                                                         \
    }                                                                                              \
    Test(suite, name##_under_a_temporary_name) {                                                   \
        suite##_##name(1);                                                                         \
    }                                                                                              \
    static void suite##_##name(size_t method)

/* How many of our temporary names there are: 1 while a file is staged under one. */
static inline size_t own_names(const temp_dir *dir) {
    size_t count = 0;
    DIR *stream = opendir(dir->path);
    cr_assert(ne(ptr, stream, NULL));
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        count += strncmp(entry->d_name, ".bugpack-", 9) == 0;
    }
    (void)closedir(stream);
    return count;
}

/* A staged file that holds `text`, synced. */
static inline bp_staged_file *start(const temp_dir *dir, size_t method, const char *text) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_staged_file *file = NULL;
    has_no_tmpfile = method == 1;
    cr_assert(bp_staged_file_new(dir->fd, dir->path, &file, &error) == BUGPACK_OK, "%s",
              error.message);
    cr_assert(eq(sz, (size_t)write(bp_staged_file_fd(file), text, strlen(text)), strlen(text)));
    cr_assert(bp_staged_file_sync(file, &error) == BUGPACK_OK, "%s", error.message);
    return file;
}

#endif
