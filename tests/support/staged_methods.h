/*
 * For tests of staged files: each runs once without a name and once under a temporary one.
 */
#ifndef TESTS_SUPPORT_STAGED_METHODS_H
#define TESTS_SUPPORT_STAGED_METHODS_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>

#include <string.h>
#include <unistd.h>

#include "platform/staged_method.h"
#include "support/temp_dir.h"

typedef bugpack_status new_staged_file(int, const char *, bp_staged_file **, bugpack_error *);

static new_staged_file *const methods[] = {bp_staged_file_new, bp_staged_file_new_named};
static size_t method_indices[] = {0, 1};

/* A test that is given `const size_t *method`, an index of `methods`. */
#define BOTH_METHODS(suite, name)                                                                  \
    ParameterizedTestParameters(suite, name) {                                                     \
        return cr_make_param_array(size_t, method_indices, 2);                                     \
    }                                                                                              \
    ParameterizedTest(size_t *method, suite, name)

/* A staged file that holds `text`, synced. */
static inline bp_staged_file *start(const temp_dir *dir, size_t method, const char *text) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_staged_file *file = NULL;
    cr_assert(methods[method](dir->fd, dir->path, &file, &error) == BUGPACK_OK, "%s",
              error.message);
    cr_assert(eq(sz, (size_t)write(bp_staged_file_fd(file), text, strlen(text)), strlen(text)));
    cr_assert(bp_staged_file_sync(file, &error) == BUGPACK_OK, "%s", error.message);
    return file;
}

#endif
