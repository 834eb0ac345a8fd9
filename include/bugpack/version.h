/*
 * The version of these headers and of the library loaded at run time. CMake reads the project
 * version from here.
 */
#ifndef BUGPACK_VERSION_H
#define BUGPACK_VERSION_H

#include <bugpack/export.h>

#define BUGPACK_VERSION_MAJOR 0
#define BUGPACK_VERSION_MINOR 1
#define BUGPACK_VERSION_PATCH 0
#define BUGPACK_VERSION "0.1.0"

BUGPACK_BEGIN_DECLS

/*
 * The version of the library that the program runs with, for example "0.1.0". It can differ from
 * BUGPACK_VERSION when the shared library was upgraded after the host was built. The string is
 * static. Any thread.
 */
BUGPACK_API const char *bugpack_version(void);

BUGPACK_END_DECLS

#endif
