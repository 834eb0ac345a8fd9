/*
 * The memory that libelf and libdw would take for a file, computed before they open it: they read
 * whole sections, and a sparse file of a few kilobytes can claim any size. Linux only.
 */
#ifndef BP_PROBE_ELF_BOUNDS_H
#define BP_PROBE_ELF_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether all symbols, notes and debug data of a 64-bit ELF file, decompressed, are at most
 * `limit_bytes`, and its tables of a usual length. The file's owner can still change it afterwards.
 */
bool bp_elf_is_within(int fd, uint64_t limit_bytes);

#endif
