# A host on each allocator. Where a library is missing the test says so and is skipped.
find_library(BUGPACK_JEMALLOC NAMES libjemalloc.so.2)
find_library(BUGPACK_JEMALLOC_STATIC NAMES libjemalloc.a)
find_library(BUGPACK_MIMALLOC NAMES libmimalloc.so.2)
find_library(BUGPACK_TCMALLOC NAMES libtcmalloc_minimal.so.4)

# What `name` is preloaded with, or linked with, is given as its last argument.
function(bugpack_heap_test name program allocator library)
    if(BUGPACK_SANITIZE)
        set(library sanitized)
    endif()
    add_test(NAME stress/heap_${name} COMMAND ${program} ${allocator} ${library})
    bugpack_test_properties(stress/heap_${name})
endfunction()

bugpack_stress_test(heap_foreign ../support/failing_malloc.c)

# As it is: on the C library's, or a sanitizer's.
add_executable(stress_heap_own heap_host.c)
target_link_libraries(stress_heap_own PRIVATE bugpack_test_support bugpack_objects
                                              bugpack_platform_${BUGPACK_PLATFORM})
add_test(NAME stress/heap_own COMMAND stress_heap_own
         $<IF:$<BOOL:${BUGPACK_SANITIZE}>,sanitizer,glibc>)
bugpack_test_properties(stress/heap_own)

foreach(allocator mimalloc tcmalloc)
    string(TOUPPER BUGPACK_${allocator} library)
    bugpack_heap_test(${allocator}_preloaded stress_heap_own ${allocator} ${${library}})
    if(NOT BUGPACK_SANITIZE AND ${library})
        set_tests_properties(stress/heap_${allocator}_preloaded PROPERTIES ENVIRONMENT "LD_PRELOAD=${${library}}")
    endif()
endforeach()

# Linked, and linked statically into an executable that does not export it, where only what was
# linked beside it can find it.
foreach(way "" _STATIC)
    string(TOLOWER "jemalloc_linked${way}" name)
    if(BUGPACK_JEMALLOC${way} AND NOT BUGPACK_SANITIZE)
        add_executable(stress_heap_${name} heap_host.c)
        target_link_libraries(stress_heap_${name} PRIVATE
            bugpack_test_support bugpack_objects bugpack_platform_${BUGPACK_PLATFORM}
            ${BUGPACK_JEMALLOC${way}} $<$<BOOL:${way}>:stdc++> $<$<BOOL:${way}>:m>)
        bugpack_heap_test(${name} stress_heap_${name} jemalloc linked)
    else()
        bugpack_heap_test(${name} stress_heap_own jemalloc ${BUGPACK_JEMALLOC${way}})
    endif()
endforeach()

# A tcmalloc that stands before the jemalloc that is linked, and leaves it unused.
if(TARGET stress_heap_jemalloc_linked AND BUGPACK_TCMALLOC)
    bugpack_heap_test(jemalloc_displaced stress_heap_jemalloc_linked tcmalloc displaced)
    set_tests_properties(stress/heap_jemalloc_displaced PROPERTIES
        ENVIRONMENT "LD_PRELOAD=${BUGPACK_TCMALLOC}")
else()
    bugpack_heap_test(jemalloc_displaced stress_heap_own tcmalloc displaced-NOTFOUND)
endif()
