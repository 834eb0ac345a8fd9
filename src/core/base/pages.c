#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>

/* Before each block. */
typedef struct header {
    _Alignas(64) size_t mapped_bytes;
} header;

static header *header_of(void *block) {
    return (header *)block - 1;
}

void *bp_pages_new(size_t byte_count) {
    if (byte_count > PTRDIFF_MAX - sizeof(header)) {
        return NULL;
    }
    size_t mapped_bytes = sizeof(header) + byte_count;
    header *mapped =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        return NULL;
    }
    mapped->mapped_bytes = mapped_bytes;
    return mapped + 1;
}

void bp_pages_free(void *block) {
    if (block != NULL) {
        (void)munmap(header_of(block), header_of(block)->mapped_bytes);
    }
}
