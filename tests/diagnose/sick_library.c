/* A thread of a program may run in a library. */
#include "sick.h"

#include <stdint.h>

__attribute__((noinline)) static void filter_samples(void) {
    for (volatile uint64_t i = 0;; i++) {}
}

void *sick_library_spin(void *unused) {
    filter_samples();
    return unused;
}
