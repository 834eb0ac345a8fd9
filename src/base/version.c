#include <bugpack/version.h>

const char *bugpack_version(void) {
    return BUGPACK_VERSION;
}
