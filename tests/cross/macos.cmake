# A CMake toolchain: clang, with Apple's headers and the names in libSystem, builds for macOS on Linux.
# The environment says where these are (BUGPACK_CROSS_SYSTEM), for which processor (BUGPACK_CROSS_ARCH:
# aarch64 or x86_64), and where the libraries for it are (BUGPACK_CROSS_PREFIX). From the environment
# and not the cache, because CMake reads this file anew for each of its checks, and does not hand them
# our cache.
set(CMAKE_SYSTEM_NAME Darwin)
# macOS 11, the first for both processors.
set(CMAKE_SYSTEM_VERSION 20)
set(CMAKE_SYSTEM_PROCESSOR $ENV{BUGPACK_CROSS_ARCH})
set(CMAKE_OSX_SYSROOT "" CACHE STRING "in the flags")
set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "in the name of the target")

set(CMAKE_C_COMPILER clang)
set(CMAKE_C_COMPILER_TARGET $ENV{BUGPACK_CROSS_ARCH}-apple-macos11)
set(CMAKE_C_FLAGS_INIT "-isysroot $ENV{BUGPACK_CROSS_SYSTEM} -Wno-unused-command-line-argument")
# Links strictly: a name that neither an object nor libSystem has is an error.
foreach(kind EXE SHARED)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-fuse-ld=lld -nostdlib -lSystem")
endforeach()
set(CMAKE_AR llvm-ar-14 CACHE FILEPATH "")
set(CMAKE_RANLIB llvm-ranlib-14 CACHE FILEPATH "")
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
