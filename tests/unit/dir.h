/*
 * A suite whose tests have a directory each.
 */
#ifndef TESTS_UNIT_DIR_H
#define TESTS_UNIT_DIR_H

#include "support/temp_dir.h"
#include "unit/unit.h"

static temp_dir dir;

static inline void make_dir(void) {
    cr_assert(temp_dir_make(&dir));
}

static inline void remove_dir(void) {
    temp_dir_remove(&dir);
}

#define DIR_SUITE(name, ...) TestSuite(name, .init = make_dir, .fini = remove_dir, ##__VA_ARGS__)

#endif
