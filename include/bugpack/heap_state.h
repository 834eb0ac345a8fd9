/*
 * How the heap of this process stands, as its own allocator counts it: heap-state.json without a
 * session or a report.
 *
 * The allocator is looked up at run time, and bugpack links none. A jemalloc that has given
 * something out comes first (mallctl, je_mallctl or _rjem_mallctl, the last being how Rust's crates
 * build it), then whichever of jemalloc, glibc, mimalloc, tcmalloc (gperftools) or a sanitizer's
 * allocator malloc() belongs to; on macOS the zones of libmalloc.
 *
 * What the numbers mean is the allocator's business; docs/REPORT_FORMAT.md says which gives what.
 */
#ifndef BUGPACK_HEAP_STATE_H
#define BUGPACK_HEAP_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

struct bugpack;

/* What a number has that the allocator does not give; 0 is a number like any other. */
#define BUGPACK_HEAP_UNKNOWN UINT64_MAX

#define BUGPACK_ALLOCATOR_NAME_BYTES 32

/*
 * The heap at one instant. Start from BUGPACK_HEAP_STATE_INIT, in which nothing is known;
 * `struct_size` says which version of this struct the host was compiled with. Since 0.1.0.
 */
typedef struct bugpack_heap_state {
    size_t struct_size;
    /* "jemalloc", "glibc", "mimalloc", "tcmalloc", "sanitizer", "libmalloc"; "" when unknown. */
    char allocator[BUGPACK_ALLOCATOR_NAME_BYTES];
    uint64_t allocated_bytes; /* given out to the program and not given back */
    uint64_t active_bytes;    /* in pages of which something is given out; >= allocated */
    uint64_t resident_bytes;  /* that may be in physical memory, own bookkeeping included */
    uint64_t mapped_bytes;    /* taken from the system and not returned to it */
    uint64_t narenas;         /* arenas: jemalloc's limit on them, glibc's number of them */
} bugpack_heap_state;

#define BUGPACK_HEAP_STATE_INIT                                                                    \
    {                                                                                              \
        sizeof(bugpack_heap_state), "", BUGPACK_HEAP_UNKNOWN, BUGPACK_HEAP_UNKNOWN,                \
            BUGPACK_HEAP_UNKNOWN, BUGPACK_HEAP_UNKNOWN, BUGPACK_HEAP_UNKNOWN                       \
    }

/*
 * Reads the state now, as far as `struct_size` of `*ret_state` reaches. It takes the dynamic
 * linker's lock and locks of the allocator for a moment each, so it waits where malloc() would; a
 * report reads the same on a thread of its own and under a time limit. jemalloc's epoch is advanced
 * exactly once, and where that fails nothing but the allocator's name is known.
 *
 * Errors: UNSUPPORTED when the program runs on an allocator that tells nothing that is known here;
 * INVALID (`struct_size` too small); NO_MEMORY. Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_heap_state_read(bugpack_heap_state *ret_state,
                                                                     bugpack_error *error);

/*
 * The state for a person: a line `key: value` each for allocated_bytes, active_bytes,
 * resident_bytes, mapped_bytes and narenas, in this order, "(unknown)" being the value of what is
 * not known. Ends with a newline. The text is the caller's, to be freed with bugpack_free.
 *
 * Errors: INVALID (`struct_size` too small), NO_MEMORY. Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status
bugpack_heap_state_text(const bugpack_heap_state *state, char **ret_text, bugpack_error *error);

/*
 * What differs between two states, in the same lines as `key: before → after` (UTF-8); only what
 * changed, and "" when nothing did. Another allocator is a change too: then the first line says
 * `allocator: glibc → jemalloc`. Ownership and errors as above. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status
bugpack_heap_state_diff(const bugpack_heap_state *before, const bugpack_heap_state *after,
                        char **ret_text, bugpack_error *error);

/*
 * Whether the reports of a session ask the allocator for heap-state.json: they do from the start.
 * Turned off, the ledger says `disabled`. For a host whose allocator must not be asked. A session
 * about another process has no heap-state.json, and takes this call without effect.
 *
 * Errors: INVALID (a NULL session), INERT, CLOSED. Any thread; not a signal handler. Since 0.1.0.
 */
BUGPACK_API bugpack_status bugpack_heap_state_enable(struct bugpack *session, bool enabled);

BUGPACK_END_DECLS

#endif
