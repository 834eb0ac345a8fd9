/*
 * The jemalloc of one process. Linux only.
 */
#ifndef BP_HEAP_JEMALLOC_FIND_H
#define BP_HEAP_JEMALLOC_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "heap/thread_heap.h"
#include "process/thread_pointers.h"

typedef enum bp_object_kind {
    BP_OBJECT_OTHER,
    BP_OBJECT_LIBC,
    BP_OBJECT_JEMALLOC /* `failure` says whether its counters can be found */
} bp_object_kind;

/* Facts about one file, for every process that has it mapped. */
typedef struct bp_known_object {
    struct bp_known_object *next;
    uint64_t device_major, device_minor, inode;
    bool is_executable; /* it was examined as the executable of a process, so with its symbols */
    bool has_own_root;  /* in a process that has our root directory, so it may be run */
    bp_object_kind kind;
    bp_heap_failure failure;
    char reason[BUGPACK_ERROR_MESSAGE_BYTES];
    int read_errno; /* nothing is known: reading the file, or starting a helper, failed; or 0 */
    uint64_t code_address;
    bp_libc_layout libc;
    char build_id[65];
    bool has_slot; /* else the places are relative to the thread pointer itself */
    bool is_calibrated;
    uint64_t slot; /* address in the file */
    int64_t allocated_place, deallocated_place;
} bp_known_object;

enum { BP_KNOWN_OBJECT_BUCKETS = 256 };

struct bp_heap_prober {
    bp_heap_prober_options options; /* its string is ours */
    bp_known_object *buckets[BP_KNOWN_OBJECT_BUCKETS];
};

/* The jemalloc of one process. */
typedef struct bp_jemalloc_found {
    bp_heap_failure failure;
    int system_errno;
    char reason[BUGPACK_ERROR_MESSAGE_BYTES];
    char *path; /* of the jemalloc; owned, NULL when there is none */
    bp_known_object jemalloc;
    uint64_t jemalloc_base;
    bool has_libc;
    bp_libc_layout libc;
    uint64_t libc_base;
} bp_jemalloc_found;

/*
 * Examines the files of a process: those with "jemalloc" in their names, the executable, then the
 * others, until a jemalloc is found. `process_fd` is a descriptor of /proc/<pid>.
 */
bugpack_status bp_jemalloc_find(bp_heap_prober *prober, int process_fd,
                                bp_jemalloc_found *ret_found, bugpack_error *error);

/* Where a jemalloc's thread-local block is, and where in it the two counters are, from debug data:
 * jemalloc_dwarf.c. */
typedef struct bp_jemalloc_layout {
    uint64_t block;           /* st_value of the symbol: its place in the file's TLS segment */
    uint64_t block_bytes;     /* st_size */
    uint64_t allocated_place; /* of the counters, from the start of the block */
    uint64_t deallocated_place;
} bp_jemalloc_layout;

typedef enum bp_dwarf_status {
    BP_DWARF_FOUND,
    BP_DWARF_NO_JEMALLOC, /* no symbol `tsd_tls` of any prefix, or no symbols at all */
    BP_DWARF_NO_LAYOUT,   /* a jemalloc, but no debug data that describes `tsd_s` */
    BP_DWARF_NO_LIBRARY,  /* libdw was not there when bugpack was built, or is not there now */
    BP_DWARF_TOO_MUCH,    /* symbols and debug data that would take too much memory to look at */
    BP_DWARF_UNREADABLE   /* it, or a separate file, could not be read; errno says why */
} bp_dwarf_status;

/*
 * Reads the file itself, and then separate debug data: by build id and by debug link below
 * /usr/lib/debug, and by debug link beside `path`. A separate file must have the same build id.
 * Nothing is fetched. A file made to keep us busy costs at most 1 GiB of memory and some ten
 * seconds. `reason` gets a clause on failure.
 */
bp_dwarf_status bp_jemalloc_dwarf_read(int fd, const char *path, bp_jemalloc_layout *ret_layout,
                                       char *reason, size_t reason_bytes);

#endif
