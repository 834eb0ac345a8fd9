#ifndef FAKE_MALLOC_MALLOC_H
#define FAKE_MALLOC_MALLOC_H

#include <stddef.h>

typedef struct malloc_statistics_t {
    unsigned blocks_in_use;
    size_t size_in_use;
    size_t max_size_in_use;
    size_t size_allocated;
} malloc_statistics_t;

void malloc_zone_statistics(void *zone, malloc_statistics_t *stats);

#endif
