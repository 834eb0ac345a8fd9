/*
 * How much memory libelf and libdw would take for a file, found out before they are let loose on
 * it: they read every section that they need into memory, as large as the file says that it is, and
 * a sparse file of a few kilobytes can say anything. Linux only.
 */
#ifndef BP_PROBE_ELF_BOUNDS_H
#define BP_PROBE_ELF_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether all symbols, notes and debug data of a 64-bit ELF file, decompressed, are at most
 * `limit_bytes`, and its tables of a usual length. Whoever owns the file can still change it
 * afterwards.
 */
bool bp_elf_is_within(int fd, uint64_t limit_bytes);

#endif
