#include <bugpack/version.h>

#include <stdlib.h>

#include <bugpack/common.h>

const char *bugpack_version(void) {
    return BUGPACK_VERSION;
}

void bugpack_free(void *pointer) {
    free(pointer);
}
