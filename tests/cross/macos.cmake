# A CMake toolchain: zig's C compiler, with Apple's headers and the names in libSystem that it
# brings, builds for macOS on Linux. The environment says which zig (BUGPACK_ZIG), for which
# processor (BUGPACK_CROSS_ARCH: aarch64 or x86_64), and where the libraries for it are
# (BUGPACK_CROSS_PREFIX). From the environment and not the cache, because CMake reads this file anew
# for each of its checks, and does not hand them our cache.
set(CMAKE_SYSTEM_NAME Darwin)
# macOS 11, the first for both processors.
set(CMAKE_SYSTEM_VERSION 20)
set(CMAKE_SYSTEM_PROCESSOR $ENV{BUGPACK_CROSS_ARCH})
set(CMAKE_OSX_SYSROOT "" CACHE STRING "zig has its own")
set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "in the name of the target")

# One file each for the tools: CMake takes no "zig ar".
set(CMAKE_C_COMPILER ${CMAKE_CURRENT_LIST_DIR}/zig-cc)
set(CMAKE_ASM_COMPILER ${CMAKE_CURRENT_LIST_DIR}/zig-cc)
set(CMAKE_AR ${CMAKE_CURRENT_LIST_DIR}/zig-ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${CMAKE_CURRENT_LIST_DIR}/zig-ranlib CACHE FILEPATH "")
# Nothing is installed from here, so no name of a library has to be changed.
set(CMAKE_INSTALL_NAME_TOOL true CACHE FILEPATH "")

# Nothing of this machine's is for that system.
set(CMAKE_FIND_ROOT_PATH $ENV{BUGPACK_CROSS_PREFIX})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_FIND_FRAMEWORK NEVER)
set(CMAKE_FIND_APPBUNDLE NEVER)
set(ENV{PKG_CONFIG_LIBDIR} $ENV{BUGPACK_CROSS_PREFIX}/lib/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "")
