/*
 * The heap of this process as its allocator counts it: what heap-state.json holds, without a
 * session or a report.
 *
 * The allocator is found at run time; the library links none. The first of these that applies is
 * used: a jemalloc that has given out memory (mallctl, je_mallctl, or _rjem_mallctl as Rust's
 * crates build it); then whichever of jemalloc, glibc, mimalloc, tcmalloc (gperftools) or a
 * sanitizer's allocator malloc() belongs to; on macOS the zones of libmalloc.
 *
 * docs/REPORT_FORMAT.md says which allocator gives which number.
 */
#ifndef BUGPACK_HEAP_STATE_H
#define BUGPACK_HEAP_STATE_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/* The value of a number that the allocator does not give; 0 is a measured number. */
#define BUGPACK_HEAP_UNKNOWN 0xffffffffffffffffu

#define BUGPACK_ALLOCATOR_NAME_BYTES 32

/* The heap at one instant. */
typedef struct bugpack_heap_state {
    size_t struct_size;
    /* "jemalloc", "glibc", "mimalloc", "tcmalloc", "sanitizer", "libmalloc"; "" if unknown. */
    char allocator[BUGPACK_ALLOCATOR_NAME_BYTES];
    uint64_t allocated_bytes; /* given to the program and not freed */
    uint64_t active_bytes;    /* in pages with at least one allocation */
    uint64_t resident_bytes;  /* that may be in physical memory, with the allocator's own data */
    uint64_t mapped_bytes;    /* taken from the system and not returned */
    uint64_t narenas;         /* arenas: jemalloc's limit on them, glibc's number of them */
} bugpack_heap_state;

/* A state in which every number is unknown: an exception to the rule that 0 is the default. */
#define BUGPACK_HEAP_STATE_INIT                                                                    \
    {                                                                                              \
        sizeof(bugpack_heap_state), "", BUGPACK_HEAP_UNKNOWN, BUGPACK_HEAP_UNKNOWN,                \
            BUGPACK_HEAP_UNKNOWN, BUGPACK_HEAP_UNKNOWN, BUGPACK_HEAP_UNKNOWN                       \
    }

/*
 * Reads the state now, as far as struct_size of `*ret_state` reaches. Takes the dynamic linker's
 * lock and locks of the allocator for a moment, so it waits where malloc() would. It advances
 * jemalloc's epoch once; if that fails, only the allocator's name is known.
 *
 * Errors: UNSUPPORTED (the allocator gives no numbers that are known here), INVALID (struct_size),
 * NO_MEMORY. Any thread.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_heap_state_read(bugpack_heap_state *ret_state,
                                                                     bugpack_error *error);

/*
 * Formats a state for a person: a line `key: value` for each of allocated_bytes, active_bytes,
 * resident_bytes, mapped_bytes and narenas, in this order, "(unknown)" for an unknown value. Ends
 * in a newline. Freed with bugpack_free.
 *
 * Errors: INVALID (struct_size), NO_MEMORY. Any thread.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status
bugpack_heap_state_text(const bugpack_heap_state *state, char **ret_text, bugpack_error *error);

/*
 * Formats the difference of two states: a line `key: before → after` (UTF-8) for each value that
 * changed, "" if none did. The order is that of bugpack_heap_state_text; a change of allocator
 * comes last, `allocator: glibc → jemalloc`. Ownership, errors and threads as above.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status
bugpack_heap_state_diff(const bugpack_heap_state *before, const bugpack_heap_state *after,
                        char **ret_text, bugpack_error *error);

BUGPACK_END_DECLS

#endif
