/*
 * What must hold whatever an input was: the fuzzer keeps an input that ends the program.
 */
#ifndef TESTS_FUZZ_REQUIRE_H
#define TESTS_FUZZ_REQUIRE_H

#include <stdbool.h>
#include <stdlib.h>

static inline void require(bool is_so) {
    if (!is_so) {
        abort();
    }
}

#endif
