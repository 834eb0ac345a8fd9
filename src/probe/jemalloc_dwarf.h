/*
 * Where a jemalloc's thread-local block is, and where in it the two counters are, from debug data.
 * Read with elfutils' libdw, which is loaded when first needed, so that neither the command nor a
 * host depends on it. Linux only.
 */
#ifndef BP_PROBE_JEMALLOC_DWARF_H
#define BP_PROBE_JEMALLOC_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
