/* A library that, stripped, has a name for nothing but its entry. */
#include <stdint.h>

uint64_t spin_in_library(unsigned rounds);

static __attribute__((noinline, noipa)) uint64_t hash_some(uint64_t value) {
    for (unsigned i = 0; i < 100; i++) {
        value = (value ^ i) * 2654435761u;
    }
    return value;
}

static __attribute__((noinline, noipa)) uint64_t hash_more(unsigned rounds) {
    uint64_t value = 1;
    for (unsigned i = 0; i < rounds / 100; i++) {
        value = hash_some(value);
    }
    return value;
}

uint64_t spin_in_library(unsigned rounds) {
    return hash_more(rounds) + 1;
}
